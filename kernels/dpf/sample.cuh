// The exact product of two 52-bit limbs in double precision, as a high and a low half (a wide
// sample).
//
// All three techniques of N. Emmart, F. Zheng, C. Weems, "Faster Modular Exponentiation Using
// Double Precision Floating Point Arithmetic on the GPU", ARITH 2018,
// doi:10.1109/ARITH.2018.8464792. Derivations: docs/dpf.md, "One product".
#pragma once

namespace dpf {

using u32 = unsigned int;
using u64 = unsigned long long;

// Bits in one limb.
constexpr int LIMB_BITS = 52;
constexpr u64 LIMB_MASK = (1ull << LIMB_BITS) - 1;

// The exponent fields of doubles in [2^104, 2^105) and [2^52, 2^53).
constexpr u64 HIGH_EXPONENT = 0x467;
constexpr u64 LOW_EXPONENT = 0x433;

__device__ __forceinline__ u64 bits_of(double x) { return static_cast<u64>(__double_as_longlong(x)); }

__device__ __forceinline__ double from_bits(u64 x) { return __longlong_as_double(static_cast<long long>(x)); }

// The constant that `highs` high halves and `lows` low halves add to a column besides their values:
// their exponent fields, modulo 2^64. A column that receives them starts at minus this constant.
__host__ __device__ constexpr u64 bias(int highs, int lows) {
    return ((static_cast<u64>(highs) * HIGH_EXPONENT + static_cast<u64>(lows) * LOW_EXPONENT) & 0xfff) << LIMB_BITS;
}

// A limb in [0, 2^52], both ends included, as a double. The exponent field is added, not or-ed: the
// limb 2^52 carries into it, which gives the correct result.
__device__ __forceinline__ double to_double(u64 limb) {
    return __dadd_rz(from_bits(limb + (LOW_EXPONENT << LIMB_BITS)), -0x1p52);
}

// The inverse of `to_double`, for doubles that are integers in [0, 2^52], both ends included.
__device__ __forceinline__ u64 to_column(double x) {
    return bits_of(__dadd_rz(x, 0x1p52)) - (LOW_EXPONENT << LIMB_BITS);
}

// One product x * y of limbs in [0, 2^52], as two bit patterns to be summed as integers.
//
// high = (HIGH_EXPONENT << 52) + floor(x * y / 2^52),
//
// low = (LOW_EXPONENT << 52) + x * y mod 2^52.
struct Sample {
    u64 high;
    u64 low;
};

__device__ __forceinline__ Sample sample(double x, double y) {
    double high = __fma_rz(x, y, 0x1p104);
    double low = __fma_rz(x, y, __dadd_rz(0x1p104 + 0x1p52, -high));
    return {bits_of(high), bits_of(low)};
}

// x * y mod 2^52 as a double, for limbs x and y in [0, 2^52).
__device__ __forceinline__ double low_product(double x, double y) {
    double high = __fma_rz(x, y, 0x1p104);
    return __fma_rz(x, y, __dadd_rz(0x1p104, -high));
}

}  // namespace dpf
