// Squares with half of the products in four lanes: docs/int.md, "Squaring".
#pragma once

#include "square.cuh"

namespace integer {

// x = a0 + a1 Q + a2 Q^2 + a3 Q^3, Q = 2^(32 L), a quarter in each lane. First come the six products of two quarters, in
// 3 L / 2 rows of each lane, with no shuffle between them. Then each lane squares its own quarter, and adds twice those
// products as the limbs come: lane k makes the limbs 2 k L to 2 (k + 1) L - 1 of the square, its part.
//
// All that takes more room than `upper` has: the upper halves of the lanes' limbs in `spare` are used too. Places are
// counted in halves of a quarter: 0 to 7 are those of `upper`, 8 to 11 those in `spare`. Which of them a lane takes follows
// from its number, by constants that have a hexadecimal digit for each lane, the lowest lane's last.
template <int L, int THREADS>
struct Squaring<Shape<4, L>, THREADS, EnableIf<(L >= 24)>> {
    using S = Shape<4, L>;
    static constexpr bool NEEDS_SPARE = true;
    static constexpr int INSTANCES = Number<S, THREADS>::INSTANCES;
    static constexpr int HALF = L / 2;
    static constexpr int ROWS = HALF % 8 == 0 ? 8 : 4;
    static_assert(HALF % ROWS == 0, "rows come in whole turns, and a look-up fills pairs of limbs");

    // The halves of a part, from the lowest: where its sums are. The digit 15 says that there are none.
    static constexpr u32 NO_SUMS = 15;
    __device__ static __forceinline__ u32 part(int half) {
        return half == 0 ? 0x064f : half == 1 ? 0x18af : half == 2 ? 0xf9b2 : 0xf573;
    }

    // Everything is found from one address, so that the compiler sees that it is in shared memory.
    struct Places {
        const Passage<S, THREADS>& upper;
        const Number<S, THREADS>& spare;
        int lane;

        __device__ __forceinline__ Places(const Passage<S, THREADS>& upper, const Number<S, THREADS>& spare)
            : upper(upper), spare(spare), lane(lane_anew()) {}

        // The lane's number, asked for in each square: the places that follow from it would take registers throughout.
        __device__ static __forceinline__ int lane_anew() {
            int thread;
            asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
            return thread & (S::T - 1);
        }

        __device__ __forceinline__ u32 digit(u32 digits) const { return digits >> (4 * lane) & 15; }

        // Words from the first one of `upper` to the half that is this lane's digit.
        __device__ __forceinline__ int offset(u32 digits) const {
            const int half = static_cast<int>(digit(digits));
            const int to_spare = static_cast<int>(spare.limbs - upper.limbs.limbs);
            return half < 8 ? INSTANCES * HALF * half : to_spare + INSTANCES * (L * (half - 8) + HALF);
        }

        __device__ __forceinline__ u32* half(u32 digits) const { return upper.limbs.limbs + offset(digits); }

        // A limb of that half, or, in lanes that have none, the place that nobody looks at.
        __device__ __forceinline__ u32* limb(bool has_one, u32 digits, int index) const {
            const int unwanted = static_cast<int>(upper.unwanted - upper.limbs.limbs);
            return upper.limbs.limbs + (has_one ? offset(digits) + INSTANCES * index : unwanted);
        }
    };

    __device__ static __forceinline__ Rest square(u32 (&value)[L], const Passage<S, THREADS>& upper,
                                                  const Number<S, THREADS>& spare) {
        const Places places(upper, spare);
        u32 window[L];
        multiply_quarters(window, value, places);
        const u32 above_sums = add_windows(window, places);
        return add_squares(value, above_sums, places);
    }

    // The rows. The limbs that leave go to their places; what is in the windows after the last row is returned. Lane 0
    // multiplies a0 by a1 and the lower half of a2, lane 3 a0 by the upper half of a2 and by a3; lane 1 a1 by a2 and the lower
    // half of a3; lane 2 a1 by the upper half of a3, and then a2 by a3.
    __device__ static __forceinline__ void multiply_quarters(u32 (&last)[L], const u32 (&value)[L], const Places& places) {
        const Number<S, THREADS>& x = places.upper.limbs;
        x.put(value);
        u32 vector[L];
        const bool has_a0 = places.lane == 0 || places.lane == 3;
#pragma unroll
        for (int j = 0; j < L; j++) vector[j] = x[(has_a0 ? 0 : L) + j];
        Window<Shape<1, L>> window;
#pragma unroll 1
        for (int step = 0; step < 3; step++) {
            const u32* multiplier = places.half(step == 0 ? 0x5742 : step == 1 ? 0x6653 : 0x7764);
            // Where nobody reads a multiplier in a later row.
            u32* leaves_to = places.half(step == 0 ? 0xa802 : step == 1 ? 0xb913 : 0x7564);
            if (step == 1) {
#pragma unroll
                for (int j = 0; j < L; j++) vector[j] = places.lane == 2 ? value[j] : vector[j];
            }
#pragma unroll 1
            for (int i = 0; i < HALF; i += ROWS) {
                u32 scalar[ROWS];
#pragma unroll
                for (int row = 0; row < ROWS; row++) scalar[row] = multiplier[INSTANCES * (i + row)];
                Number<S, THREADS>::sync();
#pragma unroll
                for (int row = 0; row < ROWS; row += 2) {
                    window.add_rows(
                        vector, [&](u32) { return scalar[row]; }, [&](u32) { return scalar[row + 1]; },
                        [&](int second, u32 limb) { leaves_to[INSTANCES * (i + row + second)] = limb; });
                }
            }
        }
        Number<S, THREADS>::sync();
        window.limbs(last);
    }

    // Adds what the windows hold, and what has left two lanes for one place, to the parts. The window of lane 0 belongs to the
    // middle of lane 1's part, that of lane 1 to the middle of lane 2's, that of lane 3 to the lower half of lane 2's; that of
    // lane 2 is the lower half of lane 3's. Returns what is above the sums of the part, at most 2.
    __device__ static __forceinline__ u32 add_windows(const u32 (&window)[L], const Places& places) {
        const Passage<S, THREADS>& upper = places.upper;
        const bool adds = places.lane == 1 || places.lane == 2;
        u32 below[L];
#pragma unroll
        for (int j = 0; j < L; j++) below[j] = from_below<S>(window[j]);
        u32 carries[2] = {};
#pragma unroll
        for (int half = 0; half < 4; half++) {
            u32 sum[HALF];
            u32 other[HALF];
#pragma unroll
            for (int j = 0; j < HALF; j++) {
                const int at = half * HALF + j;
                sum[j] = *places.limb(adds, part(half), j);
                if (half < 2) {
                    const u32 above = from_above<S>(window[at]);
                    other[j] = places.lane == 2 ? above : 0;
                } else {
                    // What has left lane 1. What has left lane 3 for the same place is in the part.
                    const u32 left = upper.limbs[at - L];
                    other[j] = places.lane == 1 ? left : 0;
                }
            }
            if (half > 0) {
                set_carry(carries[0]);
#pragma unroll
                for (int j = 0; j < HALF; j++) sum[j] = add_through(sum[j], half < 3 ? below[(half - 1) * HALF + j] : 0);
                carries[0] = carry();
            }
            set_carry(carries[1]);
#pragma unroll
            for (int j = 0; j < HALF; j++) sum[j] = add_through(sum[j], other[j]);
            carries[1] = carry();
#pragma unroll
            for (int j = 0; j < HALF; j++) *places.limb(adds, part(half), j) = sum[j];
        }
        Number<S, THREADS>::sync();
#pragma unroll
        for (int j = 0; j < L; j++) *places.limb(places.lane == 3, part(j / HALF), j % HALF) = below[j];
        return adds ? carries[0] + carries[1] : 0;
    }

    // Each lane's part of the square, and from there the limbs to where they belong.
    __device__ static __forceinline__ Rest add_squares(u32 (&value)[L], u32 above_sums, const Places& places) {
        const Number<S, THREADS>& upper = places.upper.limbs;
        // In lane 0 the lowest quarter of the square, in lane 3 the highest, which get no sums.
        u32 kept[L] = {};
        u32 before = 0;
        u32 sum_carry = 0;
        square_in_lane<L>(value, [&](int i, u32 low, u32 high) {
            const u32 digits = part(2 * i / HALF);
            const bool has_sums = places.digit(digits) != NO_SUMS;
            u32* to[2] = {places.limb(has_sums, digits, 2 * i % HALF), places.limb(has_sums, digits, 2 * i % HALF + 1)};
            const u32 sums[2] = {has_sums ? *to[0] : 0, has_sums ? *to[1] : 0};
            set_carry(sum_carry);
            low = add_through(low, __funnelshift_l(before, sums[0], 1));
            high = add_through(high, __funnelshift_l(sums[0], sums[1], 1));
            sum_carry = carry();
            before = sums[1];
            *to[0] = low;
            *to[1] = high;
            const int at = 2 * i % L;
            kept[at] = has_sums ? kept[at] : low;
            kept[at + 1] = has_sums ? kept[at + 1] : high;
        });
        const u32 above = sum_carry + (before >> (LIMB_BITS - 1)) + 2 * above_sums;
        Number<S, THREADS>::sync();

        // The quarter of this lane in the lower half of the square, and the one in the upper half.
        const u32* in_lower[2] = {places.half(0xb422), places.half(0x7a33)};
        const u32* in_upper[2] = {places.half(0x0096), places.half(0x1158)};
        u32 high[L];
#pragma unroll
        for (int j = 0; j < L; j++) {
            const u32 from_lower = in_lower[j / HALF][INSTANCES * (j % HALF)];
            const u32 from_upper = in_upper[j / HALF][INSTANCES * (j % HALF)];
            value[j] = places.lane == 0 ? kept[j] : from_lower;
            high[j] = places.lane == 3 ? kept[j] : from_upper;
        }
        // Above lane 0's part begins the quarter of lane 2 in the lower half, above the others those of the lanes 0 and 2 in the upper.
        const u32 above_lowest = __shfl_sync(ALL_LANES, above, 0, S::T);
        const u32 above_others = __shfl_sync(ALL_LANES, above, places.lane == 0 ? 1 : 2, S::T);
        high[0] = add_out(high[0], places.lane % 2 == 0 ? above_others : 0);
#pragma unroll
        for (int j = 1; j < L; j++) high[j] = add_through(high[j], 0);
        const u32 above_high = carry();
        upper.put(high);
        return {places.lane == 2 ? above_lowest : 0, above_high};
    }
};

}  // namespace integer
