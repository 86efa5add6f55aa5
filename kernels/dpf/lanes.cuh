// The distribution of one instance over the lanes of a warp.
//
// An instance has N = T * L limbs. T adjacent lanes (T a power of two, at most 32) hold L limbs
// each, with the least significant limbs in the lowest lane. Each warp works in lockstep on 32 / T
// instances. All shuffles name all 32 lanes, and source lanes depend only on the lane's own number.
#pragma once

#include "sample.cuh"

namespace dpf {

constexpr u32 ALL_LANES = 0xffffffffu;

template <int T_, int L_>
struct Shape {
    static constexpr int T = T_;
    static constexpr int L = L_;
    static constexpr int N = T_ * L_;
    static_assert(T >= 1 && T <= 32 && (T & (T - 1)) == 0, "an instance takes a power of two of lanes");
    static_assert(L >= 2, "the carry moves through two limbs of a lane");

    // This lane's number within its instance, 0 for the least significant limbs.
    __device__ static __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & (T - 1); }
};

// The value in lane `source` of this instance.
template <class S>
__device__ __forceinline__ double from_lane(double x, int source) {
    if constexpr (S::T == 1) return x;
    return __shfl_sync(ALL_LANES, x, source, S::T);
}

// The value of the next lower lane; 0 in the lowest.
template <class S>
__device__ __forceinline__ u64 from_below(u64 x) {
    if constexpr (S::T == 1) return 0;
    u64 moved = __shfl_sync(ALL_LANES, x, S::lane() - 1, S::T);
    return S::lane() == 0 ? 0 : moved;
}

// The value of the next higher lane; in the highest lane, that of the lowest.
template <class S>
__device__ __forceinline__ u64 from_above(u64 x) {
    if constexpr (S::T == 1) return x;
    return __shfl_sync(ALL_LANES, x, S::lane() + 1, S::T);
}

}  // namespace dpf
