// The half exponentiations of the RSA private operation: the entry points rsa_BITS_exp_tT.
// Parameters and the record of a key: kernels/README.md.
#pragma once

#include "power.cuh"

namespace rns {

// Half 2 i is the power of base i modulo p, and half 2 i + 1 that modulo q, with the exponents of
// the key. A base has twice the words of a prime.
template <class S>
struct HalfOperands {
    static constexpr int PARTS = 2;
    // The records of p and of q are alike: prime, r2, exponent. After both come qInv, n, and r2 for
    // n.
    static constexpr int PRIME_RECORD = 3 * S::WORDS;
    static constexpr int KEY_RECORD = 11 * S::WORDS;

    const u32* bases;
    const u32* keys;
    const u32* key_index;

    __device__ __forceinline__ const u32* modulus(u64 half) const {
        return keys + static_cast<u64>(key_index[half >> 1]) * KEY_RECORD + (half & 1) * PRIME_RECORD;
    }
    __device__ __forceinline__ const u32* r2(u64 half) const { return modulus(half) + S::WORDS; }
    __device__ __forceinline__ const u32* exponent(u64 half) const { return modulus(half) + 2 * S::WORDS; }
    __device__ __forceinline__ const u32* base(u64 half, int part) const {
        return bases + ((half >> 1) * 2 + part) * S::WORDS;
    }
};

template <class S, int THREADS>
__device__ __forceinline__ void rsa_exp(u64* halves, const u64* bases, const u64* keys, const u32* key_index,
                                        double* scratch, u32 count, u32 exponent_bits, u32 window) {
    HalfOperands<S> operands{reinterpret_cast<const u32*>(bases), reinterpret_cast<const u32*>(keys), key_index};
    powers<S, THREADS>(operands, reinterpret_cast<u32*>(halves), scratch, 2 * count, exponent_bits, window);
}

}  // namespace rns

// Defines rsa_BITS_exp_tT for keys of BITS bits: T lanes for each half, and T * L moduli in each
// base. It only accepts Montgomery parameters of the primes of BITS / 2 bits.
#define CRT_HALVES_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                   \
        rsa_##BITS##_exp_t##T(rns::u64* halves, const rns::u64* bases, const rns::u64* keys,                        \
                              const rns::u32* key_index, double* scratch, rns::u32 count, rns::u32 exponent_bits,   \
                              rns::u32 /* r2_bits */, rns::u32 window) {                                            \
        static_assert(T == 2, "a warp has 16 instances");                                                           \
        rns::rsa_exp<rns::Shape<T * L, BITS / 2>, THREADS>(halves, bases, keys, key_index, scratch, count,          \
                                                           exponent_bits, window);                                  \
    }
