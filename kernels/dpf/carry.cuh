// Carries: a single step between multiplications, and the full resolution at the end.
//
// After Emmart, Zheng, Weems, ARITH 2018. Derivations: docs/dpf.md, "Carries".
#pragma once

#include "lanes.cuh"

namespace dpf {

// Turns column sums below 2^63 into limbs in [0, 2^52] with the same value. Only column 1 of a lane
// can reach 2^52. The value must be below 2^(52 N), so that nothing leaves the highest lane.
//
// Two passes with a fixed number of steps. Carries run through the lane. The carry out of a lane
// moves to the next one, passes through column 0, and stops in column 1.
template <class S>
__device__ __forceinline__ void resolve_single_hop(u64 (&column)[S::L]) {
#pragma unroll
    for (int j = 1; j < S::L; j++) {
        column[j] += column[j - 1] >> LIMB_BITS;
        column[j - 1] &= LIMB_MASK;
    }
    if constexpr (S::T > 1) {
        u64 carry = from_below<S>(column[S::L - 1] >> LIMB_BITS);
        column[S::L - 1] &= LIMB_MASK;
        column[0] += carry;
        column[1] += column[0] >> LIMB_BITS;
        column[0] &= LIMB_MASK;
    }
}

// Resolves carries through the whole number, giving limbs in [0, 2^52). Columns that are negative
// in two's complement borrow. Returns the carry out of the highest lane (0, or -1 for a borrow), in
// every lane. Columns must be above -2^62 and below 2^62. Takes T passes for any value.
template <class S>
__device__ __forceinline__ long long resolve_fully(u64 (&column)[S::L]) {
    long long out = 0;
#pragma unroll 1
    for (int pass = 0; pass < S::T; pass++) {
        long long carry = 0;
#pragma unroll
        for (int j = 0; j < S::L; j++) {
            column[j] += static_cast<u64>(carry);
            carry = static_cast<long long>(column[j]) >> LIMB_BITS;
            column[j] &= LIMB_MASK;
        }
        out += S::lane() == S::T - 1 ? carry : 0;
        column[0] += from_below<S>(static_cast<u64>(carry));
    }
    if constexpr (S::T > 1) {
        out = static_cast<long long>(__shfl_sync(ALL_LANES, static_cast<u64>(out), S::T - 1, S::T));
    }
    return out;
}

// Subtracts the modulus if the result is not negative. In: limbs, in [0, 2^52], of a value below 2
// * modulus. Out: limbs, in [0, 2^52), of the canonical value in [0, modulus). The subtraction is
// always computed, and a mask chooses.
template <class S>
__device__ __forceinline__ void reduce_once(u64 (&value)[S::L], const double (&modulus)[S::L]) {
    resolve_fully<S>(value);
    u64 difference[S::L];
#pragma unroll
    for (int j = 0; j < S::L; j++) difference[j] = value[j] - to_column(modulus[j]);
    u64 keep = static_cast<u64>(resolve_fully<S>(difference));
#pragma unroll
    for (int j = 0; j < S::L; j++) value[j] = (value[j] & keep) | (difference[j] & ~keep);
}

}  // namespace dpf
