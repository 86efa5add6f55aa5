// Montgomery multiplication, R = 2^(32 N): a product by rows, then its reduction by rows.
//
// P. Montgomery, "Modular multiplication without trial division" (1985); values below R instead of
// P: S. Gueron, "Enhanced Montgomery multiplication", CHES 2002. Bounds: docs/int.md, "Montgomery
// multiplication".
#pragma once

#include "row.cuh"

namespace integer {

// An odd modulus P below R. The limbs are in shared memory, and in registers only during a
// reduction.
template <class S, int THREADS>
struct Modulus {
    Number<S, THREADS> limbs;
    // -P^-1 mod 2^32.
    u32 negated_inverse;
};

// -odd^-1 mod 2^32, by Newton's iteration: x = odd is correct to 3 bits, and every step doubles
// them.
__device__ __forceinline__ u32 negated_inverse(u32 odd) {
    u32 x = odd;
#pragma unroll
    for (int step = 0; step < 4; step++) x *= 2 - odd * x;
    return 0 - x;
}

// Rows of a reduction that hide one step of the background work. With quarters, one reduction hides
// all steps.
template <class S>
constexpr int ROWS_PER_STEP = IN_QUARTERS<S> ? 2 : 4;

// Rows that are unrolled. At the end of a turn the compiler moves the window between registers, so
// more rows are better, as long as the code of a squaring fits in the instruction cache.
template <class S>
constexpr int ROWS_PER_TURN = S::L <= (S::T == 1 ? 24 : 32) ? 8 : 4;

// No background work.
struct Idle {
    struct Step {};

    __device__ __forceinline__ Step issue() { return {}; }
    __device__ __forceinline__ void consume(const Step&) {}
};

// Adds the carries out of each lane, `above`, to the next lane, and `lowest`, which is 0 except
// IN_QUARTERS, to the lowest one. Returns the carry out of the highest lane, in that lane.
//
// A carry out of the lowest lane needs T - 1 passes. `lowest` is added in the first one, so its
// carry needs one more.
template <class S>
__device__ __forceinline__ u32 carry_over(u32 (&value)[S::L], u32 above, u32 lowest) {
    if constexpr (S::T == 1) return above;
    constexpr int PASSES = IN_QUARTERS<S> ? S::T : S::T - 1;
    u32 out = 0;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; pass++) {
        out += S::lane() == S::T - 1 ? above : 0;
        value[0] = add_out(value[0], from_below<S>(above) | lowest);
#pragma unroll
        for (int j = 1; j < S::L; j++) value[j] = add_through(value[j], 0);
        above = carry();
        lowest = 0;
    }
    return out + (S::lane() == S::T - 1 ? above : 0);
}

// Subtracts `subtrahend & mask` over all lanes. Returns all ones if that borrows, otherwise 0, in
// every lane. T passes.
template <class S>
__device__ __forceinline__ u32 subtract(u32 (&value)[S::L], const u32 (&subtrahend)[S::L], u32 mask) {
    value[0] = sub_out(value[0], subtrahend[0] & mask);
#pragma unroll
    for (int j = 1; j < S::L; j++) value[j] = sub_through(value[j], subtrahend[j] & mask);
    u32 borrow = borrow_mask();
    if constexpr (S::T > 1) {
        u32 any = S::lane() == S::T - 1 ? borrow : 0;
#pragma unroll 1
        for (int pass = 1; pass < S::T; pass++) {
            value[0] = sub_out(value[0], from_below<S>(borrow) & 1);
#pragma unroll
            for (int j = 1; j < S::L; j++) value[j] = sub_through(value[j], 0);
            borrow = borrow_mask();
            any |= S::lane() == S::T - 1 ? borrow : 0;
        }
        borrow = from_highest<S>(any);
    }
    return borrow;
}

// The rows of the product of `vector` and `multiplier`. The limbs that leave the window, the lower
// half, go to `lower`, which may be the multiplier. The upper half stays in the window.
template <class S, int THREADS>
__device__ __forceinline__ void add_product(Window<S>& window, const u32 (&vector)[S::L],
                                            const Number<S, THREADS>& multiplier, const Passage<S, THREADS>& lower) {
    static_assert(S::N % ROWS_PER_TURN<S> == 0 && ROWS_PER_TURN<S> % ROWS_PER_STEP<S> == 0, "rows come in whole turns");
#pragma unroll 1
    for (int i = 0; i < S::N; i += ROWS_PER_TURN<S>) {
        u32 scalar[ROWS_PER_TURN<S>];
#pragma unroll
        for (int row = 0; row < ROWS_PER_TURN<S>; row++) scalar[row] = multiplier.in_half(i, row);
        Number<S, THREADS>::sync();
#pragma unroll
        for (int row = 0; row < ROWS_PER_TURN<S>; row += 2) {
            window.add_rows(
                vector, [&](u32) { return scalar[row]; }, [&](u32) { return scalar[row + 1]; },
                [&](int second, u32 limb) { lower.put_lowest(i, row + second, limb); });
        }
    }
    Number<S, THREADS>::sync();
}

// The parts that have yet to be added to a number of 2 N limbs. In the lower half: an addend for
// the lowest limb of each lane. In the upper half: an addend for the lowest limb of the lowest
// lane, and the carries out of each lane.
struct Rest {
    u32 lower;
    u32 lowest_upper;
    u32 above;
};

// The product of `vector` and `multiplier`: the lower half in `value`, the upper half in `upper`,
// which may be the multiplier.
template <class S, int THREADS>
__device__ __forceinline__ Rest product(u32 (&value)[S::L], const u32 (&vector)[S::L],
                                       const Number<S, THREADS>& multiplier, const Passage<S, THREADS>& upper) {
    Window<S> window;
    add_product<S, THREADS>(window, vector, multiplier, upper);
    u32 high[S::L];
    const u32 above = window.limbs(high);
    upper.limbs.get(value);
#pragma unroll
    for (int j = 0; j < S::L; j++) upper.limbs.own(j) = high[j];
    return {0, 0, above};
}

// `x / R mod P`, below R, for an `x` below R^2: its lower half in `value`, its upper half in
// `upper`, and `rest`.
template <class S, int THREADS, class Background>
__device__ __forceinline__ void reduce(u32 (&value)[S::L], const Rest& rest, const Passage<S, THREADS>& upper,
                                       const Modulus<S, THREADS>& p, Background& background) {
    Window<S> window(value, rest.lower);
    u32 modulus[S::L];
    p.limbs.get(modulus);
    const auto quotient = [&](u32 lowest) { return from_lowest<S>(lowest * p.negated_inverse); };
#pragma unroll 1
    for (int i = 0; i < S::N; i += ROWS_PER_TURN<S>) {
#pragma unroll
        for (int j = 0; j < ROWS_PER_TURN<S>; j += ROWS_PER_STEP<S>) {
            typename Background::Step step = background.issue();
#pragma unroll
            for (int row = 0; row < ROWS_PER_STEP<S>; row += 2) {
                window.add_rows(modulus, quotient, quotient, [](int, u32) {});
            }
            background.consume(step);
        }
    }
    u32 above = rest.above + window.limbs(value);
    value[0] = add_out(value[0], upper.limbs.own(0));
#pragma unroll
    for (int j = 1; j < S::L; j++) value[j] = add_through(value[j], upper.limbs.own(j));
    above = carry_over<S>(value, above + carry(), rest.lowest_upper);
    subtract<S>(value, modulus, 0 - from_highest<S>(above));
}

// `result = x * multiplier / R mod P`, below R, for numbers below R.
template <class S, int THREADS>
__device__ __forceinline__ void multiply(u32 (&result)[S::L], const u32 (&x)[S::L],
                                         const Number<S, THREADS>& multiplier, const Passage<S, THREADS>& upper,
                                         const Modulus<S, THREADS>& p) {
    u32 lower[S::L];
    const Rest rest = product<S, THREADS>(lower, x, multiplier, upper);
    Idle idle;
    reduce<S, THREADS>(lower, rest, upper, p, idle);
#pragma unroll
    for (int j = 0; j < S::L; j++) result[j] = lower[j];
}

}  // namespace integer
