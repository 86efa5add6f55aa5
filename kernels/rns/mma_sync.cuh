// The instruction mma.sync: a warp multiplies 16 rows of 32 bytes by 8 columns, all from registers, unsigned bytes with sums of 32
// bits (PTX ISA, "Matrix multiply-accumulate operation using mma instruction", m16n8k32).
//
// Lane 4 g + t has of the rows g and g + 8 the bytes 4 t .. 4 t + 4 and 16 + 4 t .. 16 + 4 t + 4, of column g of the matrix the
// rows of the same numbers, and gets the sums in columns 2 t and 2 t + 1 of its rows.
#pragma once

#include "residue.cuh"

namespace rns {

// sum = rows * matrix, plus sum if `keep` is 1, for 8 columns. a to d are the lane's bytes: of row g, of row g + 8, and the
// same 16 columns further on; e and f are the matrix's, of column g: the rows from 4 t on, and the same 16 rows further on.
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
