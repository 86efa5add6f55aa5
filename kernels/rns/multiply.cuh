// Montgomery multiplication x y A^-1 mod M in two halves: `quotient_digits` computes in base A, and
// `new_residues` in base B.
//
// A number x is represented by z_j = x / A modulo b_j. docs/rns.md derives both halves and their
// bounds.
#pragma once

#include "workspace.cuh"

namespace rns {

template <int NUMBER>
struct Group {
    static constexpr int number = NUMBER;
};

// Calls `act` for each group of columns. Loops with long bodies are not always unrolled, and then
// sums would be in memory.
template <class S, int FIRST = 0, class Act>
__device__ __forceinline__ void for_each_group(const Act& act) {
    if constexpr (FIRST < S::GROUPS) {
        act(Group<FIRST>());
        for_each_group<S, FIRST + 1>(act);
    }
}

// Starts steps FROM .. TO of a product of the rows x and the columns of a group of a matrix.
// `behind` is used for slots after the last of x.
template <class S, int FROM = 0, int TO = S::STEPS>
__device__ __forceinline__ void start_product(u32 (&sum)[S::SUMS], ConstResidues<S> x, uint2 behind,
                                              Columns columns) {
    static_assert(2 * S::STEPS <= S::SLOTS + 2, "there is at most one slot behind the last");
    const Matrix<S::ROW_STRIDE> constants(columns.matrix);
    fence_registers();
#pragma unroll
    for (int k = FROM; k < TO; k++) {
        bool whole = 2 * k + 1 < S::SLOTS;
        int next = whole ? 2 * k + 1 : 0;
        u32 upper_0 = whole ? x[0][next] : behind.x;
        u32 upper_1 = whole ? x[1][next] : behind.y;
        auto rows = constants.at(k, columns.block);
        if (k == 0) {
            multiply_add(sum, x[0][0], x[1][0], upper_0, upper_1, rows, 0);
        } else {
            multiply_add(sum, x[0][2 * k], x[1][2 * k], upper_0, upper_1, rows, 1);
        }
    }
    commit_group();
}

// The same for the columns of the weights.
template <class S>
__device__ __forceinline__ void start_quotient(u32 (&sum)[4], ConstResidues<S> z, uint2 behind, u32 weights) {
    const Matrix<128> constants(weights);
    fence_registers();
#pragma unroll
    for (int k = 0; k < S::STEPS; k++) {
        bool whole = 2 * k + 1 < S::SLOTS;
        int next = whole ? 2 * k + 1 : 0;
        u32 upper_0 = whole ? z[0][next] : behind.x;
        u32 upper_1 = whole ? z[1][next] : behind.y;
        auto rows = constants.at(k, 0);
        if (k == 0) {
            multiply_add(sum, z[0][0], z[1][0], upper_0, upper_1, rows, 0);
        } else {
            multiply_add(sum, z[0][2 * k], z[1][2 * k], upper_0, upper_1, rows, 1);
        }
    }
    commit_group();
}

// Two adjacent byte columns, first + 2^8 second. If that may exceed a word, the bits second >> 8 are
// left out, which count 2^16.
template <class S>
__device__ __forceinline__ u32 low_part(u32 first, u32 second) {
    return first + (S::SUMS_ARE_LARGE ? (second & 255) << 8 : second << 8);
}

// The exact quotient Theta of an extension from base B: low + 2^16 high.
struct Quotient {
    u32 low[2];
    u32 high[2];

    // From the sums of the weights, which differ from Theta 2^24 by less than half of 2^24.
    template <class S>
    __device__ __forceinline__ static Quotient of(const u32 (&sum)[4]) {
        Quotient quotient;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 pair = low_part<S>(sum[2 * h], sum[2 * h + 1]);
            u32 bits_48 = 0;
            if constexpr (S::SUMS_ARE_LARGE) {
                // What lane t has above 16 bits belongs to lane t + 1.
                u32 above = sum[2 * h + 1] >> 8;
                u32 below = __shfl_up_sync(ALL_LANES, above, 1, 4);
                pair += threadIdx.x % 4 == 0 ? 0 : below;
                bits_48 = __shfl_sync(ALL_LANES, above, 2, 4);
            }
            u32 bits_0 = __shfl_sync(ALL_LANES, pair, 0, 4);
            u32 bits_16 = __shfl_sync(ALL_LANES, pair, 1, 4);
            u32 bits_32 = __shfl_sync(ALL_LANES, pair, 2, 4);
            u32 lowest = bits_0 + ((bits_16 & 255) << 16) + (1u << 23);
            quotient.low[h] = (lowest >> 24) + (bits_16 >> 8) + ((bits_32 & 255) << 8);
            quotient.high[h] = (bits_32 >> 8) + (bits_48 << 8);
        }
        return quotient;
    }

    // The rows after the last slots of an instance's lanes, if the quotient is part of the product.
    // Products need whole warps, so the compiler must not make a branch of the choice.
    __device__ __forceinline__ u32 as_rows(u32 t, int h) const {
        return if_equal(t, 0, low[h], if_equal(t, 1, high[h], 0));
    }
};

// The four byte columns of slot `slot` of a group, as low + 2^16 high.
template <class S>
__device__ __forceinline__ u32 low_columns(const u32 (&sum)[S::SUMS], int slot, int h) {
    return low_part<S>(sum[8 * slot + 2 * h], sum[8 * slot + 2 * h + 1]);
}

template <class S>
__device__ __forceinline__ u32 high_columns(const u32 (&sum)[S::SUMS], int slot, int h) {
    u32 high = sum[8 * slot + 4 + 2 * h] + (sum[8 * slot + 4 + 2 * h + 1] << 8);
    return S::SUMS_ARE_LARGE ? high + (sum[8 * slot + 2 * h + 1] >> 8) : high;
}

// Congruent to low + 2^16 high, for factors of products.
template <class S>
__device__ __forceinline__ u32 fold_for_product(u32 low, u32 high, Modulus m) {
    return S::FOLDS_LOOSELY ? fold_loosely(low, high, m) : fold(low, high, m);
}

// The purpose of a computation in base A: the digits of a product's quotient, or the residues of
// the operand.
enum class InA { SQUARE, PRODUCT, OPERAND };

// The constants of a group's slots in scratch memory, which are read while its product is computed.
// Elsewhere they are read where they are used.
template <class W, bool READ_AHEAD>
struct FactorsOfGroup {
    __device__ __forceinline__ FactorsOfGroup(int, const W&) {}
    __device__ __forceinline__ uint4 of(int, int r, const W& w) const { return w.factor_of(r); }
};

template <class W>
struct FactorsOfGroup<W, true> {
    uint4 factors[W::S::GROUP_SLOTS];

    __device__ __forceinline__ FactorsOfGroup(int group, const W& w) {
#pragma unroll
        for (int slot = 0; slot < W::S::GROUP_SLOTS; slot++) factors[slot] = w.factor_of(group * W::S::GROUP_SLOTS + slot);
    }
    __device__ __forceinline__ uint4 of(int slot, int, const W&) const { return factors[slot]; }
};

// The slots of `group` in base A, from the sums of a finished product.
template <InA WHAT, class W, class Factors>
__device__ __forceinline__ void digits_of_group(const u32 (&sum)[W::S::SUMS], int group, const Quotient& theta,
                                                const Factors& factors, Residues<typename W::S> x, const W& w) {
    using S = typename W::S;
#pragma unroll
    for (int slot = 0; slot < S::GROUP_SLOTS; slot++) {
        const int r = group * S::GROUP_SLOTS + slot;
        Modulus m = w.modulus_a(r);
        u32 residue[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 low = low_columns<S>(sum, slot, h);
            u32 high = high_columns<S>(sum, slot, h);
            if constexpr (!S::QUOTIENT_IN_PRODUCT) {
                low += theta.low[h];
                high += theta.high[h];
            }
            residue[h] = fold_for_product<S>(low, high, m);
        }
        if constexpr (WHAT == InA::OPERAND) {
            w.operand_a[r] = make_uint2(residue[0], residue[1]);
        } else {
            uint2 y = make_uint2(residue[0], residue[1]);
            if constexpr (WHAT == InA::PRODUCT) y = w.operand_a[r];
            uint4 factor = factors.of(slot, r, w);
            x[0][r] = times_constant(times(residue[0], y.x, m), factor.x, factor.z, m);
            x[1][r] = times_constant(times(residue[1], y.y, m), factor.y, factor.w, m);
        }
    }
}

// Extends z from base B to base A. There:
//   SQUARE, PRODUCT   x becomes the digits of -z^2 M^-1 or of -z y M^-1 in base A;
//   OPERAND           z is the operand, and its residues go to `operand_a`.
template <InA WHAT, class W>
__device__ __forceinline__ void quotient_digits(ConstResidues<typename W::S> z, Residues<typename W::S> x, W& w) {
    using S = typename W::S;
    constexpr bool IN_PRODUCT = S::QUOTIENT_IN_PRODUCT;
    constexpr Which FOLLOWING = WHAT == InA::OPERAND ? B_TO_A : A_TO_B;
    u32 weights[4];
    u32 sum[S::SUMS];
    uint2 behind = make_uint2(zero_register(), zero_register());
    start_quotient<S>(weights, z, behind, w.weights);
    start_product<S, 0, IN_PRODUCT ? S::STEPS - 1 : S::STEPS>(sum, z, behind, w.matrices.columns(B_TO_A, 0));
    wait_groups<1>();
    take_sums(weights);
    const Quotient theta = Quotient::of<S>(weights);
    if constexpr (IN_PRODUCT) {
        uint2 rows = make_uint2(theta.as_rows(w.t, 0), theta.as_rows(w.t, 1));
        start_product<S, S::STEPS - 1>(sum, z, rows, w.matrices.columns(B_TO_A, 0));
    }
    for_each_group<S>([&](auto of) {
        constexpr int group = decltype(of)::number;
        if (group > 0) start_product<S>(sum, z, behind, w.matrices.columns(B_TO_A, group));
        const FactorsOfGroup<W, S::FACTORS_IN_SCRATCH && WHAT != InA::OPERAND> factors(group, w);
        wait_groups<0>();
        take_sums(sum);
        w.matrices.after_product(B_TO_A, group, FOLLOWING);
        digits_of_group<WHAT>(sum, group, theta, factors, x, w);
        w.matrices.after_reduction(B_TO_A, group, FOLLOWING);
    });
}

// The slots of `group` in base B, from the sums of a finished product.
template <bool SQUARE, class W, class Beside>
__device__ __forceinline__ void residues_of_group(const u32 (&sum)[W::S::SUMS], int group, Residues<typename W::S> z,
                                                  const W& w, Beside& beside) {
    using S = typename W::S;
#pragma unroll
    for (int slot = 0; slot < S::GROUP_SLOTS; slot++) {
        const int r = group * S::GROUP_SLOTS + slot;
        Modulus m = w.modulus_b(r);
        uint2 modulus;
        if (r < S::MODULUS_SLOTS_IN_SHARED) {
            modulus = w.modulus[r];
        } else {
            const int upper = r < S::MODULUS_SLOTS_IN_SHARED ? 0 : r - S::MODULUS_SLOTS_IN_SHARED;
            modulus = make_uint2(w.upper_modulus[0][upper], w.upper_modulus[1][upper]);
        }
        uint2 y = make_uint2(z[0][r], z[1][r]);
        if constexpr (!SQUARE) y = w.operand_b[r];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 quotient = fold_for_product<S>(low_columns<S>(sum, slot, h), high_columns<S>(sum, slot, h), m);
            u64 product = wide_product(z[h][r], h == 0 ? y.x : y.y);
            z[h][r] = reduce(product + wide_product(quotient, h == 0 ? modulus.x : modulus.y), m);
        }
        beside.after_slot(r);
    }
}

// Extends the quotient digits x from base A to base B. There, z becomes z^2 or z y, plus the
// quotient times M, divided by A.
template <bool SQUARE, class W, class Beside>
__device__ __forceinline__ void new_residues(ConstResidues<typename W::S> x, Residues<typename W::S> z, W& w,
                                             Beside& beside) {
    using S = typename W::S;
    u32 sum[S::SUMS];
    uint2 behind = make_uint2(zero_register(), zero_register());
    for_each_group<S>([&](auto of) {
        constexpr int group = decltype(of)::number;
        start_product<S>(sum, x, behind, w.matrices.columns(A_TO_B, group));
        wait_groups<0>();
        take_sums(sum);
        w.matrices.after_product(A_TO_B, group, B_TO_A);
        residues_of_group<SQUARE>(sum, group, z, w, beside);
        w.matrices.after_reduction(A_TO_B, group, B_TO_A);
    });
}

// No work beside a product.
struct Nothing {
    __device__ __forceinline__ void after_slot(int) {}
};

// Replaces z with z y / A modulo M.
template <class W>
__device__ __forceinline__ void multiply(Residues<typename W::S> z, W& w) {
    Nothing nothing;
    u32 x[2][W::S::SLOTS];
    quotient_digits<InA::PRODUCT>(z, x, w);
    new_residues<false>(x, z, w, nothing);
}

// Replaces z with z^2 / A modulo M. `beside` is called after each slot of the result, when
// registers become free.
template <class W, class Beside>
__device__ __forceinline__ void square(Residues<typename W::S> z, W& w, Beside& beside) {
    u32 x[2][W::S::SLOTS];
    quotient_digits<InA::SQUARE>(z, x, w);
    new_residues<true>(x, z, w, beside);
}

// Completes the operand, from `operand_b`, which equals y.
template <class W>
__device__ __forceinline__ void complete_operand(ConstResidues<typename W::S> y, W& w) {
    u32 unused[2][W::S::SLOTS];
    quotient_digits<InA::OPERAND>(y, unused, w);
}

}  // namespace rns
