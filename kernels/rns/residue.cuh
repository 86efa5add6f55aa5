// Arithmetic modulo m = 2^29 - d, d < 2^13, on 32-bit words that are reduced only as far as the
// next step needs.
//
// docs/rns.md derives the bounds of all results. None of these functions has a branch.
#pragma once

namespace rns {

using u32 = unsigned;
using u64 = unsigned long long;

constexpr int MODULUS_BITS = 29;
constexpr u32 ALL_LANES = 0xffffffffu;

// A modulus in the form that the arithmetic needs: -m modulo 2^32, and d.
struct Modulus {
    u32 minus;
    u32 distance;

    __device__ __forceinline__ explicit Modulus(uint2 words) : minus(words.x), distance(words.y) {}
    __device__ __forceinline__ explicit Modulus(u32 distance)
        : minus(distance - (1u << MODULUS_BITS)), distance(distance) {}

    __device__ __forceinline__ uint2 words() const { return make_uint2(minus, distance); }
};

__device__ __forceinline__ u64 wide_product(u32 a, u32 b) { return static_cast<u64>(a) * b; }

// Congruent to low + 2^16 high, and below 2^29 + 2^28, for low < 2^32 and high < 2^30 if d < 2^11,
// or high < 2^29 if d < 2900. Below 2.54 * 2^29 for low < 2^26, high < 2^30 and d < 5700.
__device__ __forceinline__ u32 fold(u32 low, u32 high, Modulus m) {
    u32 above_16 = high + (low >> 16);
    return low + (high << 16) + (above_16 >> (MODULUS_BITS - 16)) * m.minus;
}

// The same with one instruction less. Below 2^32 - 2^30, for low < 2^31, high < 2^29 and d < 2^11.
// Below 2.54 * 2^29 for low < 2^26, high < 2^30 and d < 5700.
__device__ __forceinline__ u32 fold_loosely(u32 low, u32 high, Modulus m) {
    return low + (high << 16) + (high >> (MODULUS_BITS - 16)) * m.minus;
}

// Congruent to x, and below 2.5 m for x < 2^61 if d < 2900, or x < 3 * 2^61 if d < 1400. Below 3.8
// m for x < 69 * 2^56 and d < 5700.
__device__ __forceinline__ u32 reduce(u64 x, Modulus m) {
    u32 low = static_cast<u32>(x);
    u32 high = static_cast<u32>(x >> 32);
    u32 quotient = __funnelshift_l(low, high, 32 - MODULUS_BITS);
    quotient += (high >> 13) * m.distance >> 13;
    return low + quotient * m.minus;
}

// Congruent to x, and below 2^29 + 2^16.
__device__ __forceinline__ u32 reduce_word(u32 x, Modulus m) { return x + (x >> MODULUS_BITS) * m.minus; }

// x - m if that is not negative, otherwise x.
__device__ __forceinline__ u32 subtract_once(u32 x, Modulus m) { return min(x, x + m.minus); }

__device__ __forceinline__ u32 subtract_twice(u32 x, Modulus m) { return subtract_once(subtract_once(x, m), m); }

// The quotient that belongs to a constant factor (Shoup): floor(2^32 factor / m).
__device__ __forceinline__ u32 quotient_of_factor(u32 factor, Modulus m) {
    u32 quotient = (factor << 3) + ((factor >> 13) * m.distance >> 13);
    u32 rest = quotient * m.minus;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 less = subtract_once(rest, m);
        quotient += less != rest ? 1 : 0;
        rest = less;
    }
    return quotient;
}

// Congruent to x * factor, and below 2 m, for any word x.
__device__ __forceinline__ u32 times_constant(u32 x, u32 factor, u32 quotient, Modulus m) {
    return x * factor + __umulhi(x, quotient) * m.minus;
}

__device__ __forceinline__ u32 times(u32 x, u32 y, Modulus m) { return reduce(wide_product(x, y), m); }

__device__ __forceinline__ u32 square_times(u32 x, int squarings, u32 y, Modulus m) {
#pragma unroll 1
    for (int i = 0; i < squarings; i++) x = times(x, x, m);
    return times(x, y, m);
}

// The inverse modulo a prime m, by Fermat: x^(m - 2); 0 for a multiple of m. The exponent has 16
// ones above 13 bits of the modulus, which is public.
__device__ __forceinline__ u32 inverse(u32 x, Modulus m) {
    u32 ones_2 = square_times(x, 1, x, m);
    u32 ones_4 = square_times(ones_2, 2, ones_2, m);
    u32 ones_8 = square_times(ones_4, 4, ones_4, m);
    u32 ones_16 = square_times(ones_8, 8, ones_8, m);
    u32 power = ones_16;
    u32 exponent = (1u << 13) - 2 - m.distance;
#pragma unroll 1
    for (int bit = 12; bit >= 0; bit--) {
        power = square_times(power, 1, (exponent >> bit & 1) != 0 ? x : 1, m);
    }
    return power;
}

// `value` if x is y, otherwise `otherwise`. In assembly, so that the compiler does not make a
// branch.
__device__ __forceinline__ u32 if_equal(u32 x, u32 y, u32 value, u32 otherwise) {
    u32 chosen;
    asm("{.reg .pred equal; setp.eq.u32 equal, %1, %2; selp.b32 %0, %3, %4, equal;}"
        : "=r"(chosen)
        : "r"(x), "r"(y), "r"(value), "r"(otherwise));
    return chosen;
}

// All ones if x is y, otherwise 0. In assembly, so that the compiler does not make a branch.
__device__ __forceinline__ u32 mask_if_equal(u32 x, u32 y) {
    u32 mask;
    asm("{.reg .pred equal; setp.eq.u32 equal, %1, %2; selp.b32 %0, -1, 0, equal;}" : "=r"(mask) : "r"(x), "r"(y));
    return mask;
}

}  // namespace rns
