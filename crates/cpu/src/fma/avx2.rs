//! The proof that the processor has AVX2 and FMA, and the instructions behind it. With `neon`, the
//! only unsafe code of this backend.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_add_pd, _mm256_and_si256, _mm256_castpd_si256,
    _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_fmadd_pd, _mm256_load_pd, _mm256_load_si256,
    _mm256_or_si256, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_srli_epi64, _mm256_store_pd,
    _mm256_store_si256, _mm256_sub_pd,
};

use super::fma51::{Fma51, HIGH, Kernel, LOW, Limb, MASK, RADIX_BITS, TWO_52};

/// Proof that AVX2 and FMA can be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(());

impl Token {
    /// Asks the processor and the operating system.
    pub(super) fn detect() -> Option<Self> {
        let usable = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        usable.then_some(Self(()))
    }
}

/// Every method is `#[inline(always)]` and compiled into [`with_features`], where each is a few
/// instructions.
impl Fma51 for Token {
    type Floats = __m256d;
    type Sums = __m256i;

    #[inline(always)]
    fn load(self, limb: &Limb) -> __m256d {
        // SAFETY: the token proves AVX; a `Limb` is 32 bytes, aligned to 32.
        unsafe { _mm256_load_pd(limb.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, limb: &mut Limb, floats: __m256d) {
        // SAFETY: the token proves AVX; a `Limb` is 32 bytes, aligned to 32.
        unsafe { _mm256_store_pd(limb.0.as_mut_ptr().cast(), floats) }
    }

    #[inline(always)]
    fn load_sums(self, limb: &Limb) -> __m256i {
        // SAFETY: the token proves AVX; a `Limb` is 32 bytes, aligned to 32.
        unsafe { _mm256_load_si256(limb.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_sums(self, limb: &mut Limb, sums: __m256i) {
        // SAFETY: the token proves AVX; a `Limb` is 32 bytes, aligned to 32.
        unsafe { _mm256_store_si256(limb.0.as_mut_ptr().cast(), sums) }
    }

    #[inline(always)]
    fn splat(self, value: u64) -> __m256i {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_set1_epi64x(value.cast_signed()) }
    }

    #[inline(always)]
    fn product(self, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
        // SAFETY: the token proves AVX and FMA.
        unsafe {
            let high = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
            let low = _mm256_fmadd_pd(a, b, _mm256_sub_pd(_mm256_set1_pd(LOW), high));
            (_mm256_castpd_si256(high), _mm256_castpd_si256(low))
        }
    }

    #[inline(always)]
    fn double(self, a: __m256d) -> __m256d {
        // SAFETY: the token proves AVX.
        unsafe { _mm256_add_pd(a, a) }
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
    fn limb(self, a: __m256i) -> __m256d {
        // SAFETY: the token proves AVX2.
        unsafe {
            let low = _mm256_and_si256(a, _mm256_set1_epi64x(MASK.cast_signed()));
            let two_52 = _mm256_set1_pd(TWO_52);
            let sum = _mm256_or_si256(low, _mm256_castpd_si256(two_52));
            _mm256_sub_pd(_mm256_castsi256_pd(sum), two_52)
        }
    }

    #[inline(always)]
    fn pick(self, old: __m256i, new: &Limb, digits: __m256i, entry: u64) -> __m256i {
        // SAFETY: the token proves AVX2; a `Limb` is 32 bytes, aligned to 32.
        unsafe {
            let mask = _mm256_cmpeq_epi64(digits, _mm256_set1_epi64x(entry.cast_signed()));
            let new = _mm256_load_si256(new.0.as_ptr().cast());
            _mm256_or_si256(old, _mm256_and_si256(new, mask))
        }
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        // SAFETY: the token proves AVX2 and FMA.
        unsafe { with_features(self, kernel) }
    }
}

/// Compiles `kernel` with AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
fn with_features<K: Kernel>(token: Token, kernel: K) {
    kernel.run(token);
}
