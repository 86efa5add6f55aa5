// Narrow limbs: signed 24-bit limbs in doubles, which can hold sums of products.
//
// Based on J. Dong, F. Zheng, W. Pan, J. Lin, J. Jing, Y. Zhao, "Utilizing the Double-Precision
// Floating-Point Computing Power of GPUs for RSA Acceleration", Security and Communication Networks
// 2017, doi:10.1155/2017/3508786, and J. Dong, F. Zheng, N. Emmart, J. Lin, C. Weems, "sDPF-RSA",
// IPDPS 2018. These use limbs of 22 or 23 bits. The sign, the bounds, the scaled modulus and
// squares with half of the products are ours. Measured: docs/comparison.md, "Narrow doubles".
//
// A limb is an integer with |limb| <= LIMB_MAX. A product of two is below 2^46 (1 + 2^-15). A
// column holds at most 2 N of them, and carries below 2^30. For N <= 63 that is less than 2^53, so
// every sum of a column is exact in any order.
#pragma once

namespace narrow {

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr int LIMB_BITS = 24;
constexpr i64 RADIX = 1ll << LIMB_BITS;
// The greatest limb that `resolve` leaves: half a radix, and a carry out of a limb that received a
// carry.
constexpr double LIMB_MAX = (1 << (LIMB_BITS - 1)) + 65;

// Whether the columns of products and reductions of N limbs stay below 2^53.
constexpr bool is_exact(int limbs) { return 2 * limbs * LIMB_MAX * LIMB_MAX + 0x1p30 < 0x1p53; }

static_assert(is_exact(63) && !is_exact(64), "the bound of this page");

// A column as a multiple of the radix and a rest of at most half a radix, |rest| <= 2^23. Doubles
// from 2^76 to 2^77 are the multiples of 2^24, so adding 1.5 * 2^76 rounds to one of them.
struct Split {
    double multiple;
    double rest;
};

__device__ __forceinline__ Split split(double column) {
    constexpr double MAGIC = 0x1.8p76;
    double multiple = __dadd_rn(__dadd_rn(column, MAGIC), -MAGIC);
    return {multiple, __dadd_rn(column, -multiple)};
}

// Adds to a column the multiple that `split` took from the one below.
__device__ __forceinline__ double carried(double multiple, double column) {
    return __fma_rn(multiple, 0x1p-24, column);
}

// Turns column sums below 2^53 into limbs. The highest limb keeps its excess. Carries run through
// four segments side by side. A carry out of a segment, below 2^30, passes through its neighbour's
// lowest limb and stops in the one above.
template <int N>
__device__ __forceinline__ void resolve(double (&limb)[N]) {
    constexpr int SEGMENTS = N / 4 >= 8 ? 4 : 2;
    constexpr int LENGTH = (N + SEGMENTS - 1) / SEGMENTS;
    double leaving[SEGMENTS] = {};
#pragma unroll
    for (int j = 0; j < LENGTH; j++) {
#pragma unroll
        for (int segment = 0; segment < SEGMENTS; segment++) {
            const int k = segment * LENGTH + j;
            if (k >= N - 1) continue;
            Split s = split(limb[k]);
            limb[k] = s.rest;
            if (j < LENGTH - 1) {
                limb[k + 1 < N ? k + 1 : k] = carried(s.multiple, limb[k + 1 < N ? k + 1 : k]);
            } else {
                leaving[segment] = s.multiple;
            }
        }
    }
#pragma unroll
    for (int segment = 1; segment < SEGMENTS; segment++) {
        const int k = segment * LENGTH;
        Split s = split(carried(leaving[segment - 1], limb[k]));
        limb[k] = s.rest;
        limb[k + 1] = carried(s.multiple, limb[k + 1]);
    }
}

// Bits 24 `index` .. 24 `index` + 24 of a number of `count` words; 0 above its end. The index is
// public.
__device__ __forceinline__ u32 digit_of_words(const u64* words, int count, int index) {
    int position = index * LIMB_BITS;
    int word = position >> 6;
    int shift = position & 63;
    u64 low = words[min(word, count - 1)] >> shift;
    u64 high = words[min(word + 1, count - 1)] << ((64 - shift) & 63);
    low = word < count ? low : 0;
    high = shift > 64 - LIMB_BITS && word + 1 < count ? high : 0;
    return static_cast<u32>(low | high) & (RADIX - 1);
}

// Writes `limbs` limbs of `factor` times a number of `count` words, |factor| <= 2^23, `stride`
// doubles apart.
__device__ __forceinline__ void put_limbs(double* to, int stride, int limbs, const u64* words, int count, i64 factor) {
    i64 carry = 0;
#pragma unroll 1
    for (int j = 0; j < limbs; j++) {
        i64 sum = carry + factor * static_cast<i64>(digit_of_words(words, count, j));
        i64 rest = ((sum + RADIX / 2) & (RADIX - 1)) - RADIX / 2;
        carry = (sum - rest) >> LIMB_BITS;
        to[j * stride] = static_cast<double>(rest);
    }
}

}  // namespace narrow
