// Batch modular exponentiation: one instance in T lanes, in constant time.
//
// Control flow and addresses of a thread depend only on its position in the grid and on the launch
// parameters. Parameters and buffers: kernels/README.md.
#pragma once

#include "ladder.cuh"
#include "shape.cuh"

namespace integer {

// A base with any value below R.
template <class S>
struct PlainBase {
    static constexpr int STEPS = 1;

    const u64* words;

    __device__ __forceinline__ void prepare(int, u32 (&value)[S::L]) const { import_words<S>(value, words); }
};

template <class S, int BITS, int THREADS>
__device__ __forceinline__ void modexp(u64* out, const u64* base, const u64* exponent, const u64* params,
                                       const u32* param_index, double* scratch, u32 count, u32 exponent_bits,
                                       u32 r2_bits, u32 window) {
    static_assert(LIMB_BITS * S::N == BITS, "numbers fill their limbs");
    constexpr int WORDS = BITS / 64;
    constexpr u32 INSTANCES = THREADS / S::T;
    extern __shared__ u32 shared[];
    Workspace<S, THREADS> work(shared);
    Table<S> table(scratch, 1 << window);

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        // Lanes past the end of the batch repeat its last instance.
        u64 index = min(first + static_cast<u32>(threadIdx.x) / S::T, count - 1);

        u32 value[S::L];
        work.take_modulus(value, params + static_cast<u64>(param_index[index]) * (2 * WORDS));
        PlainBase<S> plain{base + index * WORDS};
        exponentiate(value, plain, work, table, exponent + index * WORDS, WORDS, static_cast<int>(exponent_bits),
                     static_cast<int>(window), static_cast<int>(r2_bits));

        work.canonical(value);
        export_words<S>(out + index * WORDS, value);
        table.clear();
        work.clear();
    }
}

}  // namespace integer

// Defines the entry point modexp_BITS_tT: T lanes of L limbs for each instance, THREADS threads in
// a block, and registers for BLOCKS blocks on a multiprocessor.
#define MOD_EXP_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                        \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                         \
        modexp_##BITS##_t##T(integer::u64* out, const integer::u64* base, const integer::u64* exponent,               \
                             const integer::u64* params, const integer::u32* param_index, double* scratch,        \
                             integer::u32 count, integer::u32 exponent_bits, integer::u32 r2_bits, integer::u32 window) { \
        integer::modexp<integer::Shape<T, L>, BITS, THREADS>(out, base, exponent, params, param_index, scratch,   \
                                                     count, exponent_bits, r2_bits, window);              \
    }
