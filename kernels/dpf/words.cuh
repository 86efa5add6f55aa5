// Converts between 64-bit little-endian words in memory and 52-bit limbs in lanes.
#pragma once

#include "carry.cuh"

namespace dpf {

// Limb `index` of a number of `count` words. Limbs above its end are 0. Addresses depend only on
// positions.
__device__ __forceinline__ u64 limb_of_words(const u64* words, int count, int index) {
    int position = index * LIMB_BITS;
    int word = position >> 6;
    int shift = position & 63;
    u64 low = words[min(word, count - 1)] >> shift;
    u64 high = words[min(word + 1, count - 1)] << ((64 - shift) & 63);
    low = word < count ? low : 0;
    high = shift > 64 - LIMB_BITS && word + 1 < count ? high : 0;
    return (low | high) & LIMB_MASK;
}

// This lane's limbs of a number of `count` words.
template <class S>
__device__ __forceinline__ void import_words(double (&limbs)[S::L], const u64* words, int count) {
#pragma unroll
    for (int j = 0; j < S::L; j++) limbs[j] = to_double(limb_of_words(words, count, S::lane() * S::L + j));
}

// The limb with bit `position` of a number: position / 52 without a division. Correct below bit 2^17.
__device__ __forceinline__ u32 limb_with_bit(u32 position) { return position * 20165 >> 20; }

// Word `word` of a number of S::N limbs in [0, 2^52). `limb` reads any limb of the instance by its
// index, after the instance's lanes have stored them. Requires 64 * (word + 1) <= 52 * S::N.
template <class S, class Limb>
__device__ __forceinline__ u64 word_of_limbs(int word, Limb limb) {
    static_assert(LIMB_BITS * S::N <= 1 << 17, "limb_with_bit must be right for all words of the number");
    u32 position = static_cast<u32>(word) * 64;
    u32 index = limb_with_bit(position);
    u32 shift = position - index * LIMB_BITS;
    u64 value = limb(index) >> shift | limb(index + 1) << (LIMB_BITS - shift);
    u64 top = limb(min(index + 2, S::N - 1)) << ((2 * LIMB_BITS - shift) & 63);
    return value | (shift > 2 * LIMB_BITS - 64 ? top : 0);
}

}  // namespace dpf
