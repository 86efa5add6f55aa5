//! [`weighted_sums`](batch_modexp_core::weighted_sums) with the widest vectors of the processor.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{
    _mm_loadu_si128, _mm256_add_epi64, _mm256_cvtepu32_epi64, _mm256_loadu_si256, _mm256_mul_epu32,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256, _mm512_add_epi64,
    _mm512_cvtepu32_epi64, _mm512_mul_epu32, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use batch_modexp_core::weighted_sums::{self as portable, SUMS};

/// Computes [`weighted_sums`](portable::weighted_sums).
pub fn weighted_sums(words: &[u32], weights: &[[u32; SUMS]], sums: &mut [u64; SUMS]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512 F.
        return unsafe { avx512(words, weights, sums) };
    } else if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2(words, weights, sums) };
    }
    portable::weighted_sums(words, weights, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(words: &[u32], weights: &[[u32; SUMS]], sums: &mut [u64; SUMS]) {
    let mut totals = [_mm512_setzero_si512(); SUMS / 8];
    for (word, weights) in words.iter().zip(weights) {
        let word = _mm512_set1_epi64(i64::from(*word));
        for (total, weights) in totals.iter_mut().zip(weights.as_chunks::<8>().0) {
            // SAFETY: eight weights are 32 bytes.
            let weights = unsafe { _mm256_loadu_si256(weights.as_ptr().cast()) };
            let product = _mm512_mul_epu32(word, _mm512_cvtepu32_epi64(weights));
            *total = _mm512_add_epi64(*total, product);
        }
    }
    for (sums, total) in sums.as_chunks_mut::<8>().0.iter_mut().zip(totals) {
        // SAFETY: eight sums are 64 bytes.
        unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), total) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(words: &[u32], weights: &[[u32; SUMS]], sums: &mut [u64; SUMS]) {
    let mut totals = [_mm256_setzero_si256(); SUMS / 4];
    for (word, weights) in words.iter().zip(weights) {
        let word = _mm256_set1_epi64x(i64::from(*word));
        for (total, weights) in totals.iter_mut().zip(weights.as_chunks::<4>().0) {
            // SAFETY: four weights are 16 bytes.
            let weights = unsafe { _mm_loadu_si128(weights.as_ptr().cast()) };
            let product = _mm256_mul_epu32(word, _mm256_cvtepu32_epi64(weights));
            *total = _mm256_add_epi64(*total, product);
        }
    }
    for (sums, total) in sums.as_chunks_mut::<4>().0.iter_mut().zip(totals) {
        // SAFETY: four sums are 32 bytes.
        unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), total) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Every implementation that the processor has agrees with 128-bit arithmetic.
    #[test]
    fn sums() {
        type Sums = unsafe fn(&[u32], &[[u32; SUMS]], &mut [u64; SUMS]);
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut all: Vec<Sums> = Vec::from([weighted_sums as Sums, portable::weighted_sums]);
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(std::is_x86_feature_detected!("avx2").then_some(avx2 as Sums));
            all.extend(std::is_x86_feature_detected!("avx512f").then_some(avx512 as Sums));
        }
        let word = |i: usize| (i as u32 + 1).wrapping_mul(0x9e37_79b9) | 1 << 31;
        for len in [0, 1, 16, 33] {
            let words: Vec<u32> = (0..len).map(word).collect();
            // With 33 words the sums stay below 2^64.
            let weight = |i: usize, j: usize| word(SUMS * i + j) >> 6;
            let weights: Vec<[u32; SUMS]> = (0..len)
                .map(|i| core::array::from_fn(|j| weight(i, j)))
                .collect();
            let expected = core::array::from_fn(|j| {
                let products = words.iter().zip(&weights);
                let products =
                    products.map(|(word, weights)| u128::from(*word) * u128::from(weights[j]));
                u64::try_from(products.sum::<u128>()).unwrap()
            });
            for compute in &all {
                let mut sums = [u64::MAX; SUMS];
                // SAFETY: the processor has the instructions.
                unsafe { compute(&words, &weights, &mut sums) };
                assert_eq!(sums, expected, "{len}");
            }
        }
    }
}
