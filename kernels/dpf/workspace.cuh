// The shared memory of an instance, and its conversion to and from Montgomery form.
#pragma once

#include "square.cuh"
#include "words.cuh"

namespace dpf {

template <class S_, int THREADS_>
struct Workspace {
    using S = S_;
    static constexpr int THREADS = THREADS_;
    static constexpr int L = S::L;
    static constexpr int INSTANCES = THREADS / S::T;
    static constexpr int R_BITS = LIMB_BITS * S::N;

    // The multiplier of products.
    Operand<S, THREADS> operand;
    Modulus<S, THREADS> p;
    Squaring<S, THREADS> square;

    static constexpr int BYTES = Operand<S, THREADS>::BYTES + Modulus<S, THREADS>::BYTES + Squaring<S, THREADS>::BYTES;

    // The place where a lane keeps its limbs of a value between products, in memory that only
    // squarings use. The layout is that of an operand, so that a lane stays within the memory of
    // its own warp: warps are not in lockstep.
    double* parked;

    __device__ __forceinline__ explicit Workspace(double* shared)
        : operand(shared),
          p(shared + Operand<S, THREADS>::BYTES / 8),
          square(shared + (Operand<S, THREADS>::BYTES + Modulus<S, THREADS>::BYTES) / 8),
          parked(shared + (Operand<S, THREADS>::BYTES + Modulus<S, THREADS>::BYTES) / 8 + threadIdx.x / S::T +
                 S::lane() * L * INSTANCES) {
        static_assert(Squaring<S, THREADS>::BYTES >= L * THREADS * 8, "a value fits where squarings work");
    }

    // Keeps a value outside the registers until `unpark` or the next squaring.
    __device__ __forceinline__ void park(const double (&value)[L]) const {
#pragma unroll
        for (int j = 0; j < L; j++) parked[j * INSTANCES] = value[j];
    }

    __device__ __forceinline__ void unpark(double (&value)[L]) const {
#pragma unroll
        for (int j = 0; j < L; j++) value[j] = parked[j * INSTANCES];
    }

    // Loads an odd modulus of `count` words. The words of r2 = 2^(2 * r2_bits) mod P follow, and go
    // to `r2`.
    __device__ __forceinline__ void take_modulus(double (&r2)[L], const u64* words, int count) {
        import_words<S>(r2, words, count);
        p.put(r2, to_double(negated_inverse(words[0])));
        import_words<S>(r2, words + count, count);
    }

    // Computes `steps` products value * operand / R mod P in sequence, each after prepare(step).
    // All of them share this code.
    template <class Prepare>
    __device__ __forceinline__ void products(double (&value)[L], int steps, Prepare prepare) const {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            prepare(step);
            multiply<S>(value, value, operand, p);
        }
    }

    // The narrowest Montgomery parameters: 2 * r2_bits must exceed R_BITS.
    static constexpr int min_r2_bits() { return R_BITS / 2 + 1; }

    // The number of products from r2 = 2^(2 * r2_bits) mod P to R^2 mod P, where min_r2_bits() <=
    // r2_bits < 52 N. r2_bits is public.
    //
    // For a value 2^f R, squaring doubles f, and multiplication by 2^c adds c - 52 N. docs/dpf.md,
    // "Entering Montgomery form".
    __device__ static __forceinline__ int r2_steps(int r2_bits) {
        int steps = 1;
#pragma unroll 1
        for (int f = 2 * r2_bits - R_BITS; f <= R_BITS; f *= 2) steps++;
        return steps;
    }

    // Prepares product `step` of these `steps`.
    __device__ __forceinline__ void prepare_r2(const double (&value)[L], int step, int steps, int r2_bits) const {
        if (step < steps - 1) {
            operand.put(value);
        } else {
            operand.put_power_of_two(2 * R_BITS - ((2 * r2_bits - R_BITS) << step));
        }
    }

    // The canonical limbs, in [0, 2^52), of a value below 2 P.
    __device__ __forceinline__ void canonical(u64 (&result)[L], const double (&value)[L]) const {
        double modulus[L];
        p.get(modulus);
#pragma unroll
        for (int j = 0; j < L; j++) result[j] = to_column(value[j]);
        reduce_once<S>(result, modulus);
    }

    // Writes limbs in [0, 2^52) as `count` words. Overwrites the operand.
    __device__ __forceinline__ void write_words(u64* words, int count, const u64 (&limbs)[L]) const {
        double value[L];
#pragma unroll
        for (int j = 0; j < L; j++) value[j] = from_bits(limbs[j]);
        operand.put(value);
#pragma unroll 1
        for (int i = 0; i < count; i += S::T) {
            int word = i + S::lane();
            words[word] = word_of_limbs<S>(word, [&](u32 index) { return bits_of(operand[index]); });
        }
    }

    __device__ __forceinline__ void clear() const {
        operand.clear();
        p.clear();
        square.clear();
    }
};

}  // namespace dpf
