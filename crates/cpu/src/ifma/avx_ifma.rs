//! The proof that the processor has 52-bit multiply-adds of 256 bits, and the instructions behind
//! it.
//!
//! The multiply-adds have two equivalent encodings: that of AVX-IFMA (VEX), and that of AVX-512
//! (EVEX), for tests and measurements on processors without AVX-IFMA. All other instructions are
//! AVX2.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm_cvtsi64_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_cmpeq_epi64,
    _mm256_cvtepu8_epi64, _mm256_load_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64,
    _mm256_srli_epi64, _mm256_store_si256,
};

use super::madd52::{Kernel, Limb4, Madd52, Processor, RADIX_BITS, multiply_add};
use crate::lanes::MAX_LANES;

/// Proof that AVX2 and the multiply-adds of this encoding can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<const EVEX: bool>(());

impl Token<false> {
    /// Asks the processor and the operating system.
    #[cfg(any(test, not(batch_modexp_ifma_evex256)))]
    pub(super) fn detect() -> Option<Self> {
        let usable =
            std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("avxifma");
        usable.then_some(Self(()))
    }

    /// The instructions of this processor, or emulated ones, which are about a thousand times
    /// slower.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn detect_or_emulate() -> Option<Self> {
        let emulated = || {
            super::emulator::install();
            Self(())
        };
        Self::detect().or_else(|| std::is_x86_feature_detected!("avx2").then(emulated))
    }
}

#[cfg(any(test, batch_modexp_ifma_evex256))]
impl Token<true> {
    /// Asks the processor and the operating system.
    pub(super) fn detect() -> Option<Self> {
        let usable = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("avx512ifma")
            && std::is_x86_feature_detected!("avx512vl");
        usable.then_some(Self(()))
    }
}

/// Every method is `#[inline(always)]` and compiled into [`with_features`], where each is one
/// instruction or two.
impl<const EVEX: bool> Madd52 for Token<EVEX> {
    const MAX_TILE: usize = 10;
    const MERGES_INTO_ZERO: bool = true;
    const CAN_SAVE_PRODUCTS: bool = false;

    type Limb = Limb4;
    type Vector = __m256i;
    /// All ones in the selected lanes.
    type Mask = __m256i;

    #[inline(always)]
    fn processor(self) -> Processor {
        Processor::Other
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn load(self, limb: &Limb4) -> __m256i {
        // SAFETY: the token proves AVX; a `Limb4` is 32 bytes, aligned to 32.
        unsafe { _mm256_load_si256(limb.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, limb: &mut Limb4, vector: __m256i) {
        // SAFETY: the token proves AVX; a `Limb4` is 32 bytes, aligned to 32.
        unsafe { _mm256_store_si256(limb.0.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn madd_lo(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2 and the multiply-adds of this encoding.
        unsafe {
            match EVEX {
                true => evex_madd_lo(sum, a, b),
                false => madd_lo(sum, a, b),
            }
        }
    }

    #[inline(always)]
    fn madd_hi(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2 and the multiply-adds of this encoding.
        unsafe {
            match EVEX {
                true => evex_madd_hi(sum, a, b),
                false => madd_hi(sum, a, b),
            }
        }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn carry(self, a: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_srli_epi64::<{ RADIX_BITS.cast_signed() }>(a) }
    }

    #[inline(always)]
    fn carry_of_cleared(self, a: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe {
            let mask = _mm256_set1_epi64x((1 << RADIX_BITS) - 1);
            _mm256_srli_epi64::<{ RADIX_BITS.cast_signed() }>(_mm256_add_epi64(a, mask))
        }
    }

    #[inline(always)]
    fn low(self, a: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_and_si256(a, _mm256_set1_epi64x((1 << RADIX_BITS) - 1)) }
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; MAX_LANES]) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(bytes))) }
    }

    #[inline(always)]
    fn equal(self, a: __m256i, b: u64) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_cmpeq_epi64(a, _mm256_set1_epi64x(b.cast_signed())) }
    }

    /// Avoids a blend, which takes three steps on some processors.
    #[inline(always)]
    fn merge(self, old: __m256i, mask: __m256i, new: &Limb4) -> __m256i {
        // SAFETY: the token proves AVX2; a `Limb4` is 32 bytes, aligned to 32.
        unsafe {
            let new = _mm256_load_si256(new.0.as_ptr().cast());
            _mm256_or_si256(old, _mm256_and_si256(new, mask))
        }
    }

    /// Word numbers for both halves of each lane, since AVX2 moves words of 32 bits.
    #[inline(always)]
    fn lane_numbers(self, bytes: [u8; MAX_LANES]) -> __m256i {
        let lanes = self.widen(bytes);
        // SAFETY: the token proves AVX2.
        unsafe {
            let low = _mm256_add_epi64(lanes, lanes);
            let high = _mm256_add_epi64(low, _mm256_set1_epi64x(1));
            _mm256_or_si256(low, _mm256_slli_epi64::<32>(high))
        }
    }

    #[inline(always)]
    fn pick(self, old: __m256i, mask: __m256i, lanes: __m256i, words: &[u64; 4]) -> __m256i {
        // SAFETY: the token proves AVX2; the words are 32 bytes.
        unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            let picked = _mm256_permutevar8x32_epi32(words, lanes);
            _mm256_or_si256(old, _mm256_and_si256(picked, mask))
        }
    }

    #[inline(always)]
    fn splat(self, value: u64) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_epi64x(value.cast_signed()) }
    }

    #[inline(always)]
    fn run<K: Kernel<Limb4>, const B: usize>(self, kernel: &mut K) {
        // SAFETY: the token proves AVX2.
        unsafe { with_features::<K, EVEX, B>(self, kernel) }
    }
}

/// Compiles `kernel` with AVX2, so that the compiler uses no instruction of AVX-512 and only 16
/// registers.
#[target_feature(enable = "avx2")]
fn with_features<K: Kernel<Limb4>, const EVEX: bool, const B: usize>(
    token: Token<EVEX>,
    kernel: &mut K,
) {
    kernel.run::<Token<EVEX>, B>(token);
}

// The prefixes fix the encoding, which the assembler would choose otherwise.
multiply_add!(madd_lo(__m256i in ymm_reg), "avx2", "{{vex}} vpmadd52luq");
multiply_add!(madd_hi(__m256i in ymm_reg), "avx2", "{{vex}} vpmadd52huq");
multiply_add!(evex_madd_lo(__m256i in ymm_reg), "avx2", "{{evex}} vpmadd52luq");
multiply_add!(evex_madd_hi(__m256i in ymm_reg), "avx2", "{{evex}} vpmadd52huq");
