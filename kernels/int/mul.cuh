// Batch modular multiplication: one instance in each thread, in constant time.
//
// Control flow and addresses of a thread depend only on its position in the grid and on the launch
// parameters. Parameters and buffers: kernels/README.md.
#pragma once

#include "montgomery.cuh"
#include "mul_rows.cuh"

namespace integer {

// A number in 64-bit words, with loads as wide as its alignment allows. Neighbouring threads read
// neighbouring numbers, so every byte of a sector is used, and fewer instructions wait for it.
template <class S>
__device__ __forceinline__ void load(u32 (&limbs)[S::L], const u64* words) {
    if constexpr (S::L % 4 == 0) {
        const uint4* from = reinterpret_cast<const uint4*>(words);
#pragma unroll
        for (int j = 0; j < S::L; j += 4) {
            const uint4 four = from[j / 4];
            limbs[j] = four.x;
            limbs[j + 1] = four.y;
            limbs[j + 2] = four.z;
            limbs[j + 3] = four.w;
        }
    } else {
        import_words<S>(limbs, words);
    }
}

template <class S>
__device__ __forceinline__ void store(u64* words, const u32 (&limbs)[S::L]) {
    if constexpr (S::L % 4 == 0) {
        uint4* to = reinterpret_cast<uint4*>(words);
#pragma unroll
        for (int j = 0; j < S::L; j += 4) to[j / 4] = make_uint4(limbs[j], limbs[j + 1], limbs[j + 2], limbs[j + 3]);
    } else {
        export_words<S>(words, limbs);
    }
}

// The canonical value of one below 2 P, whose limbs lack `above`. The subtraction is always
// computed, and a mask chooses.
template <class S>
__device__ __forceinline__ void make_canonical(u32 (&value)[S::L], u32 above, const u32 (&modulus)[S::L]) {
    u32 difference[S::L];
    difference[0] = sub_out(value[0], modulus[0]);
#pragma unroll
    for (int j = 1; j < S::L; j++) difference[j] = sub_through(value[j], modulus[j]);
    const u32 keep = sub_in(above, 0);
#pragma unroll
    for (int j = 0; j < S::L; j++) value[j] = (value[j] & keep) | (difference[j] & ~keep);
}

template <class S, class Method, int BITS, int THREADS>
__device__ __forceinline__ void modmul(u64* out, const u64* a, const u64* b, const u64* params, const u32* param_index,
                                       u32 count, u32 ordinary, u32 times) {
    static_assert(S::T == 1 && LIMB_BITS * S::N == BITS, "numbers fill the limbs of a lane");
    constexpr int WORDS = BITS / 64;

#pragma unroll 1
    for (u32 first = blockIdx.x * THREADS; first < count; first += gridDim.x * THREADS) {
        // Lanes past the end of the batch repeat its last instance.
        const u64 index = min(first + static_cast<u32>(threadIdx.x), count - 1);
        const u64* record = params + static_cast<u64>(param_index[index]) * (2 * WORDS);

        u32 value[S::L], factor[S::L], modulus[S::L];
        load<S>(value, a + index * WORDS);
        load<S>(modulus, record);
        const u32 inverse = negated_inverse(modulus[0]);
        // First by r2, if at all, then by b. All products share this code, and all launches make
        // the same loads.
#pragma unroll 1
        for (u32 by_b = ordinary != 0 ? 0 : 1; by_b < 2; by_b++) {
            load<S>(factor, by_b != 0 ? b + index * WORDS : record + WORDS);
#pragma unroll 1
            for (u32 left = by_b != 0 ? times : 1; left > 0; left--) {
                const u32 above = Method::template multiply<S>(value, factor, modulus, inverse);
                make_canonical<S>(value, above, modulus);
            }
        }
        store<S>(out + index * WORDS, value);
    }
}

// The compiler's error message names both numbers.
template <int IN_THE_TABLE, int COMPUTED>
constexpr bool is() {
    static_assert(IN_THE_TABLE == COMPUTED, "a column of shapes.csv is not what the kernels need");
    return true;
}

// Checks a row of shapes.csv: there is no shared memory, and parameters may have any width. True,
// or a compiler error with both values of a wrong column.
template <int LANES, int LIMBS, int THREADS, int SHARED_BYTES, int MIN_R2_BITS>
constexpr bool is_shape() {
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps, at most 32");
    return is<LANES, 1>() && is<SHARED_BYTES, 0>() && is<MIN_R2_BITS, LIMB_BITS>();
}

}  // namespace integer

// Defines the entry point modmul_BITS_t1: L limbs for each instance in one thread, THREADS threads
// in a block, and registers for BLOCKS blocks on a multiprocessor.
#define MUL_ENTRY(METHOD, BITS, L, THREADS, BLOCKS)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                        \
        modmul_##BITS##_t1(integer::u64* out, const integer::u64* a, const integer::u64* b,                              \
                           const integer::u64* params, const integer::u32* param_index, integer::u32 count,              \
                           integer::u32 ordinary, integer::u32 times) {                                                  \
        integer::modmul<integer::Shape<1, L>, integer::METHOD, BITS, THREADS>(out, a, b, params, param_index, count,     \
                                                                              ordinary, times);                          \
    }

// ByRows is the faster method at every width: docs/int.md, "Products alone".
#define MOD_MUL_ENTRY(BITS, T, L, THREADS, BLOCKS) MUL_ENTRY(ByRows, BITS, L, THREADS, BLOCKS)
