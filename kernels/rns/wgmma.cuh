// Products on Hopper's tensor cores: wgmma, unsigned bytes, sums of 32 bits (PTX ISA, "Asynchronous
// warpgroup level matrix multiply-accumulate").
//
// A warpgroup multiplies 64 rows of 32 bytes from registers by a byte matrix in shared memory. Each
// warp has 16 of the rows and gets their sums, so no data passes between warps. In rows g and g +
// 8, lane 4 g + t has the bytes 4 t .. 4 t + 4 and 16 + 4 t .. 16 + 4 t + 4. Of every eight columns
// it gets the sums in columns 2 t and 2 t + 1.
#pragma once

#include "residue.cuh"

namespace rns {

// Needed before the first product, and after writes to registers of one.
__device__ __forceinline__ void fence_registers() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// A zero that is written before the following fence. The compiler would write a constant after it.
__device__ __forceinline__ u32 zero_register() {
    u32 zero;
    asm volatile("mov.u32 %0, 0;" : "=r"(zero));
    return zero;
}

// Closes a group of products.
__device__ __forceinline__ void commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all groups except the last PENDING.
template <int PENDING>
__device__ __forceinline__ void wait_groups() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Needed after writes to shared memory, before the barrier in front of products that read it.
__device__ __forceinline__ void fence_matrices() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The same after writes to any memory.
__device__ __forceinline__ void fence_all_memory() { asm volatile("fence.proxy.async;" ::: "memory"); }

// Keeps reads of the sums behind this point.
template <int COUNT>
__device__ __forceinline__ void take_sums(u32 (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+r"(sum[i])::"memory");
}

// A matrix in shared memory for products, without swizzling. It has blocks of 8 columns by 16 rows
// of bytes, column by column. Blocks of the next 8 columns are 128 bytes apart, and those of the
// next 16 rows ROW_STRIDE.
template <int ROW_STRIDE>
struct Matrix {
    u64 descriptor;

    __device__ __forceinline__ explicit Matrix(u32 address)
        : descriptor(static_cast<u64>(128 >> 4) << 32 | (address & 0x3ffff) >> 4 |
                     static_cast<u32>(ROW_STRIDE >> 4) << 16) {}

    // The argument of `multiply_add` for 32 rows, below `step` times as many, and the columns from
    // 8 `block` on.
    __device__ __forceinline__ u64 at(int step, int block) const {
        return descriptor + (step * 2 * ROW_STRIDE >> 4) + (block * 128 >> 4);
    }

    // The place of column 8 column_block + column for the rows from 16 row_block + 4 row to the
    // third below.
    __device__ static __forceinline__ int place(int row_block, int row, int column_block, int column) {
        return row_block * ROW_STRIDE + column_block * 128 + column * 16 + 4 * row;
    }
};

// Warps that compute a product together.
constexpr int WARPS_TOGETHER = 4;

// Shared memory is plentiful.
constexpr bool IS_SHARED_MEMORY_SCARCE = false;

// sum = rows * matrix, plus sum if `keep` is 1, for 8, 80, 96, 112 or 144 columns. The lane's bytes are
// a to d: of row g, of row g + 8, and the same 16 columns further on.
__device__ __forceinline__ void multiply_add(u32 (&sum)[4], u32 a, u32 b, u32 c, u32 d, u64 matrix, int keep) {
    asm volatile(
        "{.reg .pred keep; setp.ne.b32 keep, %9, 0; "
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 "
        "{%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, %8, keep;}"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "l"(matrix), "r"(keep));
}

__device__ __forceinline__ void multiply_add(u32 (&sum)[40], u32 a, u32 b, u32 c, u32 d, u64 matrix, int keep) {
    asm volatile(
        "{.reg .pred keep; setp.ne.b32 keep, %45, 0; "
        "wgmma.mma_async.sync.aligned.m64n80k32.s32.u8.u8 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39}, "
        "{%40, %41, %42, %43}, %44, keep;}"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]),
          "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]), "+r"(sum[14]), "+r"(sum[15]),
          "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]), "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]),
          "+r"(sum[24]), "+r"(sum[25]), "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31]),
          "+r"(sum[32]), "+r"(sum[33]), "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]), "+r"(sum[38]), "+r"(sum[39])
        : "r"(a), "r"(b), "r"(c), "r"(d), "l"(matrix), "r"(keep));
}

__device__ __forceinline__ void multiply_add(u32 (&sum)[48], u32 a, u32 b, u32 c, u32 d, u64 matrix, int keep) {
    asm volatile(
        "{.reg .pred keep; setp.ne.b32 keep, %53, 0; "
        "wgmma.mma_async.sync.aligned.m64n96k32.s32.u8.u8 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47}, "
        "{%48, %49, %50, %51}, %52, keep;}"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]),
          "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]), "+r"(sum[14]), "+r"(sum[15]),
          "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]), "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]),
          "+r"(sum[24]), "+r"(sum[25]), "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31]),
          "+r"(sum[32]), "+r"(sum[33]), "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]), "+r"(sum[38]), "+r"(sum[39]),
          "+r"(sum[40]), "+r"(sum[41]), "+r"(sum[42]), "+r"(sum[43]), "+r"(sum[44]), "+r"(sum[45]), "+r"(sum[46]), "+r"(sum[47])
        : "r"(a), "r"(b), "r"(c), "r"(d), "l"(matrix), "r"(keep));
}

__device__ __forceinline__ void multiply_add(u32 (&sum)[56], u32 a, u32 b, u32 c, u32 d, u64 matrix, int keep) {
    asm volatile(
        "{.reg .pred keep; setp.ne.b32 keep, %61, 0; "
        "wgmma.mma_async.sync.aligned.m64n112k32.s32.u8.u8 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55}, "
        "{%56, %57, %58, %59}, %60, keep;}"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]),
          "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]), "+r"(sum[14]), "+r"(sum[15]),
          "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]), "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]),
          "+r"(sum[24]), "+r"(sum[25]), "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31]),
          "+r"(sum[32]), "+r"(sum[33]), "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]), "+r"(sum[38]), "+r"(sum[39]),
          "+r"(sum[40]), "+r"(sum[41]), "+r"(sum[42]), "+r"(sum[43]), "+r"(sum[44]), "+r"(sum[45]), "+r"(sum[46]), "+r"(sum[47]),
          "+r"(sum[48]), "+r"(sum[49]), "+r"(sum[50]), "+r"(sum[51]), "+r"(sum[52]), "+r"(sum[53]), "+r"(sum[54]), "+r"(sum[55])
        : "r"(a), "r"(b), "r"(c), "r"(d), "l"(matrix), "r"(keep));
}

__device__ __forceinline__ void multiply_add(u32 (&sum)[72], u32 a, u32 b, u32 c, u32 d, u64 matrix, int keep) {
    asm volatile(
        "{.reg .pred keep; setp.ne.b32 keep, %77, 0; "
        "wgmma.mma_async.sync.aligned.m64n144k32.s32.u8.u8 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71}, "
        "{%72, %73, %74, %75}, %76, keep;}"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]),
          "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]), "+r"(sum[14]), "+r"(sum[15]),
          "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]), "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]),
          "+r"(sum[24]), "+r"(sum[25]), "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31]),
          "+r"(sum[32]), "+r"(sum[33]), "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]), "+r"(sum[38]), "+r"(sum[39]),
          "+r"(sum[40]), "+r"(sum[41]), "+r"(sum[42]), "+r"(sum[43]), "+r"(sum[44]), "+r"(sum[45]), "+r"(sum[46]), "+r"(sum[47]),
          "+r"(sum[48]), "+r"(sum[49]), "+r"(sum[50]), "+r"(sum[51]), "+r"(sum[52]), "+r"(sum[53]), "+r"(sum[54]), "+r"(sum[55]),
          "+r"(sum[56]), "+r"(sum[57]), "+r"(sum[58]), "+r"(sum[59]), "+r"(sum[60]), "+r"(sum[61]), "+r"(sum[62]), "+r"(sum[63]),
          "+r"(sum[64]), "+r"(sum[65]), "+r"(sum[66]), "+r"(sum[67]), "+r"(sum[68]), "+r"(sum[69]), "+r"(sum[70]), "+r"(sum[71])
        : "r"(a), "r"(b), "r"(c), "r"(d), "l"(matrix), "r"(keep));
}

}  // namespace rns
