// Powers of one base by a table: the entry points fixed_entries_BITS_tT, which computes the entries,
// and fixed_exp_BITS_tT, which multiplies one entry of each row. Source, parameters and the layout of
// a table: kernels/README.md.
#pragma once

#include "modexp.cuh"

namespace rns {

// Bits in a digit: a row has as many entries as a matrix.
constexpr int FIXED_WINDOW = 5;

// A table in global memory: the words of the modulus, and then a row for each digit. A row has the
// entries in base B and in base A, each slot by slot (`Table` describes the layout within a slot).
//
// Unlike the table of a ladder, all instances share it. So the digits of the sixteen instances of a
// warp are the rows of one product, and each lane receives the residues of its own instances.
template <class W>
struct FixedTable {
    using S = typename W::S;
    static constexpr int SLOT_BYTES = 512;
    static constexpr int READS = 2 * S::SLOTS;
    static constexpr int AHEAD = 6;

    const u32* modulus_words;

    // For `leave`.
    __device__ __forceinline__ const u32* modulus(u64) const { return modulus_words; }

    // Past the first-level cache, where rows would be displaced before another warp reads them. In
    // assembly, so that the compiler does not move the read down to its use.
    __device__ static __forceinline__ uint4 read(const unsigned char* from) {
        uint4 words;
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "l"(from)
                     : "memory");
        return words;
    }

    // Makes the entries of a row the operand, for the digits of the lane's instances.
    __device__ __forceinline__ void take(int row, u32 digit_0, u32 digit_1, const W& w) const {
        const int lane = static_cast<int>(threadIdx.x) & 31;
        const unsigned char* from = reinterpret_cast<const unsigned char*>(modulus_words + S::WORDS);
        from += static_cast<u64>(row) * (READS * SLOT_BYTES) + (8 * w.t + lane / 4) * 16;
        const u32 column = 2 * w.t;
        const u32 rows[4] = {Table<W>::row(digit_0, column), Table<W>::row(digit_1, column),
                             Table<W>::row(digit_0, column + 1), Table<W>::row(digit_1, column + 1)};
        uint4 ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) ahead[k] = read(from + k * SLOT_BYTES);
#pragma unroll
        for (int k = 0; k < READS; k++) {
            u32 word[2];
            Table<W>::multiply(word, rows, ahead[k % AHEAD]);
            if (k + AHEAD < READS) ahead[k % AHEAD] = read(from + (k + AHEAD) * SLOT_BYTES);
            const bool in_b = k < S::SLOTS;
            (in_b ? w.operand_b : w.operand_a)[in_b ? k : k - S::SLOTS] = make_uint2(word[0], word[1]);
        }
    }
};

// Replaces z with the product of the entries for all digits, an ordinary number below 2^LEAVE_BITS
// M. The highest digit is changed in the bits `flipped`.
template <class W>
__device__ __forceinline__ void multiply_entries(Residues<typename W::S> z, W& w, const FixedTable<W>& table,
                                                 const u32* exponent_0, const u32* exponent_1, int exponent_bits,
                                                 u32 flipped) {
    using S = typename W::S;
    const int digits = max((exponent_bits + FIXED_WINDOW - 1) / FIXED_WINDOW, 1);
#pragma unroll 1
    for (int digit = 0; digit <= digits; digit++) {
        if (digit < digits) {
            int position = digit * FIXED_WINDOW;
            int bits = min(FIXED_WINDOW, exponent_bits - position);
            u32 change = digit == digits - 1 ? flipped : 0;
            table.take(digit, exponent_digit<S>(exponent_0, position, bits) ^ change,
                       exponent_digit<S>(exponent_1, position, bits) ^ change, w);
        } else {
            w.put_public(ONE);
        }
        if (digit == 0) {
            w.operand_b.load(z);
        } else {
            multiply(z, w);
        }
    }
}

template <class S, int THREADS>
__device__ __forceinline__ void fixed_exp(u32* out, const u32* exponents, const u32* record, double* scratch, u32 count,
                                          u32 exponent_bits, u32 flipped) {
    using W = Workspace<S, THREADS>;
    constexpr u32 INSTANCES = THREADS / 32 * INSTANCES_PER_WARP;
    const u32* constants = Bases<S>::constants();
    extern __shared__ uint4 dynamic[];
    unsigned char* shared = reinterpret_cast<unsigned char*>(dynamic);
    const u32 warp = threadIdx.x / 32;
    unsigned char* own = reinterpret_cast<unsigned char*>(scratch);
    own += (static_cast<u64>(blockIdx.x) * (THREADS / 32) + warp) * (W::KEPT * W::KEPT_BYTES);
    W w(shared, own, constants);
    const FixedTable<W> table{record};
    w.fill();

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        const u32* exponent[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 row = warp * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 32 / 4;
            exponent[h] = exponents + static_cast<u64>(min(first + row, count - 1)) * S::WORDS;
        }
        u32 z[2][S::SLOTS];
        w.template change<ENTER>();
        from_words(z, record, record, w);
        take_modulus(z, w);

        w.template change<B_TO_A>();
        complete_operand(z, w);
        make_factors(w);
        multiply_entries(z, w, table, exponent[0], exponent[1], static_cast<int>(exponent_bits),
                         flipped);
        leave(z, out, table, first, count, w);
        w.clear();
    }
    w.matrices.finish();
}

template <class S, int THREADS>
__device__ __forceinline__ void fixed_entries(u32* out, const u64* base, const u64* exponent, const u64* params,
                                              const u32* param_index, double* scratch, u32 count, u32 exponent_bits,
                                              u32 window) {
    ModExpOperands<S> operands{reinterpret_cast<const u32*>(base), reinterpret_cast<const u32*>(exponent),
                               reinterpret_cast<const u32*>(params), param_index};
    powers<S, THREADS, Form::MONTGOMERY>(operands, out, scratch, count, exponent_bits, window);
}

}  // namespace rns

// Defines the entry point fixed_entries_BITS_tT; the numbers are those of MOD_EXP_ENTRY.
#define FIXED_ENTRIES_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                  \
        fixed_entries_##BITS##_t##T(rns::u32* out, const rns::u64* base, const rns::u64* exponent,                 \
                                    const rns::u64* params, const rns::u32* param_index, double* scratch,          \
                                    rns::u32 count, rns::u32 exponent_bits, rns::u32 /* r2_bits */,                \
                                    rns::u32 window) {                                                             \
        static_assert(T == 2, "a warp has 16 instances");                                                          \
        rns::fixed_entries<rns::Shape<T * L, BITS>, THREADS>(out, base, exponent, params, param_index, scratch,    \
                                                             count, exponent_bits, window);                        \
    }

// Defines the entry point fixed_exp_BITS_tT.
#define FIXED_EXP_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                 \
        fixed_exp_##BITS##_t##T(rns::u32* out, const rns::u32* exponent, const rns::u32* table, double* scratch,  \
                                rns::u32 count, rns::u32 exponent_bits, rns::u32 flipped) {                       \
        rns::fixed_exp<rns::Shape<T * L, BITS>, THREADS>(out, exponent, table, scratch, count, exponent_bits,     \
                                                         flipped);                                                \
    }
