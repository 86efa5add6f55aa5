// Byte matrices in shared memory, which a block computes from the table of constants. All of this
// is public.
#pragma once

#include "shape.cuh"

namespace rns {

// The place of a byte of a matrix. The four bytes of residue (or word) `row` are adjacent rows. The
// columns are those of byte `byte` of residue (or word) `column`: lane t = column % 4 gets the sums
// of all four bytes.
template <class S>
__device__ __forceinline__ u32* place(unsigned char* matrix, int row, int column, int byte) {
    int offset = Matrix<S::ROW_STRIDE>::place(row >> 2, row & 3, 2 * (column >> 2) + (byte >> 1), 2 * (column & 3) + (byte & 1));
    return reinterpret_cast<u32*>(matrix + offset);
}

// Writes rows `row`, columns `column` from `values`: the contribution of residue (or word) `row` of
// the operand to residue `column` of the result, in the base with moduli 2^29 - distances. Rows
// from `rows` on are 0, except N and N + 1, which represent 1 and 2^16.
template <class S, int THREADS>
__device__ __forceinline__ void fill_residues(unsigned char* matrix, const u32* values, int rows,
                                              const u32* distances) {
#pragma unroll 1
    for (int i = threadIdx.x; i < S::STEPS * 8 * S::N; i += THREADS) {
        int row = i / S::N;
        int column = i - row * S::N;
        Modulus m(distances[column]);
        u32 value = row < rows ? values[row < rows ? i : 0] : row == S::N ? 1 : row == S::N + 1 ? 1 << 16 : 0;
        u32 bytes[4] = {};
#pragma unroll
        for (int q = 0; q < 4; q++) {
#pragma unroll
            for (int byte = 0; byte < 4; byte++) bytes[byte] |= (value >> 8 * byte & 255) << 8 * q;
            // 2^8 value is below 2^37, so the upper bits of the quotient are those of the value.
            u32 quotient = value >> (MODULUS_BITS - 8);
            value = subtract_once((value << 8) + quotient * m.minus, m);
        }
#pragma unroll
        for (int byte = 0; byte < 4; byte++) *place<S>(matrix, row, column, byte) = bytes[byte];
    }
}

// The same for the words of a number. Row j has the words of values[j], shifted up by a byte for
// each following byte of the operand.
template <class S, int THREADS>
__device__ __forceinline__ void fill_words(unsigned char* matrix, const u32* values) {
    constexpr int COUNT = Constants<S>::LEAVE_WORDS;
#pragma unroll 1
    for (int i = threadIdx.x; i < S::STEPS * 8 * S::N; i += THREADS) {
        int row = i / S::N;
        int word = i - row * S::N;
        bool inside = row < S::N && word < COUNT;
        int index = inside ? row * COUNT + word : 0;
        u32 low = inside && word > 0 ? values[index - (word > 0 ? 1 : 0)] : 0;
        u32 high = inside ? values[index] : 0;
#pragma unroll
        for (int byte = 0; byte < 4; byte++) {
            u32 bytes = 0;
#pragma unroll
            for (int q = 0; q < 4; q++) {
                u32 from = q <= byte ? high >> 8 * (byte - q) : low >> 8 * (4 + byte - q);
                bytes |= (from & 255) << 8 * q;
            }
            *place<S>(matrix, row, word, byte) = bytes;
        }
    }
}

// Columns 0 .. 6: the bytes of floor(kappa_j 2^(24 + 8 q) / b_j) for byte q of residue j.
template <class S, int THREADS>
__device__ __forceinline__ void fill_weights(unsigned char* matrix, const u32* values) {
#pragma unroll 1
    for (int i = threadIdx.x; i < S::STEPS * 64; i += THREADS) {
        int row = i >> 3;
        int column = i & 7;
        u64 weight = 0;
        if (row < S::N) weight = static_cast<u64>(values[2 * row + 1]) << 32 | values[2 * row];
        u32 bytes = 0;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            bytes |= static_cast<u32>(weight >> (24 - 8 * q) >> 8 * column & 255) << 8 * q;
        }
        *reinterpret_cast<u32*>(matrix + Matrix<128>::place(row >> 2, row & 3, 0, column)) = bytes;
    }
}

}  // namespace rns
