//! The instructions across lanes on the processor.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512i, _mm_load_si128, _mm_store_si128, _mm512_alignr_epi64, _mm512_and_si512,
    _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_castsi512_si128,
    _mm512_cmpeq_epi64_mask, _mm512_extracti32x4_epi32, _mm512_inserti32x4,
    _mm512_mask_loadu_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64, _mm512_zextsi128_si512,
};

use super::across::{Across, Pair, PairKernel};
use crate::ifma::avx512::Token;
use crate::ifma::madd52::RADIX_BITS;

/// As for `Madd52`, every method is inlined into [`with_features`], where most are one instruction.
impl Across for Token {
    #[inline(always)]
    fn store_pairs(self, pairs: &mut [Pair; 4], vector: __m512i) {
        // SAFETY: the token proves AVX-512 F; four pairs are 64 bytes.
        unsafe { _mm512_storeu_si512(pairs.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn gather(self, [a, b, c, d]: [&Pair; 4]) -> __m512i {
        // SAFETY: the token proves AVX-512 F; a `Pair` is 16 bytes, aligned to 16.
        unsafe {
            let vector = _mm512_castsi128_si512(_mm_load_si128(a.0.as_ptr().cast()));
            let vector = _mm512_inserti32x4::<1>(vector, _mm_load_si128(b.0.as_ptr().cast()));
            let vector = _mm512_inserti32x4::<2>(vector, _mm_load_si128(c.0.as_ptr().cast()));
            _mm512_inserti32x4::<3>(vector, _mm_load_si128(d.0.as_ptr().cast()))
        }
    }

    #[inline(always)]
    fn scatter(self, [a, b, c, d]: [&mut Pair; 4], vector: __m512i) {
        // SAFETY: the token proves AVX-512 F; a `Pair` is 16 bytes, aligned to 16.
        unsafe {
            _mm_store_si128(a.0.as_mut_ptr().cast(), _mm512_castsi512_si128(vector));
            let part = _mm512_extracti32x4_epi32::<1>(vector);
            _mm_store_si128(b.0.as_mut_ptr().cast(), part);
            let part = _mm512_extracti32x4_epi32::<2>(vector);
            _mm_store_si128(c.0.as_mut_ptr().cast(), part);
            let part = _mm512_extracti32x4_epi32::<3>(vector);
            _mm_store_si128(d.0.as_mut_ptr().cast(), part);
        }
    }

    #[inline(always)]
    fn spread(self, pair: &Pair) -> __m512i {
        // SAFETY: the token proves AVX-512 F; a `Pair` is 16 bytes, aligned to 16.
        unsafe { _mm512_broadcast_i32x4(_mm_load_si128(pair.0.as_ptr().cast())) }
    }

    #[inline(always)]
    fn spread_lowest(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_shuffle_i64x2::<0>(a, a) }
    }

    #[inline(always)]
    fn lowest(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_zextsi128_si512(_mm512_castsi512_si128(a)) }
    }

    #[inline(always)]
    fn down(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_alignr_epi64::<2>(_mm512_setzero_si512(), a) }
    }

    #[inline(always)]
    fn up(self, a: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_alignr_epi64::<6>(a, _mm512_setzero_si512()) }
    }

    #[inline(always)]
    fn mask_of(self, bit: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe {
            let ones = _mm512_sub_epi64(_mm512_setzero_si512(), bit);
            _mm512_srli_epi64::<{ 64 - RADIX_BITS }>(ones)
        }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn pick_pairs(self, old: __m512i, new: &[Pair; 4], digits: __m512i, entry: u64) -> __m512i {
        // SAFETY: the token proves AVX-512 F; four pairs are 64 bytes.
        unsafe {
            let mask = _mm512_cmpeq_epi64_mask(digits, _mm512_set1_epi64(entry as i64));
            _mm512_mask_loadu_epi64(old, mask, new.as_ptr().cast())
        }
    }

    #[inline(always)]
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K) {
        // SAFETY: the token proves AVX-512 F and IFMA.
        unsafe { with_features::<K, J>(self, kernel) }
    }
}

/// Compiles `kernel` with AVX-512.
#[target_feature(enable = "avx512f,avx512ifma")]
fn with_features<K: PairKernel, const J: usize>(token: Token, kernel: K) {
    kernel.run::<Token, J>(token);
}
