// Rows: adds a number times one limb to a window of column sums, and moves the window one limb
// down.
//
// The sums of a lane are in two arrays: one for products whose low word has an even place in the
// window, and one for the others. Every product is therefore added to a pair of registers. Emmart,
// Luitjens, Weems, Woolley, "Optimizing Modular Multiplication for NVIDIA's Maxwell GPUs", ARITH
// 2016; sppark. Bounds: docs/int.md, "Rows".
#pragma once

#include "number.cuh"

namespace integer {

// Adds `scalar * vector` to a window, and moves the window one limb down. `scalar(lowest)` is
// called once the lowest limb of the window is known. Afterwards `even` and `odd` have swapped
// roles.
template <class S, class Scalar>
__device__ __forceinline__ void add_row(u32 (&even)[S::L], u32 (&odd)[S::L], u32& top_low, u32& top_high,
                                        const u32 (&vector)[S::L], Scalar scalar) {
    constexpr int L = S::L;
    even[0] = add_out(even[0], odd[1]);
    const u32 x = scalar(even[0]);
#pragma unroll
    for (int j = 0; j < L - 2; j += 2) mad_through(odd[j], odd[j + 1], vector[j + 1], x, odd[j + 2], odd[j + 3]);
    mad_in(odd[L - 2], odd[L - 1], vector[L - 1], x, top_low, top_high);
    mad_out(even[0], even[1], vector[0], x, even[0], even[1]);
#pragma unroll
    for (int j = 2; j < L; j += 2) mad_through(even[j], even[j + 1], vector[j], x, even[j], even[j + 1]);
    top_low = carry();
    top_high = 0;
    if constexpr (S::T > 1) {
        top_low = add_out(top_low, from_above<S>(even[0]));
        top_high = carry();
    }
}

// The window of a lane between two rows. The value is
//     sum even[j] 2^(32 j) + sum_(j >= 1) odd[j] 2^(32 (j - 1)) + (top_low + 2^32 top_high) 2^(32 (L - 1)).
// odd[0] is the limb that has left the window.
template <class S>
struct Window {
    static constexpr int L = S::L;

    u32 even[L];
    u32 odd[L];
    // Below 2^33: the limb from the lane above, and the carry of the last row.
    u32 top_low;
    u32 top_high;

    // The sum of the limbs, with `more` added to the lowest.
    __device__ __forceinline__ Window(const u32 (&value)[L], u32 more) : top_low(0), top_high(0) {
#pragma unroll
        for (int j = 0; j < L; j++) {
            even[j] = value[j];
            odd[j] = j == 1 ? more : 0;
        }
    }

    __device__ __forceinline__ Window() : top_low(0), top_high(0) {
#pragma unroll
        for (int j = 0; j < L; j++) even[j] = odd[j] = 0;
    }

    // The sums as limbs. Returns the carry, which the lane must add to the next higher one.
    __device__ __forceinline__ u32 limbs(u32 (&value)[L]) const {
        value[0] = add_out(even[0], odd[1]);
#pragma unroll
        for (int j = 1; j < L - 1; j++) value[j] = add_through(even[j], odd[j + 1]);
        value[L - 1] = add_through(even[L - 1], top_low);
        return add_in(top_high, 0);
    }

    // Two rows, after which the roles are as before: see `add_row`. `leaves(row, limb)` gets the
    // limbs that leave the window.
    template <class First, class Second, class Leaves>
    __device__ __forceinline__ void add_rows(const u32 (&vector)[L], First first, Second second, Leaves leaves) {
        add_row<S>(even, odd, top_low, top_high, vector, first);
        leaves(0, even[0]);
        add_row<S>(odd, even, top_low, top_high, vector, second);
        leaves(1, odd[0]);
    }
};

}  // namespace integer
