// Numbers of N limbs in shared memory that all lanes of the instance may read.
#pragma once

#include "flag.cuh"

namespace integer {

// Unused words after each half of a number in quarters, as many as a warp has of each limb. Without
// them, the four lanes of an instance, which use halves of neighbouring numbers, would use the same
// bank.
template <class S>
constexpr int GAP = IN_QUARTERS<S> ? 32 / S::T : 0;

// Shared memory of a block. Limb i of instance k of the block is word `i * instances + k`, plus GAP
// in the upper half, so that neighbouring instances use neighbouring banks. All addresses depend
// only on positions.
template <class S, int THREADS>
struct Number {
    static constexpr int INSTANCES = THREADS / S::T;
    static constexpr int BYTES = (S::N * INSTANCES + 2 * GAP<S>) * 4;

    u32* limbs;

    __device__ __forceinline__ explicit Number(u32* shared) : limbs(shared + threadIdx.x / S::T) {}

    // A part of another number of the same block, from its limb `first` on.
    template <class Whole>
    __device__ __forceinline__ Number(const Number<Whole, THREADS>& whole, int first)
        : limbs(whole.limbs + first * INSTANCES) {
        static_assert(Whole::T == S::T, "the same instances");
    }

    // Any limb of the instance.
    __device__ __forceinline__ u32& operator[](int index) const {
        return limbs[index * INSTANCES + (GAP<S> > 0 && index >= S::N / 2 ? GAP<S> : 0)];
    }

    // A limb of this lane.
    __device__ __forceinline__ u32& own(int j) const { return in_half(S::lane() * S::L, j); }

    // Limb `first + offset`, which is in the same half of the number as limb `first`.
    __device__ __forceinline__ u32& in_half(int first, int offset) const {
        if constexpr (GAP<S> == 0) return limbs[(first + offset) * INSTANCES];
        return (&(*this)[first])[offset * INSTANCES];
    }

    // Replaces the number with the limbs of this instance's lanes.
    __device__ __forceinline__ void put(const u32 (&value)[S::L]) const {
        sync();
#pragma unroll
        for (int j = 0; j < S::L; j++) own(j) = value[j];
        sync();
    }

    // This lane's limbs.
    __device__ __forceinline__ void get(u32 (&value)[S::L]) const {
#pragma unroll
        for (int j = 0; j < S::L; j++) value[j] = own(j);
    }

    __device__ __forceinline__ void clear() const {
        u32 zero[S::L] = {};
        put(zero);
    }

    // Replaces the number with 2^exponent, 0 <= exponent < 32 N. The exponent is public.
    __device__ __forceinline__ void put_power_of_two(int exponent) const {
        sync();
#pragma unroll
        for (int j = 0; j < S::L; j++) {
            int shift = exponent - LIMB_BITS * (S::lane() * S::L + j);
            own(j) = shift >= 0 && shift < LIMB_BITS ? 1u << (shift & 31) : 0;
        }
        sync();
    }

    // Orders a write by one lane before a read by another.
    __device__ static __forceinline__ void sync() {
        if constexpr (S::T > 1) __syncwarp();
    }
};

// A number that lanes write for each other. All lanes execute the same code without branches: lanes
// that have nothing to write or read use a place of their own.
template <class S, int THREADS>
struct Passage {
    static constexpr int BYTES = Number<S, THREADS>::BYTES + (S::T > 1 ? THREADS * 4 : 0);

    Number<S, THREADS> limbs;
    u32* unwanted;

    __device__ __forceinline__ explicit Passage(u32* shared)
        : limbs(shared), unwanted(shared + Number<S, THREADS>::BYTES / 4 + threadIdx.x) {
        if constexpr (S::T > 1) *unwanted = 0;
    }

    __device__ __forceinline__ Passage(const Number<S, THREADS>& limbs, u32* unwanted)
        : limbs(limbs), unwanted(unwanted) {}

    // Limb `index` of the instance in the lane `lane`; in other lanes a place that is never read.
    __device__ __forceinline__ u32* in_lane(int lane, int index) const {
        if constexpr (S::T == 1) return &limbs[index];
        return S::lane() == lane ? &limbs[index] : unwanted;
    }

    // Replaces limb `first + offset`, which is in the same half as limb `first`, with the value of
    // the lowest lane.
    __device__ __forceinline__ void put_lowest(int first, int offset, u32 value) const {
        u32* limb = &limbs.in_half(first, offset);
        if constexpr (S::T == 1) {
            *limb = value;
        } else {
            *(S::lane() == 0 ? limb : unwanted) = value;
        }
    }

    __device__ __forceinline__ void clear() const {
        limbs.clear();
        if constexpr (S::T > 1) *unwanted = 0;
    }
};

// 1, in this lane's limbs.
template <class S>
__device__ __forceinline__ void one(u32 (&value)[S::L]) {
#pragma unroll
    for (int j = 0; j < S::L; j++) value[j] = j == 0 && S::lane() == 0 ? 1 : 0;
}

// This lane's limbs of a number in 64-bit words, as wide as the shape.
template <class S>
__device__ __forceinline__ void import_words(u32 (&limbs)[S::L], const u64* words) {
#pragma unroll
    for (int j = 0; j < S::L; j += 2) {
        u64 word = words[(S::lane() * S::L + j) / 2];
        limbs[j] = static_cast<u32>(word);
        limbs[j + 1] = static_cast<u32>(word >> LIMB_BITS);
    }
}

template <class S>
__device__ __forceinline__ void export_words(u64* words, const u32 (&limbs)[S::L]) {
#pragma unroll
    for (int j = 0; j < S::L; j += 2) {
        words[(S::lane() * S::L + j) / 2] = static_cast<u64>(limbs[j + 1]) << LIMB_BITS | limbs[j];
    }
}

}  // namespace integer
