// Squares with half of the products in four lanes: docs/int.md, "Squaring".
#pragma once

#include "square.cuh"

namespace integer {

// x = a0 + a1 Q + a2 Q^2 + a3 Q^3, Q = 2^(32 L), with a quarter in each lane.
//
// First, the six products of two quarters are computed, in 3 L / 2 rows of each lane, without
// shuffles in between. Then each lane squares its own quarter, and adds twice those products. Lane
// k computes the limbs 2 k L to 2 (k + 1) L - 1 of the square, its part.
//
// The lower half of the square is in `spare`, and the upper half in `upper`, which first holds the
// multipliers. Places are counted in halves of a quarter: 0 to 7 are in `spare`, 8 to 15 in
// `upper`. The place for a lane is its digit in a hexadecimal constant, in which the lowest lane's
// digit is last.
template <int L, int THREADS>
struct Squaring<Shape<4, L>, THREADS, EnableIf<IN_QUARTERS<Shape<4, L>>>> {
    using S = Shape<4, L>;
    static constexpr int INSTANCES = Number<S, THREADS>::INSTANCES;
    static constexpr int HALF = L / 2;
    static constexpr int ROWS = HALF % 8 == 0 ? 8 : 4;
    static_assert(HALF % ROWS == 0, "rows come in whole turns");

    // All places derive from one address, so that the compiler knows that it is in shared memory.
    struct Places {
        u32* first;
        int to_upper;
        int lane;

        __device__ __forceinline__ Places(const Passage<S, THREADS>& upper, const Number<S, THREADS>& spare)
            : first(spare.limbs), to_upper(static_cast<int>(upper.limbs.limbs - spare.limbs)), lane(lane_anew()) {}

        // The lane's number, read again for each square. Otherwise the derived places would occupy
        // registers throughout.
        __device__ static __forceinline__ int lane_anew() {
            int thread;
            asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
            return thread & (S::T - 1);
        }

        // The half whose place is this lane's digit.
        __device__ __forceinline__ u32* half(u32 digits) const {
            const int number = static_cast<int>(digits >> (4 * lane)) & 15;
            return first + (number < 8 ? 0 : to_upper) + (number & 4 ? GAP<S> : 0) + INSTANCES * HALF * (number & 7);
        }
    };

    __device__ static __forceinline__ Rest square(u32 (&value)[L], const Passage<S, THREADS>& upper,
                                                  const Number<S, THREADS>& spare) {
        const Places places(upper, spare);
        u32 window[L];
        multiply_quarters(window, value, upper.limbs, places);
        const u32 above_sums = add_windows(window, places);
        const u32 above = add_squares(value, above_sums, places);
        Number<S, THREADS>::sync();
        spare.get(value);
        // The carry out of a part belongs to the next one.
        const u32 above_lowest = __shfl_sync(ALL_LANES, above, 0, S::T);
        const u32 above_others = __shfl_sync(ALL_LANES, above, places.lane == 0 ? 1 : 2, S::T);
        return {places.lane == 2 ? above_lowest : 0, places.lane == 0 ? above_others : 0,
                places.lane == 1 ? above_others : 0};
    }

    // The rows. Limbs that leave the windows go to their places. The windows after the last row are
    // returned. Lane 0 multiplies a0 by a1 and the lower half of a2, and lane 3 multiplies a0 by
    // the upper half of a2 and by a3. Lane 1 multiplies a1 by a2 and the lower half of a3, and lane
    // 2 multiplies a1 by the upper half of a3, and then a2 by a3.
    __device__ static __forceinline__ void multiply_quarters(u32 (&last)[L], const u32 (&value)[L],
                                                             const Number<S, THREADS>& x, const Places& places) {
        x.put(value);
        u32 vector[L];
        const bool has_a0 = places.lane == 0 || places.lane == 3;
#pragma unroll
        for (int j = 0; j < L; j++) vector[j] = x[(has_a0 ? 0 : L) + j];
        Window<Shape<1, L>> window;
#pragma unroll 1
        for (int step = 0; step < 3; step++) {
            const u32* multiplier = places.half(step == 0 ? 0xdfca : step == 1 ? 0xeedb : 0xffec);
            // Places whose multiplier is not read in a later row. The first limbs out of lane 1
            // belong to 6 and 7, like those of lane 3.
            u32* leaves_to = places.half(step == 0 ? 0x5902 : step == 1 ? 0x6a13 : 0x7b84);
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

    // Adds the windows to the parts, and the limbs that left two lanes for one place. Returns the
    // carry out of the part, at most 2.
    __device__ static __forceinline__ u32 add_windows(const u32 (&window)[L], const Places& places) {
        // The windows of lanes 0 to 3 belong to the places from 5, 9, 12 and 8 on. That of lane 2
        // is the first there; that of lane 3 waits at 14.
        u32* place = places.half(0xec95);
        const u32 mask = places.lane < 2 ? ~0u : 0;
        u32 overflow = add<L>(place, mask, window);
        // From 7 and 11 on. Lanes without a carry use any place of their own.
        overflow = carry_on<HALF>(places.half(0xecb7), overflow);
        // Lane 0 has added to lane 1's part, and lane 1 to that of lane 2.
        const u32 above = from_below<S>(overflow);
        Number<S, THREADS>::sync();

        // The limbs that wait at 0 for lane 1, and at 14 for lane 2; none for the others.
        const u32* source = places.half(0xee00);
        const bool adds = places.lane == 1 || places.lane == 2;
        u32 other[L];
#pragma unroll
        for (int j = 0; j < L; j++) other[j] = adds ? source[INSTANCES * j] : 0;
        overflow = add<L>(places.half(0xc862), ~0u, other);
        // The carry of lane 1 ends with its part, and that of lane 2 continues to the end.
        const u32 ends = places.lane == 1 ? overflow : 0;
        const u32 at_the_end = carry_on<L>(places.half(0xca62), overflow - ends);
        Number<S, THREADS>::sync();
        return above + ends + at_the_end;
    }

    // Adds `addend` to COUNT limbs, which count as 0 if the mask is 0. Returns the carry.
    template <int COUNT>
    __device__ static __forceinline__ u32 add(u32* place, u32 mask, const u32 (&addend)[COUNT]) {
        u32 sum[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; j++) sum[j] = place[INSTANCES * j] & mask;
        sum[0] = add_out(sum[0], addend[0]);
#pragma unroll
        for (int j = 1; j < COUNT; j++) sum[j] = add_through(sum[j], addend[j]);
        const u32 above = carry();
#pragma unroll
        for (int j = 0; j < COUNT; j++) place[INSTANCES * j] = sum[j];
        return above;
    }

    // Adds a carry to COUNT limbs. Returns the next one.
    template <int COUNT>
    __device__ static __forceinline__ u32 carry_on(u32* place, u32 bit) {
        u32 sum[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; j++) sum[j] = place[INSTANCES * j];
        sum[0] = add_out(sum[0], bit);
#pragma unroll
        for (int j = 1; j < COUNT; j++) sum[j] = add_through(sum[j], 0);
        const u32 above = carry();
#pragma unroll
        for (int j = 0; j < COUNT; j++) place[INSTANCES * j] = sum[j];
        return above;
    }

    // Computes each lane's part of the square. Returns the carry out of it.
    __device__ static __forceinline__ u32 add_squares(const u32 (&value)[L], u32 above_sums, const Places& places) {
        u32* part = places.half(0xc840);
        // The lowest and the highest quarter of the square have no sums.
        const u32 masks[2] = {places.lane == 0 ? 0 : ~0u, places.lane == 3 ? 0 : ~0u};
        u32 before = 0;
        u32 sum_carry = 0;
        square_in_lane<L>(value, [&](int i, u32 low, u32 high) {
            u32* to[2] = {&part[INSTANCES * (2 * i)], &part[INSTANCES * (2 * i + 1)]};
            const u32 mask = masks[2 * i / L];
            const u32 sums[2] = {*to[0] & mask, *to[1] & mask};
            set_carry(sum_carry);
            *to[0] = add_through(low, __funnelshift_l(before, sums[0], 1));
            *to[1] = add_through(high, __funnelshift_l(sums[0], sums[1], 1));
            sum_carry = carry();
            before = sums[1];
        });
        return sum_carry + (before >> (LIMB_BITS - 1)) + 2 * above_sums;
    }
};

}  // namespace integer
