// The instruction mma.sync, m16n8k32: a warp multiplies 16 rows of 32 unsigned bytes by 8 columns,
// with 32-bit sums, all in registers (PTX ISA, "Matrix multiply-accumulate operation using mma
// instruction").
//
// In rows g and g + 8, lane 4 g + t has the bytes 4 t .. 4 t + 4 and 16 + 4 t .. 16 + 4 t + 4. In
// column g of the matrix it has the rows with the same numbers. It gets the sums in columns 2 t and
// 2 t + 1 of its rows.
#pragma once

#include "residue.cuh"

namespace rns {

// sum = rows * matrix, plus sum if `keep` is 1, for 8 columns. The lane's bytes are a to d: of row
// g, of row g + 8, and the same 16 columns further on. Those of the matrix, in column g, are e and
// f: the rows from 4 t on, and the same 16 rows further on.
__device__ __forceinline__ void multiply_add_block(u32* sum, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, int keep) {
    u32 zero = 0;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(keep ? sum[0] : zero), "r"(keep ? sum[1] : zero),
          "r"(keep ? sum[2] : zero), "r"(keep ? sum[3] : zero));
}

}  // namespace rns
