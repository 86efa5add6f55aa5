// The distribution of instances over a warp, and memory layouts.
//
// A warp computes 16 instances. Lane 4 g + t holds the residues 4 r + t of instances g and g + 8,
// for all slots r. A product on the tensor cores takes these from the lane, and returns the same
// ones to it, so residues never move between lanes.
#pragma once

#include "tensor.cuh"

namespace rns {

constexpr int INSTANCES_PER_WARP = 16;

// The least number of entries that a window table has memory for, and the digits that a pass over
// it looks up.
constexpr int FEWEST_ENTRIES = 32;
constexpr int DIGITS_OF_PASS = 16;

// N moduli in each base, for numbers of BITS bits.
template <int N_, int BITS_>
struct Shape {
    static constexpr int N = N_;
    static constexpr int BITS = BITS_;
    static constexpr int WORDS = BITS / 32;

    // Residues of each of its two instances that a lane holds.
    static constexpr int SLOTS = N / 4;
    static_assert(N % 4 == 0 && WORDS % 4 == 0 && WORDS < N, "four lanes share an instance");

    // Column groups of a product, which are computed in sequence because sums occupy registers.
    static constexpr int GROUPS = N <= 36 ? 1 : N <= 72 ? 2 : N <= 108 ? 3 : 6;
    static constexpr int GROUP_SLOTS = SLOTS / GROUPS;
    static_assert(GROUP_SLOTS * GROUPS == SLOTS, "groups of columns are equally wide");
    static constexpr int SUMS = 8 * GROUP_SLOTS;

    // Steps of 32 rows. A matrix has four byte columns for each modulus, and as many rows, rounded
    // up to whole steps.
    static constexpr int STEPS = (4 * N + 31) / 32;
    static constexpr int MATRIX_BYTES = 2 * STEPS * 64 * N;
    // Matrices that do not fit in shared memory are copied there in tiles, one for each group of
    // columns. Others are one tile.
    static constexpr bool STREAMED = N > 72;
    static constexpr int TILES = STREAMED ? GROUPS : 1;
    static constexpr int TILE_BYTES = MATRIX_BYTES / TILES;
    static constexpr int ROW_STRIDE = 64 * N / TILES;
    // Rows N and N + 1 of a matrix, if they exist, are for an exact quotient.
    static constexpr bool QUOTIENT_IN_PRODUCT = GROUPS == 1 && 8 * STEPS >= N + 2;
    // The weights of the exact quotient have 8 columns.
    static constexpr int WEIGHT_BYTES = STEPS * 256;

    // With many moduli, two columns of bytes together may exceed a word.
    static constexpr bool SUMS_ARE_LARGE = N > 72;
    // With few moduli, sums are small enough for `fold_loosely`, and distances small enough for
    // products of its results. With many, sums are split so that this holds as well.
    static constexpr bool FOLDS_LOOSELY = N <= 36 || SUMS_ARE_LARGE;

    // The output of the ladder is below 2^LEAVE_BITS M.
    static constexpr int LEAVE_BITS = N > 72 ? 8 : N > 36 ? 7 : 6;

    // If shared memory is too small for all data of a thread, some of it is elsewhere.
    static constexpr bool FACTORS_IN_SCRATCH = STREAMED;
    static constexpr bool FACTORS_IN_REGISTERS = !STREAMED && (N > 36 || IS_SHARED_MEMORY_SCARCE);
    static constexpr bool OPERAND_IN_SCRATCH = N > 56 || IS_SHARED_MEMORY_SCARCE;
    static constexpr int MODULUS_SLOTS_IN_SHARED = STREAMED                  ? SLOTS
                                                   : N > 56                  ? 12
                                                   : IS_SHARED_MEMORY_SCARCE ? SLOTS - 1
                                                                             : SLOTS;
};

// The table of constants that kernels/rns/bases generates. Offsets are in words.
template <class S>
struct Constants {
    static constexpr int N = S::N;
    static constexpr int DISTANCE_A = 0;
    static constexpr int DISTANCE_B = DISTANCE_A + N;
    static constexpr int KAPPA = DISTANCE_B + N;
    static constexpr int WEIGHT = KAPPA + N;
    static constexpr int GAMMA = WEIGHT + 2 * N;
    static constexpr int PUBLIC = GAMMA + N;
    static constexpr int MINUS_B = PUBLIC + 6 * 2 * N;
    static constexpr int LEAVE_WORDS = S::WORDS + 1;
    static constexpr int COUNT = MINUS_B + LEAVE_WORDS;

    // The integer 1 in base B.
    static constexpr int ONE_IN_B = PUBLIC + N;
};

// The integers 1, c_0, l, h, c_2, 2^BITS of docs/rns.md, "Entering", in the table.
enum PublicInteger { ONE, C0, L, H, C2, POWER_OF_TWO };

// The compiler's error message names both numbers.
template <int IN_THE_TABLE, int COMPUTED>
constexpr bool same() {
    static_assert(IN_THE_TABLE == COMPUTED, "a column of shapes.csv is not what the kernels need");
    return true;
}

}  // namespace rns
