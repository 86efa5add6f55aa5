// Byte matrices of wide numbers, which do not fit in shared memory together. They are in global
// memory, and the tiles of a product are copied to shared memory one after another, while products
// with the tile before are computed. All of this is public.
#pragma once

#include "matrix.cuh"

namespace rns {

// Barriers in shared memory for copies (PTX ISA, "mbarrier"). Each has one phase for each copy.
__device__ __forceinline__ void make_copy_barrier(u32 barrier) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

// Starts a copy from global memory, which completes a phase of the barrier.
__device__ __forceinline__ void start_copy(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

// Waits for the phase with this parity.
__device__ __forceinline__ void wait_for_copy(u32 barrier, u32 parity) {
    u32 complete;
    do {
        asm volatile(
            "{.reg .pred complete; mbarrier.try_wait.parity.shared.b64 complete, [%1], %2; "
            "selp.u32 %0, 1, 0, complete;}"
            : "=r"(complete)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (complete == 0);
}

// The matrices in global memory, MATRIX_BYTES for each `Which`.
template <class S>
__device__ __forceinline__ unsigned char* matrices_in_global() {
    static __device__ uint4 MATRICES[4 * S::MATRIX_BYTES / 16];
    return reinterpret_cast<unsigned char*>(MATRICES);
}

// Two tiles in shared memory: the current one, and the next one, which may still be copied.
template <class S, int THREADS>
struct StreamedMatrices {
    static constexpr int BARRIERS = 2 * S::TILE_BYTES;
    static constexpr int BYTES = BARRIERS + 16;
    static_assert(S::TILES >= 2, "two tiles of a matrix are requested at first");

    u32 address;
    // The number of the current tile among all that were copied.
    u32 number;
    // 1 if this warp waits at the barrier before it reduces the sums, 0 if after. So one half of the
    // warps multiplies while the other half reduces.
    u32 is_early;

    __device__ __forceinline__ explicit StreamedMatrices(unsigned char* shared)
        : address(static_cast<u32>(__cvta_generic_to_shared(shared))),
          number(0),
          is_early(__shfl_sync(ALL_LANES, threadIdx.x / (32 * WARPS_TOGETHER) & 1, 0)) {}

    // Writes all matrices to global memory. Every block writes the same values, each word once. So
    // copies by other blocks never read another value.
    __device__ __forceinline__ void fill(const u32* constants) {
        unsigned char* all = matrices_in_global<S>();
        fill_extension<B_TO_A, S, THREADS>(all + B_TO_A * S::MATRIX_BYTES, constants);
        fill_extension<A_TO_B, S, THREADS>(all + A_TO_B * S::MATRIX_BYTES, constants);
        fill_enter<S, THREADS>(all + ENTER * S::MATRIX_BYTES, constants);
        fill_leave<S, THREADS>(all + LEAVE * S::MATRIX_BYTES, constants);
        if (threadIdx.x == 0) {
            make_copy_barrier(barrier(0));
            make_copy_barrier(barrier(1));
        }
        fence_all_memory();
        __syncthreads();
        request_two(ENTER);
    }

    // Prepares products with ENTER, with LEAVE, or with B_TO_A and A_TO_B: makes the first tile the
    // current one.
    template <Which WHICH>
    __device__ __forceinline__ void change(const u32*) {
        wait(number + 1);
        __syncthreads();
        number += 2;
        request_two(WHICH);
    }

    // The current tile has the columns of every group.
    __device__ __forceinline__ Columns columns(Which, int) const { return Columns{buffer(number), 0}; }

    // To be called by all warps after the product with a group, before and after its sums are
    // reduced: makes the next tile the current one. `following` is the matrix of the next product.
    __device__ __forceinline__ void after_product(Which, int, Which) const { barrier_if(is_early); }

    __device__ __forceinline__ void after_reduction(Which which, int group, Which following) {
        barrier_if(is_early ^ 1);
        // All warps are done with the current tile.
        bool same = group + 2 < S::TILES;
        request(number + 2, same ? which : following, same ? group + 2 : group + 2 - S::TILES);
        number++;
        wait(number);
    }

    // Waits for the last copy.
    __device__ __forceinline__ void finish() const { wait(number + 1); }

   private:
    // The barrier of the block, if the flag is 1. Guarded, because beside a branch sums need more
    // registers.
    __device__ static __forceinline__ void barrier_if(u32 flag) {
        asm volatile("{.reg .pred here; setp.ne.u32 here, %0, 0; @here bar.sync 0;}" ::"r"(flag) : "memory");
    }

    __device__ __forceinline__ void request_two(Which which) const {
        request(number, which, 0);
        request(number + 1, which, 1);
        wait(number);
    }

    __device__ __forceinline__ void request(u32 tile, Which which, int group) const {
        if (threadIdx.x != 0) return;
        const unsigned char* from = matrices_in_global<S>() + which * S::MATRIX_BYTES + group * S::TILE_BYTES;
        start_copy(buffer(tile), from, S::TILE_BYTES, barrier(tile));
    }

    __device__ __forceinline__ void wait(u32 tile) const { wait_for_copy(barrier(tile), tile >> 1 & 1); }
    __device__ __forceinline__ u32 buffer(u32 tile) const { return address + (tile & 1) * S::TILE_BYTES; }
    __device__ __forceinline__ u32 barrier(u32 tile) const { return address + BARRIERS + (tile & 1) * 8; }
};

}  // namespace rns
