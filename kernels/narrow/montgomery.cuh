// Montgomery multiplication and squaring, R = 2^(24 N), with one instance in each thread.
//
// The modulus P is scaled (H. Orup, "Simplifying quotient determination in high-radix modular
// multiplication", ARITH 1995): P' = c P with c = -P^-1 mod 2^24, |c| <= 2^23, is -1 modulo 2^24.
// The quotient digit is therefore the rest of the lowest column. Its product with limb 0 of P'
// leaves the multiple of 2^24 there.
//
// Bounds. Digits are at most 2^23 in absolute value, so the quotient is at most R / 2 (1 + 2^-23).
// Results are at most |x y| / R + |P'| / 2 (1 + 2^-23). With 2^8 |P'| <= R that is below 0.51 |P'|,
// both for |x|, |y| <= 0.51 |P'| and for any x below 2^BITS. `is_exact` bounds the columns: N
// products and N of a reduction.
#pragma once

#include "table.cuh"

namespace narrow {

// c of the scaled modulus, balanced, by Newton's iteration: x = odd is correct to 3 bits, and every
// step doubles them.
__device__ __forceinline__ i64 scale_of(u64 odd) {
    u32 word = static_cast<u32>(odd);
    u32 x = word;
#pragma unroll
    for (int step = 0; step < 3; step++) x *= 2 - word * x;
    return static_cast<i64>((0 - x + RADIX / 2) & (RADIX - 1)) - RADIX / 2;
}

// The shared memory of a thread. Element i is at i * THREADS.
template <int N_, int THREADS_>
struct Workspace {
    static constexpr int N = N_;
    static constexpr int THREADS = THREADS_;
    static constexpr int BYTES = ((2 * N - 1) * 8 + N * 4) * THREADS;
    static_assert(is_exact(N), "columns must stay below 2^53");

    // Limbs 1 .. N - 1 of P'. Limb 0 is -1.
    double* modulus;
    // N columns.
    double* columns;
    // The multiplier of products, in singles: limbs are below 2^24.
    float* operand;

    __device__ __forceinline__ explicit Workspace(double* shared)
        : modulus(shared + threadIdx.x),
          columns(shared + (N - 1) * THREADS + threadIdx.x),
          operand(reinterpret_cast<float*>(shared + (2 * N - 1) * THREADS) + threadIdx.x) {}

    // Loads the limbs of a number of words through the columns.
    __device__ __forceinline__ void take(double (&value)[N], const u64* words, int count) const {
        put_limbs(columns, THREADS, N, words, count, 1);
#pragma unroll
        for (int j = 0; j < N; j++) value[j] = columns[j * THREADS];
    }

    // Loads an odd modulus in scaled form.
    __device__ __forceinline__ void take_modulus(const u64* words, int count) const {
        put_limbs(columns, THREADS, N, words, count, scale_of(words[0]));
#pragma unroll 1
        for (int j = 1; j < N; j++) modulus[(j - 1) * THREADS] = columns[j * THREADS];
    }

    __device__ __forceinline__ void put_operand(const double (&value)[N]) const {
#pragma unroll
        for (int j = 0; j < N; j++) operand[j * THREADS] = static_cast<float>(value[j]);
    }

    // 2^exponent, 0 <= exponent < 24 N. The exponent is public.
    __device__ __forceinline__ void put_power_of_two(int exponent) const {
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            int shift = exponent - LIMB_BITS * j;
            bool here = shift >= 0 && shift < LIMB_BITS;
            operand[j * THREADS] = static_cast<float>(here ? 1 << (shift & 31) : 0);
        }
    }

    __device__ __forceinline__ void clear() const {
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            if (j < N - 1) modulus[j * THREADS] = 0.0;
            columns[j * THREADS] = 0.0;
            operand[j * THREADS] = 0.0f;
        }
    }
};

// The columns of value * operand: the lower N in `window`, the others in work.columns.
template <int ROWS, class W, int N>
__device__ __forceinline__ void product_columns(double (&window)[N], const double (&value)[N], const W& work) {
#pragma unroll
    for (int j = 0; j < N; j++) window[j] = 0.0;
    float next = work.operand[0];
#pragma unroll ROWS
    for (int i = 0; i < N; i++) {
        double limb = static_cast<double>(next);
        next = work.operand[min(i + 1, N - 1) * W::THREADS];
        work.columns[i * W::THREADS] = __fma_rn(limb, value[0], window[0]);
#pragma unroll
        for (int j = 1; j < N; j++) window[j - 1] = __fma_rn(limb, value[j], window[j]);
        window[N - 1] = 0.0;
    }
    // The rows have left the lower columns in memory, and the upper ones in the window.
#pragma unroll
    for (int j = 0; j < N; j++) {
        double lower = work.columns[j * W::THREADS];
        work.columns[j * W::THREADS] = window[j];
        window[j] = lower;
    }
}

// The columns of value^2, with half of the products of different limbs.
template <class W, int N>
__device__ __forceinline__ void square_columns(double (&window)[N], const double (&value)[N], const W& work) {
#pragma unroll
    for (int k = 0; k < N; k++) window[k] = 0.0;
    // The columns N + k, whose products have a factor in the upper half.
#pragma unroll
    for (int j = N / 2 + 1; j < N; j++) {
        double twice = __dadd_rn(value[j], value[j]);
#pragma unroll
        for (int i = N - j; i < j; i++) window[i + j - N] = __fma_rn(twice, value[i], window[i + j - N]);
    }
#pragma unroll
    for (int i = (N + 1) / 2; i < N; i++) window[2 * i - N] = __fma_rn(value[i], value[i], window[2 * i - N]);
#pragma unroll
    for (int k = 0; k < N; k++) {
        work.columns[k * W::THREADS] = window[k];
        window[k] = 0.0;
    }
    // The columns k, whose products have a factor in the lower half.
#pragma unroll
    for (int i = 0; i < (N + 1) / 2; i++) {
        window[2 * i] = __fma_rn(value[i], value[i], window[2 * i]);
        double twice = __dadd_rn(value[i], value[i]);
#pragma unroll
        for (int j = i + 1; j < N - i; j++) window[i + j] = __fma_rn(twice, value[j], window[i + j]);
    }
}

// Adds P' times the quotient digit, the rest of `lowest`, and divides by 2^24. Every column moves
// one place down. `lowest` is the split column 0, before and after, which is known long before the
// other columns.
template <int N>
__device__ __forceinline__ void reduce_row(double (&window)[N], Split& lowest, double incoming,
                                           const double (&modulus)[N - 1]) {
    const double quotient = lowest.rest;
    window[0] = __fma_rn(quotient, modulus[0], carried(lowest.multiple, window[1]));
    lowest = split(window[0]);
#pragma unroll
    for (int j = 2; j < N; j++) window[j - 1] = __fma_rn(quotient, modulus[j - 1], window[j]);
    window[N - 1] = incoming;
}

// Limbs of the columns / R mod P'. With every ROWS rows, a step of the look-up runs.
template <int ROWS, class W, int N>
__device__ __forceinline__ void reduce(double (&value)[N], double (&window)[N], const W& work, Scan<W>& scan) {
    double modulus[N - 1];
#pragma unroll
    for (int j = 0; j < N - 1; j++) modulus[j] = work.modulus[j * W::THREADS];
    const double* incoming = work.columns;
    Split lowest = split(window[0]);
    auto rows = [&](auto count) {
        typename Scan<W>::Step step = scan.issue();
#pragma unroll
        for (int row = 0; row < count(); row++) reduce_row<N>(window, lowest, incoming[row * W::THREADS], modulus);
        incoming += count() * W::THREADS;
        scan.consume(step);
    };
#pragma unroll 1
    for (int i = 0; i < N / ROWS; i++) rows([] { return ROWS; });
    if constexpr (N % ROWS > 0) rows([] { return N % ROWS; });
    resolve<N>(window);
#pragma unroll
    for (int j = 0; j < N; j++) value[j] = window[j];
}

}  // namespace narrow
