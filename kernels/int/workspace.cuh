// What an instance works with in shared memory, and the way in and out of Montgomery form.
#pragma once

#include "quarters.cuh"

namespace integer {

template <class S_, int THREADS_>
struct Workspace {
    using S = S_;
    static constexpr int THREADS = THREADS_;
    static constexpr int L = S::L;
    static constexpr int R_BITS = LIMB_BITS * S::N;

    // The multiplier of products. In quarters it stands next to `upper`, with which squares share it.
    Number<S, THREADS> operand;
    Modulus<S, THREADS> p;
    Passage<S, THREADS> upper;

    static constexpr int BYTES = 2 * Number<S, THREADS>::BYTES + Passage<S, THREADS>::BYTES;

    __device__ __forceinline__ explicit Workspace(u32* shared)
        : operand(shared + (IN_QUARTERS<S> ? Number<S, THREADS>::BYTES / 4 : 0)),
          p{Number<S, THREADS>(shared + (IN_QUARTERS<S> ? 0 : Number<S, THREADS>::BYTES / 4)), 0},
          upper(shared + 2 * (Number<S, THREADS>::BYTES / 4)) {}

    // Takes an odd modulus. After its words stand those of r2 = 2^(2 * r2_bits) mod P, which go to `r2`.
    __device__ __forceinline__ void take_modulus(u32 (&r2)[L], const u64* words) {
        import_words<S>(r2, words);
        p.limbs.put(r2);
        p.negated_inverse = negated_inverse(static_cast<u32>(words[0]));
        import_words<S>(r2, words + S::N / 2);
    }

    // `steps` products value * operand / R mod P, one after the other, each after prepare(step). All of them
    // are this one piece of code.
    template <class Prepare>
    __device__ __forceinline__ void products(u32 (&value)[L], int steps, Prepare prepare) const {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            prepare(step);
            multiply<S, THREADS>(value, value, operand, upper, p);
        }
    }

    // The narrowest Montgomery parameters that it takes: 2 * r2_bits must exceed R_BITS.
    static constexpr int min_r2_bits() { return R_BITS / 2 + 1; }

    // How many products lead from r2 = 2^(2 * r2_bits) mod P to R^2 mod P, where min_r2_bits() <= r2_bits <= 32 N.
    // r2_bits is public.
    //
    // Squaring doubles f where the value is 2^f R; multiplication by 2^c adds c - 32 N. docs/int.md,
    // "Entering Montgomery form".
    __device__ static __forceinline__ int r2_steps(int r2_bits) {
        if (r2_bits == R_BITS) return 0;
        int steps = 1;
#pragma unroll 1
        for (int f = 2 * r2_bits - R_BITS; f <= R_BITS; f *= 2) steps++;
        return steps;
    }

    // Prepares product `step` of `steps` on that way.
    __device__ __forceinline__ void prepare_r2(const u32 (&value)[L], int step, int steps, int r2_bits) const {
        if (step < steps - 1) {
            operand.put(value);
        } else {
            operand.put_power_of_two(2 * R_BITS - ((2 * r2_bits - R_BITS) << step));
        }
    }

    // The canonical value of one that is at most P. The subtraction is always made; a mask chooses.
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
