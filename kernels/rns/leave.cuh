// Converts residues to words, with the exact reduction into [0, M). docs/rns.md, "Leaving".
#pragma once

#include "enter.cuh"

namespace rns {

constexpr u32 ALL_ONES = 0xffffffffu;

// The words of an instance during the conversion, in the operand's memory: word 4 r + t is in slot
// r of lane 4 g + t.
template <class W>
struct WordsOfInstance {
    using S = typename W::S;

    uint2* low;
    uint2* high;
    int h;

    __device__ __forceinline__ WordsOfInstance(const W& w, int instance) : h(instance >> 3) {
        int lane = static_cast<int>(threadIdx.x) & 31;
        int first = 4 * (instance & 7) - lane;
        low = w.operand_b.first + first;
        high = w.operand_a.first + first;
    }

    __device__ __forceinline__ int offset(int word) const { return (word >> 2) * W::OPERAND_STRIDE + (word & 3); }
    __device__ __forceinline__ u32& operator[](int word) const {
        return reinterpret_cast<u32*>(low + offset(word))[h];
    }
    __device__ __forceinline__ u64 sum(int word) const {
        return static_cast<u64>(reinterpret_cast<u32*>(high + offset(word))[h]) << 32 | (*this)[word];
    }
};

// The borrow, all ones or 0, of the words less M 2^shift where `mask` is all ones, and less 0 where
// it is 0. STORE replaces the words with the difference. `modulus` has S::WORDS words.
template <bool STORE, class W>
__device__ __forceinline__ u32 subtract(const WordsOfInstance<W>& words, const u32* modulus, int shift, u32 mask) {
    using S = typename W::S;
    u32 below = 0;
    u64 borrow = 0;
#pragma unroll 1
    for (int first = 0; first < S::WORDS; first += 4) {
        // Read at once, because the next write may overlap.
        uint4 four = *reinterpret_cast<const uint4*>(modulus + first);
        const u32 m[4] = {four.x, four.y, four.z, four.w};
        u32 word[4];
#pragma unroll
        for (int k = 0; k < 4; k++) word[k] = words[first + k];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            borrow = static_cast<u64>(word[k]) - (__funnelshift_l(below, m[k], shift) & mask) - (borrow >> 63);
            below = m[k];
            if (STORE) words[first + k] = static_cast<u32>(borrow);
        }
    }
    borrow = static_cast<u64>(words[S::WORDS]) - (__funnelshift_l(below, 0, shift) & mask) - (borrow >> 63);
    if (STORE) words[S::WORDS] = static_cast<u32>(borrow);
    return static_cast<u32>(borrow >> 32);
}

// Computes the words of z mod M from z / A modulo b_j, for z below 2^LEAVE_BITS M. The current
// matrix is LEAVE.
template <class W>
__device__ __forceinline__ void to_words(ConstResidues<typename W::S> z, u32* out, const u32* const (&modulus)[2],
                                         const u64 (&index)[2], W& w) {
    using S = typename W::S;
    constexpr int COUNT = Constants<S>::LEAVE_WORDS;
    u32 common[2];
    find_common_factors(common, w);

    u32 weights[4];
    u32 sum[S::SUMS];
    uint2 behind = make_uint2(zero_register(), zero_register());
    start_quotient<S>(weights, z, behind, w.weights);
    wait_groups<0>();
    take_sums(weights);
    const Quotient theta = Quotient::of<S>(weights);
    for_each_group<S>([&](auto of) {
        constexpr int group = decltype(of)::number;
        start_product<S>(sum, z, behind, w.matrices.columns(LEAVE, group));
        wait_groups<0>();
        take_sums(sum);
        w.matrices.after_product(LEAVE, group, LEAVE);
#pragma unroll
        for (int slot = 0; slot < S::GROUP_SLOTS; slot++) {
            const int r = group * S::GROUP_SLOTS + slot;
            u64 word[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u64 low = sum[8 * slot + 2 * h] + (static_cast<u64>(sum[8 * slot + 2 * h + 1]) << 8);
                u64 high = sum[8 * slot + 4 + 2 * h] + (static_cast<u64>(sum[8 * slot + 4 + 2 * h + 1]) << 8);
                word[h] = low + (high << 16);
            }
            w.operand_b[r] = make_uint2(static_cast<u32>(word[0]), static_cast<u32>(word[1]));
            w.operand_a[r] = make_uint2(static_cast<u32>(word[0] >> 32), static_cast<u32>(word[1] >> 32));
        }
        w.matrices.after_reduction(LEAVE, group, LEAVE);
    });

    // From here on each lane of the lower half of the warp has its own instance; the upper half is
    // idle.
    int lane = static_cast<int>(threadIdx.x) & 31;
    int instance = lane & 15;
    int h = instance >> 3;
    u64 quotient[2];
    u32 flags[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        u32 low = __shfl_sync(ALL_LANES, theta.low[k], 4 * (instance & 7));
        u32 high = __shfl_sync(ALL_LANES, theta.high[k], 4 * (instance & 7));
        quotient[k] = low + (static_cast<u64>(high) << 16);
        flags[k] = __shfl_sync(ALL_LANES, common[k], 4 * (instance & 7));
    }
    __syncwarp();
    if (lane < INSTANCES_PER_WARP) {
        WordsOfInstance<W> words(w, instance);
        u64 theta_of_instance = h == 0 ? quotient[0] : quotient[1];
        u32 theta_low = static_cast<u32>(theta_of_instance);
        u32 theta_high = static_cast<u32>(theta_of_instance >> 32);
        const u32* minus_b = w.constants + Constants<S>::MINUS_B;
        u64 carry = 0;
#pragma unroll 1
        for (int i = 0; i < COUNT; i++) {
            u64 product = wide_product(theta_low, minus_b[i]);
            carry += words.sum(i);
            u64 low = (carry & 0xffffffff) + (product & 0xffffffff);
            words[i] = static_cast<u32>(low);
            carry = (carry >> 32) + (low >> 32) + (product >> 32) + wide_product(theta_high, minus_b[i]);
        }
        const u32* m = h == 0 ? modulus[0] : modulus[1];
#pragma unroll 1
        for (int shift = S::LEAVE_BITS - 1; shift >= 0; shift--) {
            // All ones if the number is at least M 2^shift.
            u32 mask = ~subtract<false>(words, m, shift, ALL_ONES);
            subtract<true>(words, m, shift, mask);
        }
        u32 flag = h == 0 ? flags[0] : flags[1];
        u32* to = out + (h == 0 ? index[0] : index[1]) * S::WORDS;
#pragma unroll 1
        for (int i = 0; i < S::WORDS; i++) to[i] = words[i] | flag;
    }
    __syncwarp();
}

}  // namespace rns
