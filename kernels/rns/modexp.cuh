// Batch modular exponentiation: sixteen instances in a warp, in constant time.
//
// What a thread does, and where it reads and writes, depends on its place in the grid and on the launch
// parameters alone. Parameters and buffers: kernels/README.md.
#pragma once

#include "bases_1024.cuh"
#include "bases_1536.cuh"
#include "bases_2048.cuh"
#include "bases_512.cuh"
#include "ladder.cuh"
#include "leave.cuh"

namespace rns {

template <class S, int THREADS>
__device__ __forceinline__ void modexp(const u32* constants, u64* out, const u64* base, const u64* exponent,
                                       const u64* params, const u32* param_index, double* scratch, u32 count,
                                       u32 exponent_bits, u32 window) {
    using W = Workspace<S, THREADS>;
    using C = Constants<S>;
    constexpr u32 INSTANCES = THREADS / 32 * INSTANCES_PER_WARP;
    extern __shared__ uint4 dynamic[];
    unsigned char* shared = reinterpret_cast<unsigned char*>(dynamic);

    const u32 warp = threadIdx.x / 32;
    const u32 entries = max(1u << window, 8u);
    const u32 scratch_bytes = W::SCRATCH_DOUBLES * 8 * 32 * entries;
    const u32 table_bytes = S::SLOTS * 8 * 32 * entries;
    unsigned char* own = reinterpret_cast<unsigned char*>(scratch);
    own += (static_cast<u64>(blockIdx.x) * (THREADS / 32) + warp) * scratch_bytes;
    Table<S> table(own, 1 << window);
    W w(shared, own + table_bytes, constants);
    w.fill();

#pragma unroll 1
    for (u32 first = blockIdx.x * INSTANCES; first < count; first += gridDim.x * INSTANCES) {
        // Instances past the end of the batch are its last one again.
        u64 index[2];
        const u32* moduli[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 row = warp * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 32 / 4;
            index[h] = min(first + row, count - 1);
            moduli[h] = reinterpret_cast<const u32*>(params) + static_cast<u64>(param_index[index[h]]) * (2 * S::WORDS);
        }
        const u32* bases = reinterpret_cast<const u32*>(base);
        const u32* exponents = reinterpret_cast<const u32*>(exponent);

        u32 z[2][S::SLOTS];
        __syncthreads();
        fill_residues<S, THREADS>(shared, constants + C::ENTER, S::WORDS, constants + C::DISTANCE_B);
        fence_matrices();
        __syncthreads();
#pragma unroll 1
        for (int number = KEPT_MODULUS; number <= KEPT_BASE; number++) {
            const u32* words[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32* of_modulus = moduli[h] + (number == KEPT_R2 ? S::WORDS : 0);
                words[h] = number == KEPT_BASE ? bases + index[h] * S::WORDS : of_modulus;
            }
            from_words(z, words[0], words[1], w);
            w.keep(number).store(z);
        }
        w.keep(KEPT_MODULUS).load(z);
        take_modulus(z, w);

        __syncthreads();
        fill_residues<S, THREADS>(shared, constants + C::A_TO_B, S::N, constants + C::DISTANCE_B);
        fence_matrices();
        __syncthreads();
        exponentiate(z, w, table, exponents + index[0] * S::WORDS, exponents + index[1] * S::WORDS,
                     static_cast<int>(exponent_bits), static_cast<int>(window));

        __syncthreads();
        fill_words<S, THREADS>(shared, constants + C::LEAVE);
        fence_matrices();
        __syncthreads();
        // A lane leaves with an instance of its own.
        u64 leaving[2];
        const u32* moduli_leaving[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 row = warp * INSTANCES_PER_WARP + 8 * h + threadIdx.x % 8;
            leaving[h] = min(first + row, count - 1);
            moduli_leaving[h] =
                reinterpret_cast<const u32*>(params) + static_cast<u64>(param_index[leaving[h]]) * (2 * S::WORDS);
        }
        to_words(z, reinterpret_cast<u32*>(out), moduli_leaving, leaving, w);
        table.clear(table_bytes);
        w.clear();
    }
}

// The columns of shapes.csv that follow from the others: true, or the compiler says which is wrong. MIN_R2_BITS is
// the width.
template <int LANES, int LIMBS, int THREADS, int SHARED_BYTES, int MIN_R2_BITS>
constexpr bool is_shape() {
    return same<SHARED_BYTES, Workspace<Shape<LANES * LIMBS, MIN_R2_BITS>, THREADS>::BYTES>();
}

// The same for a shape with a window table. The width plays no part.
template <int LANES, int LIMBS, int SCRATCH_DOUBLES>
constexpr bool has_table() {
    return same<SCRATCH_DOUBLES, Workspace<Shape<LANES * LIMBS, 512>, 128>::SCRATCH_DOUBLES>();
}

}  // namespace rns

// Defines the entry point modexp_BITS_tT: T lanes for each instance, T * L moduli in each base, THREADS threads a
// block, registers for BLOCKS blocks a multiprocessor. Of Montgomery parameters it takes those of BITS bits alone.
#define MOD_EXP_ENTRY(BITS, T, L, THREADS, BLOCKS)                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                \
        modexp_##BITS##_t##T(rns::u64* out, const rns::u64* base, const rns::u64* exponent,                      \
                             const rns::u64* params, const rns::u32* param_index, double* scratch,               \
                             rns::u32 count, rns::u32 exponent_bits, rns::u32 /* r2_bits */, rns::u32 window) {  \
        static_assert(T == 2, "a warp has 16 instances");                                                        \
        static_assert(rns::Constants<rns::Shape<T * L, BITS>>::COUNT == rns::BASES_##BITS##_COUNT,               \
                      "the table of constants has another layout");                                              \
        rns::modexp<rns::Shape<T * L, BITS>, THREADS>(rns::bases_##BITS(), out, base, exponent, params,          \
                                                      param_index, scratch, count, exponent_bits, window);       \
    }
