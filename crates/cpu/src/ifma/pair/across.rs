//! Instructions across lanes, which pairs need besides those of one instance per lane: as a trait,
//! and on the processor.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512i, _mm_load_si128, _mm_store_si128, _mm512_alignr_epi64, _mm512_and_si512,
    _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_castsi512_si128,
    _mm512_cmpeq_epi64_mask, _mm512_extracti32x4_epi32, _mm512_inserti32x4,
    _mm512_mask_loadu_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64, _mm512_zextsi128_si512,
};

use zeroize::Zeroize;

use crate::ifma::avx512::Token;
use crate::ifma::madd52::{Limb8, Madd52, RADIX_BITS};

/// One limb of both instances: two neighbouring lanes of a vector.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C, align(16))]
pub(crate) struct Pair(pub(in crate::ifma) [u64; 2]);

impl Pair {
    pub(super) const ZERO: Self = Self([0; 2]);
}

impl Zeroize for Pair {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Operations that move pairs within a vector of four pairs, lowest first.
pub(crate) trait Across: Madd52<Limb = Limb8> {
    /// Writes a vector; the address needs only the alignment of a pair.
    fn store_pairs(self, pairs: &mut [Pair; 4], vector: Self::Vector);

    /// Reads a vector from four places.
    fn gather(self, pairs: [&Pair; 4]) -> Self::Vector;

    /// Writes a vector to four places.
    fn scatter(self, pairs: [&mut Pair; 4], vector: Self::Vector);

    /// The same pair four times.
    fn spread(self, pair: &Pair) -> Self::Vector;

    /// The lowest pair four times.
    fn spread_lowest(self, a: Self::Vector) -> Self::Vector;

    /// The lowest pair, and zeros above it.
    fn lowest(self, a: Self::Vector) -> Self::Vector;

    /// Each pair one position lower; the highest becomes zero.
    fn down(self, a: Self::Vector) -> Self::Vector;

    /// Each pair one position higher; the lowest becomes zero.
    fn up(self, a: Self::Vector) -> Self::Vector;

    /// `2^52 - 1` in the lanes where `bit` is 1; zero where it is 0.
    fn mask_of(self, bit: Self::Vector) -> Self::Vector;

    /// `a & b`.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `new` in the lanes whose digit is `entry`, `old` in the others.
    fn pick_pairs(
        self,
        old: Self::Vector,
        new: &[Pair; 4],
        digits: Self::Vector,
        entry: u64,
    ) -> Self::Vector;

    /// Runs `kernel`, compiled for these instructions.
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K);
}

/// A computation over numbers whose quarters have `J` limbs.
pub(crate) trait PairKernel {
    /// Must be `#[inline(always)]`, so that it is compiled with the instructions of its caller.
    fn run<T: Across, const J: usize>(self, unit: T);
}

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
