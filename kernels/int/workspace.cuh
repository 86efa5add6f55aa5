// The shared memory of an instance, and its conversion to and from Montgomery form.
#pragma once

#include "quarters.cuh"

namespace integer {

template <class S_, int THREADS_>
struct Workspace {
    using S = S_;
    static constexpr int THREADS = THREADS_;
    static constexpr int L = S::L;
    static constexpr int R_BITS = LIMB_BITS * S::N;

    // The multiplier of products. In quarters it is next to `upper`, and squares use both.
    Number<S, THREADS> operand;
    Modulus<S, THREADS> p;
    Passage<S, THREADS> upper;

    static constexpr int BYTES = 2 * Number<S, THREADS>::BYTES + Passage<S, THREADS>::BYTES;

    __device__ __forceinline__ explicit Workspace(u32* shared)
        : operand(shared + (IN_QUARTERS<S> ? Number<S, THREADS>::BYTES / 4 : 0)),
          p{Number<S, THREADS>(shared + (IN_QUARTERS<S> ? 0 : Number<S, THREADS>::BYTES / 4)), 0},
          upper(shared + 2 * (Number<S, THREADS>::BYTES / 4)) {}

    // Loads an odd modulus. The words of r2 = 2^(2 * r2_bits) mod P follow, and go to `r2`.
    __device__ __forceinline__ void take_modulus(u32 (&r2)[L], const u64* words) {
        import_words<S>(r2, words);
        p.limbs.put(r2);
        p.negated_inverse = negated_inverse(static_cast<u32>(words[0]));
        import_words<S>(r2, words + S::N / 2);
    }

    // Computes `steps` products value * operand / R mod P in sequence, each after prepare(step).
    // All of them share this code.
    template <class Prepare>
    __device__ __forceinline__ void products(u32 (&value)[L], int steps, Prepare prepare) const {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            prepare(step);
            multiply<S, THREADS>(value, value, operand, upper, p);
        }
    }

    // The narrowest Montgomery parameters: 2 * r2_bits must exceed R_BITS.
    static constexpr int min_r2_bits() { return R_BITS / 2 + 1; }

    // The number of products from r2 = 2^(2 * r2_bits) mod P to R^2 mod P, where min_r2_bits() <=
    // r2_bits <= 32 N. r2_bits is public.
    //
    // For a value 2^f R, squaring doubles f, and multiplication by 2^c adds c - 32 N. docs/int.md,
    // "Entering Montgomery form".
    __device__ static __forceinline__ int r2_steps(int r2_bits) {
        if (r2_bits == R_BITS) return 0;
        int steps = 1;
#pragma unroll 1
        for (int f = 2 * r2_bits - R_BITS; f <= R_BITS; f *= 2) steps++;
        return steps;
    }

    // Prepares product `step` of these `steps`.
    __device__ __forceinline__ void prepare_r2(const u32 (&value)[L], int step, int steps, int r2_bits) const {
        if (step < steps - 1) {
            operand.put(value);
        } else {
            operand.put_power_of_two(2 * R_BITS - ((2 * r2_bits - R_BITS) << step));
        }
    }

    // The canonical form of a value that is at most P. The subtraction is always computed, and a
    // mask chooses.
    __device__ __forceinline__ void canonical(u32 (&value)[L]) const {
        u32 modulus[L];
        u32 difference[L];
        p.limbs.get(modulus);
#pragma unroll
        for (int j = 0; j < L; j++) difference[j] = value[j];
        const u32 keep = subtract<S>(difference, modulus, ~0u);
#pragma unroll
        for (int j = 0; j < L; j++) value[j] = (value[j] & keep) | (difference[j] & ~keep);
    }

    __device__ __forceinline__ void clear() const {
        operand.clear();
        p.limbs.clear();
        upper.clear();
    }
};

}  // namespace integer
