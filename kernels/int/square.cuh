// Squares with half of the products, for numbers in one or two lanes: docs/int.md, "Squaring".
#pragma once

#include "montgomery.cuh"

namespace integer {

// The products x[i] x[j] with i < j, row by row. The columns 2 i + 1 and 2 i + 2 are complete after
// row i.
template <int L>
struct Triangle {
    // As in a window: products whose low word has an even place, and the others. No entry is used
    // before it is written or after it is complete, so few of them are live at a time.
    u32 even[2 * L];
    u32 odd[2 * L];

    __device__ __forceinline__ Triangle() {
#pragma unroll
        for (int j = 0; j < 2 * L; j++) even[j] = odd[j] = 0;
    }

    // Adds x[i] x[j] for j = first, first + 2, ... Their carry goes to a column that is still 0. If
    // the highest limb is included, there is no carry.
    __device__ __forceinline__ void add_half_row(const u32 (&x)[L], int i, int first) {
        u32(&sum)[2 * L] = (i + first) % 2 == 0 ? even : odd;
#pragma unroll
        for (int j = first; j < L; j += 2) {
            u32& low = sum[i + j];
            u32& high = sum[i + j + 1];
            if (j == first) {
                mad_out(low, high, x[i], x[j], low, high);
            } else if (j < L - 1) {
                mad_through(low, high, x[i], x[j], low, high);
            } else {
                mad_in(low, high, x[i], x[j], low, high);
            }
        }
        if (first < L && (L - 1 - first) % 2 == 1) sum[i + L] = carry();
    }
};

// The square of a number of L limbs, from the lowest to the highest. `take(i, low, high)` gets the
// limbs 2 i and 2 i + 1.
template <int L, class Take>
__device__ __forceinline__ void square_in_lane(const u32 (&x)[L], Take take) {
    Triangle<L> triangle;
    // Complete sums at the places 2 i - 1 and 2 i, and the carries of the two additions that
    // continue from row to row.
    u32 below = 0;
    u32 here = 0;
    u32 sum_carry = 0;
    u32 square_carry = 0;
#pragma unroll
    for (int i = 0; i < L; i++) {
        triangle.add_half_row(x, i, i + 1);
        triangle.add_half_row(x, i, i + 2);
        set_carry(sum_carry);
        const u32 next = add_through(triangle.even[2 * i + 1], triangle.odd[2 * i + 1]);
        u32 after = 0;
        if (i < L - 1) {
            after = add_through(triangle.even[2 * i + 2], triangle.odd[2 * i + 2]);
            sum_carry = carry();
        }
        // Twice the sums, and the square of limb i.
        u32 low = __funnelshift_l(below, here, 1);
        u32 high = __funnelshift_l(here, next, 1);
        set_carry(square_carry);
        mad_through(low, high, x[i], x[i], low, high);
        square_carry = carry();
        take(i, low, high);
        below = next;
        here = after;
    }
}

// `void` if the condition holds, otherwise nothing.
template <bool>
struct Condition {};
template <>
struct Condition<true> {
    using Type = void;
};
template <bool CONDITION>
using EnableIf = typename Condition<CONDITION>::Type;

// The square of a number: the lower half in `value`, the upper half in `upper`. IN_QUARTERS
// overwrites the number `spare`.
//
// This version multiplies the number by itself. It is for many lanes, and for few limbs. It is also
// for numbers so long that two lanes have too few registers for the methods below.
template <class S, int THREADS, class = void>
struct Squaring {
    __device__ static __forceinline__ Rest square(u32 (&value)[S::L], const Passage<S, THREADS>& upper,
                                                      const Number<S, THREADS>&) {
        u32 x[S::L];
#pragma unroll
        for (int j = 0; j < S::L; j++) x[j] = value[j];
        upper.limbs.put(x);
        return product<S, THREADS>(value, x, upper.limbs, upper);
    }
};

template <int L, int THREADS>
struct Squaring<Shape<1, L>, THREADS, void> {
    using S = Shape<1, L>;
    __device__ static __forceinline__ Rest square(u32 (&value)[L], const Passage<S, THREADS>& upper,
                                                      const Number<S, THREADS>&) {
        u32 x[L];
#pragma unroll
        for (int j = 0; j < L; j++) x[j] = value[j];
        square_in_lane<L>(x, [&](int i, u32 low, u32 high) {
            if (2 * i < L) {
                value[2 * i] = low;
                value[2 * i + 1] = high;
            } else {
                upper.limbs[2 * i - L] = low;
                upper.limbs[2 * i + 1 - L] = high;
            }
        });
        return {0, 0, 0};
    }
};

// Two lanes: x = a + b 2^(32 L). First, both multiply a by b, each with half of the limbs of a.
// Then each squares its own half, and adds 2 a b: the lower lane to the upper half of a^2, the
// upper lane to the lower half of b^2.
template <int L, int THREADS>
struct Squaring<Shape<2, L>, THREADS, EnableIf<(L <= 48)>> {
    using S = Shape<2, L>;
    __device__ static __forceinline__ Rest square(u32 (&value)[L], const Passage<S, THREADS>& upper,
                                                      const Number<S, THREADS>&) {
        multiply_halves(value, upper);
        u32 x[L];
#pragma unroll
        for (int j = 0; j < L; j++) x[j] = value[j];

        // In the lower lane the lower half of a^2, and in the upper lane the upper half of b^2.
        u32 kept[L] = {};
        const u32 middle = upper.limbs[L - 1 + L];
        Number<S, THREADS>::sync();
        u32 before = middle;
        u32 sum_carry = 0;
        u32 upper_carry = 0;
        square_in_lane<L>(x, [&](int i, u32 low, u32 high) {
            // The upper half of the product is first.
            const bool first_half = 2 * i < L;
            u32* places[2] = {upper.in_lane(first_half ? 1 : 0, (2 * i) % L + (first_half ? 0 : L)),
                              upper.in_lane(first_half ? 1 : 0, (2 * i) % L + 1 + (first_half ? 0 : L))};
            const u32 limbs[2] = {*places[0], *places[1]};
            const u32 twice[2] = {__funnelshift_l(before, limbs[0], 1), __funnelshift_l(limbs[0], limbs[1], 1)};
            set_carry(sum_carry);
            *places[0] = add_through(low, twice[0]);
            *places[1] = add_through(high, twice[1]);
            sum_carry = carry();
            before = limbs[1];
            const bool keeps = S::lane() == (first_half ? 0 : 1);
            const int at = (2 * i) % L;
            kept[at] = keeps ? low : kept[at];
            kept[at + 1] = keeps ? high : kept[at + 1];
            if (2 * i + 2 == L) {
                upper_carry = sum_carry + (before >> (LIMB_BITS - 1));
                sum_carry = 0;
                before = 0;
            }
        });
        Number<S, THREADS>::sync();
        const bool upper_lane = S::lane() == 1;
        // The carry out of a lane's sums belongs to its limbs of the upper half.
        u32 add = upper_lane ? upper_carry : sum_carry;
        u32 moved[L];
        upper.limbs.get(moved);
        upper.limbs.own(0) = add_out(upper_lane ? kept[0] : moved[0], add);
#pragma unroll
        for (int j = 1; j < L; j++) upper.limbs.own(j) = add_through(upper_lane ? kept[j] : moved[j], 0);
        const u32 above = carry();
#pragma unroll
        for (int j = 0; j < L; j++) value[j] = upper_lane ? moved[j] : kept[j];
        return {0, 0, above};
    }

    // The product a b: the upper half in the limbs 0 to L - 1 of `upper`, the lower half above it.
    __device__ static __forceinline__ void multiply_halves(const u32 (&value)[L], const Passage<S, THREADS>& upper) {
        using Half = Shape<2, L / 2>;
        upper.limbs.put(value);
        const Number<Half, THREADS> a(upper.limbs, 0);
        const Number<Half, THREADS> b(upper.limbs, L);
        u32 vector[L / 2];
        a.get(vector);
        Window<Half> window;
        add_product<Half, THREADS>(window, vector, b, Passage<Half, THREADS>(b, upper.unwanted));
        u32 high[L / 2];
        const u32 above = window.limbs(high);
        carry_over<Half>(high, above, 0);
        a.put(high);
    }
};

// Whether the warps of a block begin each squaring together. The code is longer than their shared
// instruction cache, so one warp then loads it for the others.
template <class S>
constexpr bool IN_STEP = S::T > 1 && S::L >= 32;

// `value = value^2 / R mod P`, below R, for a number below R.
template <class S, int THREADS, class Background>
__device__ __forceinline__ void square(u32 (&value)[S::L], const Passage<S, THREADS>& upper, const Number<S, THREADS>& spare,
                                       const Modulus<S, THREADS>& p, Background& background) {
    if constexpr (IN_STEP<S>) __syncthreads();
    const Rest rest = Squaring<S, THREADS>::square(value, upper, spare);
    reduce<S, THREADS>(value, rest, upper, p, background);
}

}  // namespace integer
