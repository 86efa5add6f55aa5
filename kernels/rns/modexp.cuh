// Batch modular exponentiation: the entry points modexp_BITS_tT. Parameters and buffers:
// kernels/README.md.
#pragma once

#include "power.cuh"

namespace rns {

// The operands of an instance: a base, an exponent, and the index of a record of modulus and r2.
template <class S>
struct ModExpOperands {
    static constexpr int PARTS = 1;

    const u32* bases;
    const u32* exponents;
    const u32* params;
    const u32* param_index;

    __device__ __forceinline__ const u32* modulus(u64 instance) const {
        return params + static_cast<u64>(param_index[instance]) * (2 * S::WORDS);
    }
    __device__ __forceinline__ const u32* r2(u64 instance) const { return modulus(instance) + S::WORDS; }
    __device__ __forceinline__ const u32* exponent(u64 instance) const { return exponents + instance * S::WORDS; }
    __device__ __forceinline__ const u32* base(u64 instance, int) const { return bases + instance * S::WORDS; }
};

template <class S, int THREADS>
__device__ __forceinline__ void modexp(u64* out, const u64* base, const u64* exponent, const u64* params,
                                       const u32* param_index, double* scratch, u32 count, u32 exponent_bits,
                                       u32 window) {
    ModExpOperands<S> operands{reinterpret_cast<const u32*>(base), reinterpret_cast<const u32*>(exponent),
                               reinterpret_cast<const u32*>(params), param_index};
    powers<S, THREADS>(operands, reinterpret_cast<u32*>(out), scratch, count, exponent_bits, window);
}

}  // namespace rns

// Defines the entry point modexp_BITS_tT: T lanes for each instance, T * L moduli in each base,
// THREADS threads in a block, and registers for BLOCKS blocks on a multiprocessor. It only accepts
// Montgomery parameters of BITS bits.
#define MOD_EXP_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                \
        modexp_##BITS##_t##T(rns::u64* out, const rns::u64* base, const rns::u64* exponent,                      \
                             const rns::u64* params, const rns::u32* param_index, double* scratch,               \
                             rns::u32 count, rns::u32 exponent_bits, rns::u32 /* r2_bits */, rns::u32 window) {  \
        static_assert(T == 2, "a warp has 16 instances");                                                        \
        rns::modexp<rns::Shape<T * L, BITS>, THREADS>(out, base, exponent, params, param_index, scratch, count,  \
                                                      exponent_bits, window);                                    \
    }
