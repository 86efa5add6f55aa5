// A Montgomery product in two passes, first the product and then its reduction, with one instance
// in each thread, all in registers.
//
// P. Montgomery (1985); "SOS" of Koc, Acar, Kaliski, "Analyzing and Comparing Montgomery
// Multiplication Algorithms", IEEE Micro 16(3), 1996; bounds: docs/int.md, "Montgomery
// multiplication". No shipped entry point uses it, because products by rows (mul_rows.cuh) are
// faster: kernels/measure_products compares the two.
#pragma once

#include "row.cuh"

namespace integer {

// The two-pass method.
struct InTwoPasses {
    // Computes `x y / R mod P`, with the limbs in `x`, and returns the part above them, 0 or 1.
    // Below 2 P if a factor is below P.
    template <class S>
    __device__ static __forceinline__ u32 multiply(u32 (&x)[S::L], const u32 (&y)[S::L], const u32 (&modulus)[S::L],
                                                   u32 negated_inverse) {
        static_assert(S::T == 1, "one lane holds all limbs");
        constexpr int L = S::L;
        u32 low[L], high[L];
        Window<S> product;
#pragma unroll
        for (int i = 0; i < L; i += 2) {
            product.add_rows(
                y, [&](u32) { return x[i]; }, [&](u32) { return x[i + 1]; },
                [&](int second, u32 limb) { low[i + second] = limb; });
        }
        // Both factors are below R, and so is the number in the window.
        product.limbs(high);

        Window<S> reduction(low, 0);
        const auto quotient = [&](u32 lowest) { return lowest * negated_inverse; };
#pragma unroll
        for (int i = 0; i < L; i += 2) reduction.add_rows(modulus, quotient, quotient, [](int, u32) {});
        reduction.limbs(x);

        x[0] = add_out(x[0], high[0]);
#pragma unroll
        for (int j = 1; j < L; j++) x[j] = add_through(x[j], high[j]);
        return carry();
    }
};

}  // namespace integer
