// The distribution of one instance over the lanes of a warp, and 32-bit limbs with the carry flag.
//
// An instance has N = T * L limbs of 32 bits. T adjacent lanes (T a power of two, at most 32) hold
// L limbs each, with the least significant limbs in the lowest lane. Each warp works in lockstep on
// 32 / T instances. All shuffles name all 32 lanes, and source lanes depend only on the lane's own
// number.
#pragma once

namespace integer {

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr int LIMB_BITS = 32;
constexpr u32 ALL_LANES = 0xffffffffu;

template <int T_, int L_>
struct Shape {
    static constexpr int T = T_;
    static constexpr int L = L_;
    static constexpr int N = T_ * L_;
    static_assert(T >= 1 && T <= 32 && (T & (T - 1)) == 0, "an instance takes a power of two of lanes");
    static_assert(L >= 4 && L % 2 == 0, "limbs are multiplied in pairs");

    // This lane's number within its instance, 0 for the least significant limbs.
    __device__ static __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & (T - 1); }
};

// Whether squares are computed in quarters of the number, one in each lane: quarters.cuh.
template <class S>
constexpr bool IN_QUARTERS = S::T == 4 && S::L >= 24;

// The value in the lowest lane of this instance.
template <class S>
__device__ __forceinline__ u32 from_lowest(u32 x) {
    if constexpr (S::T == 1) return x;
    return __shfl_sync(ALL_LANES, x, 0, S::T);
}

// The value in the highest lane of this instance.
template <class S>
__device__ __forceinline__ u32 from_highest(u32 x) {
    if constexpr (S::T == 1) return x;
    return __shfl_sync(ALL_LANES, x, S::T - 1, S::T);
}

// The value of the next lower lane; 0 in the lowest.
template <class S>
__device__ __forceinline__ u32 from_below(u32 x) {
    if constexpr (S::T == 1) return 0;
    u32 moved = __shfl_sync(ALL_LANES, x, S::lane() - 1, S::T);
    return S::lane() == 0 ? 0 : moved;
}

// The value of the next higher lane; 0 in the highest.
template <class S>
__device__ __forceinline__ u32 from_above(u32 x) {
    if constexpr (S::T == 1) return 0;
    u32 moved = __shfl_sync(ALL_LANES, x, S::lane() + 1, S::T);
    return S::lane() == S::T - 1 ? 0 : moved;
}

}  // namespace integer
