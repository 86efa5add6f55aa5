// Converts words to residues, and computes the constants of a modulus. docs/rns.md, "Entering".
#pragma once

#include "multiply.cuh"

namespace rns {

// Two numbers of S::WORDS words, for the lane's two instances, as z / A modulo b_j. The current
// matrix is ENTER.
template <class W>
__device__ __forceinline__ void from_words(Residues<typename W::S> z, const u32* words_0, const u32* words_1,
                                           W& w) {
    using S = typename W::S;
    u32 x[2][S::SLOTS];
#pragma unroll
    for (int r = 0; r < S::SLOTS; r++) {
        bool inside = 4 * r < S::WORDS;
        x[0][r] = inside ? words_0[inside ? 4 * r + w.t : 0] : zero_register();
        x[1][r] = inside ? words_1[inside ? 4 * r + w.t : 0] : zero_register();
    }
    u32 sum[S::SUMS];
    uint2 behind = make_uint2(zero_register(), zero_register());
    for_each_group<S>([&](auto of) {
        constexpr int group = decltype(of)::number;
        // Nothing is added to these zeros. Without them, ptxas 12 and 13 treat the product of the
        // first group as unused and remove it; kernels/build_ptx --ptxas counts.
#pragma unroll
        for (int i = 0; i < S::SUMS; i++) sum[i] = zero_register();
        start_product<S>(sum, x, behind, w.matrices.columns(ENTER, group));
        wait_groups<0>();
        take_sums(sum);
        w.matrices.after_product(ENTER, group, ENTER);
#pragma unroll
        for (int slot = 0; slot < S::GROUP_SLOTS; slot++) {
            const int r = group * S::GROUP_SLOTS + slot;
            Modulus m = w.modulus_b(r);
#pragma unroll
            for (int h = 0; h < 2; h++) z[h][r] = fold(low_columns<S>(sum, slot, h), high_columns<S>(sum, slot, h), m);
        }
        w.matrices.after_reduction(ENTER, group, ENTER);
    });
}

// Loads M / A modulo b_j, canonical, for products.
template <class W>
__device__ __forceinline__ void take_modulus(ConstResidues<typename W::S> z, W& w) {
    using S = typename W::S;
#pragma unroll
    for (int r = 0; r < S::SLOTS; r++) {
        Modulus m = w.modulus_b(r);
        uint2 value = make_uint2(subtract_twice(z[0][r], m), subtract_twice(z[1][r], m));
        if (r < S::MODULUS_SLOTS_IN_SHARED) {
            w.modulus[r] = value;
        } else {
            const int upper = r < S::MODULUS_SLOTS_IN_SHARED ? 0 : r - S::MODULUS_SLOTS_IN_SHARED;
            w.upper_modulus[0][upper] = value.x;
            w.upper_modulus[1][upper] = value.y;
        }
    }
}

// The factor -M^-1 ... and its quotient for one residue, from -M / B modulo a_i and gamma_i.
__device__ __forceinline__ uint2 make_factor(u32 residue, u32 gamma, Modulus m) {
    u32 factor = times(inverse(residue, m), gamma, m);
    factor = subtract_once(subtract_twice(factor, m), m);
    return make_uint2(factor, quotient_of_factor(factor, m));
}

// Makes the factors of base A from -M / B modulo a_i in `operand_a`.
template <class W>
__device__ __forceinline__ void make_factors(W& w) {
    using S = typename W::S;
    const u32* gamma = w.constants + Constants<S>::GAMMA + w.t;
#pragma unroll 1
    for (int r = 0; r < S::SLOTS; r++) {
        Modulus m = w.modulus_a(r);
        uint2 residue = w.operand_a[r];
        uint2 first = make_factor(residue.x, gamma[4 * r], m);
        uint2 second = make_factor(residue.y, gamma[4 * r], m);
        if constexpr (S::FACTORS_IN_REGISTERS) {
            w.operand_b[r] = make_uint2(first.x, second.x);
            w.quotients[r] = make_uint2(first.y, second.y);
        } else {
            w.factors_and_quotients[r * W::FACTOR_STRIDE] = make_uint4(first.x, second.x, first.y, second.y);
        }
    }
    if constexpr (S::FACTORS_IN_REGISTERS) w.operand_b.load(w.factor);
}

// All ones for an instance whose modulus has a factor in common with A, otherwise 0. Such a modulus
// has no inverse, and the output is not a power.
template <class W>
__device__ __forceinline__ void find_common_factors(u32 (&found)[2], const W& w) {
    using S = typename W::S;
    found[0] = found[1] = 0;
#pragma unroll
    for (int r = 0; r < S::SLOTS; r++) {
        uint4 factor = w.factor_of(r);
        found[0] |= mask_if_equal(factor.x, 0);
        found[1] |= mask_if_equal(factor.y, 0);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        found[h] |= __shfl_xor_sync(ALL_LANES, found[h], 1);
        found[h] |= __shfl_xor_sync(ALL_LANES, found[h], 2);
    }
}

}  // namespace rns
