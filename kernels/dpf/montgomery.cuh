// Montgomery multiplication, R = 2^(52 N), row by row (coarsely integrated operand scanning).
//
// Rows: Emmart, Zheng, Weems, ARITH 2018. No subtraction between multiplications: H. Orup,
// "Simplifying quotient determination in high-radix modular multiplication", ARITH 1995; C. Walter,
// "Montgomery exponentiation needs no final subtractions", Electronics Letters 35 (1999). Bounds
// and column constants: docs/dpf.md, "Rows" and "Montgomery multiplication".
#pragma once

#include "carry.cuh"
#include "operand.cuh"

namespace dpf {

// A modulus P and its constants for Montgomery reduction. P is odd and 4 P < R. Each lane keeps its
// limbs in shared memory, and in registers only during a reduction.
template <class S, int THREADS>
struct Modulus {
    static constexpr int BYTES = S::L * THREADS * 8;

    double* shared;
    // -P^-1 mod 2^52.
    double negated_inverse;

    __device__ __forceinline__ explicit Modulus(double* memory) : shared(memory + threadIdx.x), negated_inverse(0) {}

    __device__ __forceinline__ void put(const double (&limbs)[S::L], double inverse) {
#pragma unroll
        for (int j = 0; j < S::L; j++) shared[j * THREADS] = limbs[j];
        negated_inverse = inverse;
    }

    __device__ __forceinline__ void clear() const {
#pragma unroll
        for (int j = 0; j < S::L; j++) shared[j * THREADS] = 0.0;
    }

    __device__ __forceinline__ void get(double (&limbs)[S::L]) const {
#pragma unroll
        for (int j = 0; j < S::L; j++) limbs[j] = shared[j * THREADS];
    }
};

// -odd^-1 mod 2^52, by Newton's iteration: x = odd is correct to 3 bits, and every step doubles
// them.
__device__ __forceinline__ u64 negated_inverse(u64 odd) {
    u64 x = odd;
#pragma unroll
    for (int step = 0; step < 5; step++) x *= 2 - odd * x;
    return (0 - x) & LIMB_MASK;
}

// Adds `scalar * vector` to the columns.
template <int L>
__device__ __forceinline__ void add_row(u64 (&column)[L + 1], double scalar, const double (&vector)[L]) {
    u64 high = 0;
#pragma unroll
    for (int j = 0; j < L; j++) {
        Sample s = sample(scalar, vector[j]);
        column[j] += s.low + high;
        high = s.high;
    }
    column[L] += high;
}

// The quotient digit that makes column 0 of the lowest lane divisible by 2^52.
template <class S>
__device__ __forceinline__ double quotient_digit(u64 column0, double negated_inverse) {
    return from_lane<S>(low_product(to_double(column0 & LIMB_MASK), negated_inverse), 0);
}

// Adds `quotient * modulus` and divides by 2^52. Every column moves one place down. Column 0 of
// each lane passes its low 52 bits to the top column of the lane below, and the rest to its own
// column 1.
template <class S>
__device__ __forceinline__ void reduce_row(u64 (&column)[S::L + 1], double quotient, const double (&modulus)[S::L]) {
    Sample s = sample(quotient, modulus[0]);
    u64 lowest = column[0] + s.low;
    u64 high = s.high;
#pragma unroll
    for (int j = 1; j < S::L; j++) {
        s = sample(quotient, modulus[j]);
        column[j - 1] = column[j] + s.low + high;
        high = s.high;
    }
    column[0] += lowest >> LIMB_BITS;
    column[S::L - 1] = column[S::L] + high;
    if constexpr (S::T > 1) column[S::L - 1] += from_above<S>(lowest & LIMB_MASK);
}

// The result of the reduction: column sums without their constants, as limbs.
template <class S>
__device__ __forceinline__ void finish(double (&result)[S::L], u64 (&column)[S::L + 1]) {
    u64 sums[S::L];
#pragma unroll
    for (int j = 0; j < S::L; j++) sums[j] = column[j];
    resolve_single_hop<S>(sums);
#pragma unroll
    for (int j = 0; j < S::L; j++) result[j] = to_double(sums[j]);
}

// Rows of a product that hide one step of the background work.
template <class S>
constexpr int ROWS_PER_STEP = S::L % 4 == 0 ? 4 : S::L % 3 == 0 ? 3 : 2;

// No background work.
struct Idle {
    struct Step {};

    __device__ __forceinline__ Step issue() { return {}; }
    __device__ __forceinline__ void consume(const Step&) {}
};

// x * y / R mod P, below 2 P, for x * y < R * P. Input and output limbs are in [0, 2^52]. A step of
// the background work begins and ends with every ROWS rows.
template <class S, int ROWS, class Multiplier, class Modulus, class Background>
__device__ __forceinline__ void multiply_with(double (&result)[S::L], const double (&x)[S::L], const Multiplier& y,
                                              const Modulus& p, Background& background) {
    static_assert(S::N % ROWS == 0, "the rows come in whole steps");
    double modulus[S::L];
    p.get(modulus);
    u64 column[S::L + 1];
#pragma unroll
    for (int j = 0; j < S::L; j++) column[j] = 0 - bias(2 * j, 2 * j + 2);
#pragma unroll 1
    for (int i = 0; i < S::N; i += ROWS) {
        typename Background::Step step = background.issue();
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            column[S::L] = 0 - bias(2 * S::L, 2 * S::L);
            add_row<S::L>(column, y[i + row], x);
            double quotient = quotient_digit<S>(column[0], p.negated_inverse);
            reduce_row<S>(column, quotient, modulus);
        }
        background.consume(step);
    }
#pragma unroll
    for (int j = 0; j < S::L; j++) column[j] += bias(2 * j, 2 * j + 2);
    finish<S>(result, column);
}

// The same without background work.
template <class S, class Multiplier, class Modulus>
__device__ __forceinline__ void multiply(double (&result)[S::L], const double (&x)[S::L], const Multiplier& y,
                                         const Modulus& p) {
    Idle idle;
    multiply_with<S, 1>(result, x, y, p, idle);
}

}  // namespace dpf
