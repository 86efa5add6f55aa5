// Byte matrices, which a block computes from the table of constants. All of this is public.
#pragma once

#include "shape.cuh"

namespace rns {

// The matrices: from base B to base A and back, from words, and to words.
enum Which { B_TO_A, A_TO_B, ENTER, LEAVE };

// The columns of a group: the matrix or tile in shared memory, and eights of columns before them.
struct Columns {
    u32 matrix;
    int block;
};

// The place of a byte of a matrix. The four bytes of residue (or word) `row` are adjacent rows. The
// columns are those of byte `byte` of residue (or word) `column`: lane t = column % 4 gets the sums
// of all four bytes.
template <class S>
__device__ __forceinline__ u32* place(unsigned char* matrix, int row, int column, int byte) {
    int slot = column >> 2;
    int tile = S::TILES == 1 ? 0 : slot / S::GROUP_SLOTS;
    slot -= tile * S::GROUP_SLOTS;
    int offset = Matrix<S::ROW_STRIDE>::place(row >> 2, row & 3, 2 * slot + (byte >> 1), 2 * (column & 3) + (byte & 1));
    return reinterpret_cast<u32*>(matrix + tile * S::TILE_BYTES + offset);
}

// Writes the rows of residue `row` of the operand in the columns of residue `column` of the result:
// 2^(8 q) value modulo m for byte q. Replaces the value with 2^32 value.
template <class S>
__device__ __forceinline__ void put(unsigned char* matrix, int row, int column, u32& value, Modulus m) {
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

// A_TO_B: 1 / a_i modulo b_j in row i, column j. B_TO_A: -kappa_j / b_j modulo a_i in row j, column
// i. 2^29 is congruent to the distance of a modulus. So a_i modulo b_j and -b_j modulo a_i are both
// the distance of b_j less that of a_i. Rows N and N + 1, if they exist, represent 1 and 2^16, the
// others are 0.
template <Which WHICH, class S, int THREADS>
__device__ __forceinline__ void fill_extension(unsigned char* matrix, const u32* constants) {
    using C = Constants<S>;
    constexpr int N = S::N;
    const u32* rows = constants + (WHICH == A_TO_B ? C::DISTANCE_A : C::DISTANCE_B);
    const u32* columns = constants + (WHICH == A_TO_B ? C::DISTANCE_B : C::DISTANCE_A);
#pragma unroll 1
    for (int i = threadIdx.x; i < S::STEPS * 8 * N; i += THREADS) {
        int row = i / N;
        int column = i - row * N;
        int source = min(row, N - 1);
        Modulus m(columns[column]);
        u32 less = WHICH == A_TO_B ? m.distance - rows[source] : rows[source] - m.distance;
        u32 value = inverse(less - (less >> 31) * m.minus, m);
        if (WHICH == B_TO_A) value = times(value, constants[C::KAPPA + source], m);
        value = subtract_once(subtract_twice(value, m), m);
        if (row >= N) value = row == N ? 1 : row == N + 1 ? 1 << 16 : 0;
        put<S>(matrix, row, column, value, m);
    }
}

// ENTER: 2^(32 k) / A modulo b_j in row k, column j, from 1 / A.
template <class S, int THREADS>
__device__ __forceinline__ void fill_enter(unsigned char* matrix, const u32* constants) {
    using C = Constants<S>;
#pragma unroll 1
    for (int column = threadIdx.x; column < S::N; column += THREADS) {
        Modulus m(constants[C::DISTANCE_B + column]);
        u32 value = constants[C::ONE_IN_B + column];
#pragma unroll 1
        for (int row = 0; row < S::STEPS * 8; row++) {
            if (row == S::WORDS) value = 0;
            put<S>(matrix, row, column, value, m);
        }
    }
    // Products need whole warps.
    __syncwarp();
}

// LEAVE: the words of kappa_j (B / b_j) in row j, shifted up by a byte for each following byte of
// the operand. The exact division B / b_j begins with the lowest word.
template <class S, int THREADS>
__device__ __forceinline__ void fill_leave(unsigned char* matrix, const u32* constants) {
    using C = Constants<S>;
#pragma unroll 1
    for (int row = threadIdx.x; row < S::STEPS * 8; row += THREADS) {
        int source = min(row, S::N - 1);
        u32 b = (1u << MODULUS_BITS) - constants[C::DISTANCE_B + source];
        u32 kappa = row < S::N ? constants[C::KAPPA + source] : 0;
        // Newton's iteration doubles the number of right bits, from three.
        u32 inverse_of_b = b;
#pragma unroll 1
        for (int bits = 3; bits < 32; bits *= 2) inverse_of_b *= 2 - b * inverse_of_b;
        u64 rest = 0;
        u64 carry = 0;
        u32 low = 0;
#pragma unroll 1
        for (int word = 0; word < S::N; word++) {
            bool inside = word < C::LEAVE_WORDS;
            rest += constants[C::MINUS_B + (inside ? word : 0)];
            u32 quotient = -static_cast<u32>(rest) * inverse_of_b;
            rest = (rest + wide_product(quotient, b)) >> 32;
            carry += wide_product(quotient, kappa);
            u32 high = inside ? static_cast<u32>(carry) : 0;
            carry >>= 32;
            if (!inside) low = 0;
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
            low = high;
        }
    }
    __syncwarp();
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

// Matrices in shared memory: B to A, and beside it the current one of the others.
template <class S, int THREADS>
struct ResidentMatrices {
    static constexpr int BYTES = 2 * S::MATRIX_BYTES;

    unsigned char* shared;
    u32 address;

    __device__ __forceinline__ explicit ResidentMatrices(unsigned char* shared)
        : shared(shared), address(static_cast<u32>(__cvta_generic_to_shared(shared))) {}

    // Writes the matrix that does not change. A barrier must follow.
    __device__ __forceinline__ void fill(const u32* constants) const {
        fill_extension<B_TO_A, S, THREADS>(shared + S::MATRIX_BYTES, constants);
    }

    // Prepares products with ENTER, with LEAVE, or with B_TO_A and A_TO_B.
    template <Which WHICH>
    __device__ __forceinline__ void change(const u32* constants) const {
        __syncthreads();
        if constexpr (WHICH == LEAVE) {
            fill_leave<S, THREADS>(shared, constants);
        } else if constexpr (WHICH == ENTER) {
            fill_enter<S, THREADS>(shared, constants);
        } else {
            fill_extension<A_TO_B, S, THREADS>(shared, constants);
        }
        fence_matrices();
        __syncthreads();
    }

    __device__ __forceinline__ Columns columns(Which which, int group) const {
        return Columns{which == B_TO_A ? address + S::MATRIX_BYTES : address, group * 2 * S::GROUP_SLOTS};
    }

    // Nothing has to move.
    __device__ __forceinline__ void after_product(Which, int, Which) const {}
    __device__ __forceinline__ void after_reduction(Which, int, Which) const {}
    __device__ __forceinline__ void finish() const {}
};

}  // namespace rns
