// The multiplier of a product: N limbs in shared memory, which all lanes of the instance read in
// lockstep.
#pragma once

#include "lanes.cuh"

namespace dpf {

// 2^exponent, 0 <= exponent < 52 * N. The exponent is public.
template <class S>
__device__ __forceinline__ void power_of_two(double (&value)[S::L], int exponent) {
#pragma unroll
    for (int j = 0; j < S::L; j++) {
        int shift = exponent - LIMB_BITS * (S::lane() * S::L + j);
        value[j] = shift >= 0 && shift < LIMB_BITS ? to_double(1ull << (shift & 63)) : 0.0;
    }
}

template <class S>
__device__ __forceinline__ void one(double (&value)[S::L]) {
    power_of_two<S>(value, 0);
}

// Shared memory of a block. Limb i of instance k of the block is double `i * instances + k`, so
// that neighbouring instances use neighbouring banks. All addresses depend only on positions.
template <class S, int THREADS>
struct Operand {
    static constexpr int INSTANCES = THREADS / S::T;
    static constexpr int BYTES = S::N * INSTANCES * 8;

    double* limbs;

    __device__ __forceinline__ explicit Operand(double* shared) : limbs(shared + threadIdx.x / S::T) {}

    __device__ __forceinline__ double operator[](int index) const { return limbs[index * INSTANCES]; }

    // Replaces limb `j` of this lane. Needs __syncwarp() before the first call and after the last.
    __device__ __forceinline__ void put_limb(int j, double value) const {
        limbs[(S::lane() * S::L + j) * INSTANCES] = value;
    }

    // Replaces the operand with the limbs of this instance's lanes.
    __device__ __forceinline__ void put(const double (&value)[S::L]) const {
        __syncwarp();
#pragma unroll
        for (int j = 0; j < S::L; j++) put_limb(j, value[j]);
        __syncwarp();
    }

    // This lane's limbs.
    __device__ __forceinline__ void get(double (&value)[S::L]) const {
#pragma unroll
        for (int j = 0; j < S::L; j++) value[j] = limbs[(S::lane() * S::L + j) * INSTANCES];
    }

    __device__ __forceinline__ void clear() const {
        double zero[S::L] = {};
        put(zero);
    }

    // Replaces the operand with 2^exponent, 0 <= exponent < 52 * N. The exponent is public.
    __device__ __forceinline__ void put_power_of_two(int exponent) const {
        double value[S::L];
        power_of_two<S>(value, exponent);
        put(value);
    }
};

}  // namespace dpf
