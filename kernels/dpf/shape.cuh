// Checks a row of shapes.csv: some columns follow from others, and the headers compute them.
#pragma once

#include "table.cuh"
#include "workspace.cuh"

namespace dpf {

// The compiler's error message names both numbers.
template <int IN_THE_TABLE, int COMPUTED>
constexpr bool same() {
    static_assert(IN_THE_TABLE == COMPUTED, "a column of shapes.csv is not what the kernels need");
    return true;
}

// True, or a compiler error with both values of a wrong column.
template <int LANES, int LIMBS, int THREADS, int SHARED_BYTES, int MIN_R2_BITS>
constexpr bool is_shape() {
    using W = Workspace<Shape<LANES, LIMBS>, THREADS>;
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps, at most 32");
    constexpr bool shared_bytes = same<SHARED_BYTES, W::BYTES>();
    constexpr bool min_r2_bits = same<MIN_R2_BITS, W::min_r2_bits()>();
    return shared_bytes && min_r2_bits;
}

// The same for a shape with a window table.
template <int LANES, int LIMBS, int SCRATCH_DOUBLES>
constexpr bool has_table() {
    return same<SCRATCH_DOUBLES, 2 * Table<Shape<LANES, LIMBS>>::PAIRS>();
}

}  // namespace dpf
