// Batch modular exponentiation in narrow doubles, in constant time. For measurements; not shipped.
//
// Control flow and addresses of a thread depend only on its position in the grid and on the launch
// parameters. Buffers: `modexp_BITS_tT` of kernels/README.md, with r2 = 2^(2 BITS) mod P and a
// window of 4. The scratch memory has Table::SINGLES singles for each thread.
#pragma once

#include "montgomery.cuh"

namespace narrow {

// The digit of `bits` bits at bit `position` of an exponent of `count` words. Positions are public.
__device__ __forceinline__ u32 exponent_digit(const u64* words, int count, int position, int bits) {
    u64 low = words[min(position >> 6, count - 1)] >> (position & 63);
    return static_cast<u32>(low) & ((1u << bits) - 1);
}

// Writes the canonical result. The limbs in work.columns represent v with v = result * 2^24 modulo
// P and |v| <= 2^22 P (1 + 2^-22).
//
// (v + q P) / 2^24 with a digit q, at most 2^23, is the result modulo P, and at most (1/4 + 1/2) P
// (1 + 2^-22) in absolute value. If it is negative, P is added under a mask.
template <class W>
__device__ __forceinline__ void write_canonical(u64* out, const u64* modulus, int count, const W& work) {
    constexpr int N = W::N;
    auto column = [&](int j) -> double& { return work.columns[j * W::THREADS]; };
    i64 quotient = static_cast<i64>(column(0)) * scale_of(modulus[0]);
    quotient = ((quotient + RADIX / 2) & (RADIX - 1)) - RADIX / 2;
    i64 carry = 0;
#pragma unroll 1
    for (int j = 0; j < N; j++) {
        carry += static_cast<i64>(column(j)) + quotient * static_cast<i64>(digit_of_words(modulus, count, j));
        column(j) = static_cast<double>(carry & (RADIX - 1));
        carry >>= LIMB_BITS;
    }
    const i64 negative = carry >> 63;
    carry = 0;
    u64 word = 0;
    int bits = 0;
    int written = 0;
#pragma unroll 1
    for (int j = 0; j < N - 1; j++) {
        carry += static_cast<i64>(column(j + 1)) + (static_cast<i64>(digit_of_words(modulus, count, j)) & negative);
        u64 digit = static_cast<u64>(carry) & (RADIX - 1);
        carry >>= LIMB_BITS;
        word |= digit << bits;
        bits += LIMB_BITS;
        if (bits >= 64) {
            if (written < count) out[written++] = word;
            bits -= 64;
            word = digit >> (LIMB_BITS - bits);
        }
    }
}

template <int N, int BITS, int THREADS, int ROWS>
__device__ __forceinline__ void modexp(u64* out, const u64* base, const u64* exponent, const u64* params,
                                       const u32* param_index, float* scratch, u32 count, u32 exponent_bits) {
    constexpr int R_BITS = LIMB_BITS * N;
    constexpr int WORDS = BITS / 64;
    static_assert(R_BITS >= BITS + 23 + 8, "R must exceed the scaled modulus by 8 bits");
    static_assert(WINDOW * ((N + ROWS - 1) / ROWS) >= N, "the look-up is done when its squarings are");
    // The square of r2, divided by R, is 2^F R modulo P. Its product with 2^(2 R_BITS - F) is R^2.
    constexpr int F = 2 * (2 * BITS - R_BITS);
    static_assert(F > R_BITS && F <= 2 * R_BITS, "one squaring of r2 is enough");
    // Two products for R^2, one each for entries 0 and 1, and the other entries.
    constexpr int ONE = 2, BASE = 3, POWERS = 4, LADDER = POWERS + ENTRIES - 2;

    extern __shared__ double shared[];
    using W = Workspace<N, THREADS>;
    W work(shared);
    Table<N> table(scratch);
    const int digits = max((static_cast<int>(exponent_bits) + WINDOW - 1) / WINDOW, 1);
    const int steps = LADDER + (WINDOW + 1) * (digits - 1) + 1;

#pragma unroll 1
    for (u32 first = blockIdx.x * THREADS; first < count; first += gridDim.x * THREADS) {
        // Threads past the end of the batch repeat its last instance.
        const u64 index = min(first + threadIdx.x, count - 1);
        const u64* modulus = params + static_cast<u64>(param_index[index]) * (2 * WORDS);
        auto look_up = [&](Scan<W>& scan, int digit) {
            int position = digit * WINDOW;
            int bits = min(WINDOW, static_cast<int>(exponent_bits) - position);
            scan.start(table, exponent_digit(exponent + index * WORDS, WORDS, position, bits));
        };

        double value[N];
        work.take_modulus(modulus, WORDS);
        work.take(value, modulus + WORDS, WORDS);

        // All products and squares share this code, and each step is one of them.
        Scan<W> scan(work);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            const int in_ladder = step - LADDER;
            bool squaring = step == 0;
            if (in_ladder >= 0) {
                const int digit = digits - 2 - in_ladder / (WINDOW + 1);
                const int in_digit = in_ladder % (WINDOW + 1);
                if (in_ladder == 0) {
                    table.put(ENTRIES - 1, value);
                    look_up(scan, digits - 1);
                    scan.finish();
#pragma unroll
                    for (int j = 0; j < N; j++) value[j] = static_cast<double>(work.operand[j * THREADS]);
                }
                if (digit < 0) {
                    // Leaves Montgomery form, times 2^24.
                    work.put_power_of_two(LIMB_BITS);
                } else {
                    if (in_digit == 0) look_up(scan, digit);
                    squaring = in_digit < WINDOW;
                }
            } else if (step == 1) {
                work.put_power_of_two(2 * R_BITS - F);
            } else if (step == ONE) {
                work.put_operand(value);
#pragma unroll
                for (int j = 0; j < N; j++) value[j] = j == 0 ? 1.0 : 0.0;
            } else if (step >= BASE) {
                table.put(step - BASE, value);
                if (step == BASE) {
                    work.take(value, base + index * WORDS, WORDS);
                } else if (step == POWERS) {
                    work.put_operand(value);
                }
            }

            double window[N];
            if (squaring) {
                square_columns(window, value, work);
            } else {
                product_columns<ROWS>(window, value, work);
            }
            reduce<ROWS>(value, window, work, scan);
        }

#pragma unroll
        for (int j = 0; j < N; j++) work.columns[j * THREADS] = value[j];
        write_canonical(out + index * WORDS, modulus, WORDS, work);
        table.clear();
        work.clear();
    }
}

}  // namespace narrow

// Defines the entry point narrow_BITS: N limbs for each instance, THREADS threads in a block,
// registers for BLOCKS blocks on a multiprocessor, and ROWS rows of a reduction for each step of a
// look-up.
#define NARROW_ENTRY(BITS, N, THREADS, BLOCKS, ROWS)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                 \
        narrow_##BITS(narrow::u64* out, const narrow::u64* base, const narrow::u64* exponent,                     \
                      const narrow::u64* params, const narrow::u32* param_index, float* scratch,                  \
                      narrow::u32 count, narrow::u32 exponent_bits) {                                             \
        narrow::modexp<N, BITS, THREADS, ROWS>(out, base, exponent, params, param_index, scratch, count,          \
                                               exponent_bits);                                                    \
    }
