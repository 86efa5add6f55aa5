// Products on the tensor cores of chips since sm_80: mma.sync.
//
// Rows and sums are distributed over lanes as for wgmma: see wgmma.cuh, which this file replaces.
// Products are synchronous, so the ordering functions of wgmma are empty here.
#pragma once

#include "mma_sync.cuh"

namespace rns {

__device__ __forceinline__ void fence_registers() {}

__device__ __forceinline__ u32 zero_register() { return 0; }

__device__ __forceinline__ void commit_group() {}

template <int PENDING>
__device__ __forceinline__ void wait_groups() {}

__device__ __forceinline__ void fence_matrices() {}

__device__ __forceinline__ void fence_all_memory() {}

template <int COUNT>
__device__ __forceinline__ void take_sums(u32 (&)[COUNT]) {}

// A matrix in shared memory for products. For 32 rows and 16 columns, each lane loads its four
// adjacent words at once. A matrix of 8 columns has two words for each lane.
template <int ROW_STRIDE>
struct Matrix {
    static constexpr bool IS_NARROW = ROW_STRIDE == 128;

    u32 address;

    __device__ __forceinline__ explicit Matrix(u32 address)
        : address(address + threadIdx.x % 32 * (IS_NARROW ? 8 : 16)) {}

    // The argument of `multiply_add` for 32 rows, below `step` times as many, and the columns from
    // 8 `block` on; `block` is even.
    __device__ __forceinline__ u32 at(int step, int block) const { return address + step * 2 * ROW_STRIDE + block * 256; }

    // The place of column 8 column_block + column for the rows from 16 row_block + 4 row to the
    // third below.
    __device__ static __forceinline__ int place(int row_block, int row, int column_block, int column) {
        int lane = 4 * column + row;
        int step = (row_block >> 1) * 2 * ROW_STRIDE;
        int half = row_block & 1;
        if (IS_NARROW) return step + lane * 8 + half * 4;
        return step + (column_block >> 1) * 512 + lane * 16 + (column_block & 1) * 8 + half * 4;
    }
};

constexpr int WARPS_TOGETHER = 1;

// A block has 99 KiB.
constexpr bool IS_SHARED_MEMORY_SCARCE = true;

// multiply_add_block for all columns of a group.
template <int COUNT>
__device__ __forceinline__ void multiply_add(u32 (&sum)[COUNT], u32 a, u32 b, u32 c, u32 d, u32 matrix, int keep) {
    if constexpr (COUNT == 4) {
        u32 e, f;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(e), "=r"(f) : "r"(matrix) : "memory");
        multiply_add_block(sum, a, b, c, d, e, f, keep);
    } else {
        static_assert(COUNT % 8 == 0, "blocks of 8 columns come in pairs");
#pragma unroll
        for (int i = 0; i < COUNT; i += 8) {
            u32 e[4];
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(e[0]), "=r"(e[1]), "=r"(e[2]), "=r"(e[3])
                         : "r"(matrix + i * 64)
                         : "memory");
            multiply_add_block(sum + i, a, b, c, d, e[0], e[1], keep);
            multiply_add_block(sum + i + 4, a, b, c, d, e[2], e[3], keep);
        }
    }
}

}  // namespace rns
