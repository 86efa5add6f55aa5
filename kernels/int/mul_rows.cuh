// A Montgomery product that alternates between rows of the product and of the reduction, with one
// instance in each thread, all in registers.
//
// P. Montgomery (1985); "CIOS" of Koc, Acar, Kaliski, "Analyzing and Comparing Montgomery
// Multiplication Algorithms", IEEE Micro 16(3), 1996, with the arrays for even and odd places of
// row.cuh. Bounds: docs/int.md, "Products alone".
#pragma once

#include "row.cuh"

namespace integer {

// Adds `q P` to the window that `add_row` leaves, with q such that the lowest limb becomes 0. The
// next `add_row` moves the window.
template <class S>
__device__ __forceinline__ void reduce_row(u32 (&even)[S::L], u32 (&odd)[S::L], u32& top_low, u32& top_high,
                                           const u32 (&modulus)[S::L], u32 negated_inverse) {
    constexpr int L = S::L;
    const u32 q = even[0] * negated_inverse;
    mad_out(odd[0], odd[1], modulus[1], q, odd[0], odd[1]);
#pragma unroll
    for (int j = 2; j < L; j += 2) mad_through(odd[j], odd[j + 1], modulus[j + 1], q, odd[j], odd[j + 1]);
    top_high = carry();
    mad_out(even[0], even[1], modulus[0], q, even[0], even[1]);
#pragma unroll
    for (int j = 2; j < L; j += 2) mad_through(even[j], even[j + 1], modulus[j], q, even[j], even[j + 1]);
    top_low = add_in(top_low, 0);
}

// The row-oriented method.
struct ByRows {
    // Computes `x y / R mod P`, with the limbs in `x`, and returns the part above them, 0 or 1.
    // Below 2 P if a factor is below P.
    template <class S>
    __device__ static __forceinline__ u32 multiply(u32 (&x)[S::L], const u32 (&y)[S::L], const u32 (&modulus)[S::L],
                                                   u32 negated_inverse) {
        static_assert(S::T == 1, "one lane holds all limbs");
        Window<S> window;
#pragma unroll
        for (int i = 0; i < S::L; i += 2) {
            add_row<S>(window.even, window.odd, window.top_low, window.top_high, y, [&](u32) { return x[i]; });
            reduce_row<S>(window.even, window.odd, window.top_low, window.top_high, modulus, negated_inverse);
            add_row<S>(window.odd, window.even, window.top_low, window.top_high, y, [&](u32) { return x[i + 1]; });
            reduce_row<S>(window.odd, window.even, window.top_low, window.top_high, modulus, negated_inverse);
        }
        return window.limbs(x);
    }
};

}  // namespace integer
