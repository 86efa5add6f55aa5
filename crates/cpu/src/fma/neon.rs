//! The instructions on 64-bit Arm. With `avx2`, the only unsafe code of this backend.
#![allow(unsafe_code)]

use core::arch::aarch64::{
    float64x2_t, uint64x2_t, vaddq_f64, vaddq_u64, vandq_u64, vceqq_u64, vdupq_n_f64, vdupq_n_u64,
    vfmaq_f64, vld1q_f64, vld1q_u64, vorrq_u64, vreinterpretq_f64_u64, vreinterpretq_u64_f64,
    vshrq_n_u64, vst1q_f64, vst1q_u64, vsubq_f64,
};

use super::fma51::{Fma51, HIGH, Kernel, LOW, Limb, MASK, RADIX_BITS, TWO_52};

/// Proof that NEON can be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token(());

impl Token {
    /// Asks the operating system.
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

/// Four lanes are two registers.
impl Fma51 for Token {
    type Floats = [float64x2_t; 2];
    type Sums = [uint64x2_t; 2];

    #[inline(always)]
    fn load(self, limb: &Limb) -> [float64x2_t; 2] {
        let lanes = limb.0.as_ptr().cast();
        // SAFETY: the token proves NEON; a `Limb` is four lanes.
        unsafe { [vld1q_f64(lanes), vld1q_f64(lanes.add(2))] }
    }

    #[inline(always)]
    fn store(self, limb: &mut Limb, floats: [float64x2_t; 2]) {
        let lanes = limb.0.as_mut_ptr().cast();
        // SAFETY: the token proves NEON; a `Limb` is four lanes.
        unsafe {
            vst1q_f64(lanes, floats[0]);
            vst1q_f64(lanes.add(2), floats[1]);
        }
    }

    #[inline(always)]
    fn load_sums(self, limb: &Limb) -> [uint64x2_t; 2] {
        let lanes = limb.0.as_ptr();
        // SAFETY: the token proves NEON; a `Limb` is four lanes.
        unsafe { [vld1q_u64(lanes), vld1q_u64(lanes.add(2))] }
    }

    #[inline(always)]
    fn store_sums(self, limb: &mut Limb, sums: [uint64x2_t; 2]) {
        let lanes = limb.0.as_mut_ptr();
        // SAFETY: the token proves NEON; a `Limb` is four lanes.
        unsafe {
            vst1q_u64(lanes, sums[0]);
            vst1q_u64(lanes.add(2), sums[1]);
        }
    }

    #[inline(always)]
    fn splat(self, value: u64) -> [uint64x2_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe { [vdupq_n_u64(value); 2] }
    }

    #[inline(always)]
    fn product(
        self,
        a: [float64x2_t; 2],
        b: [float64x2_t; 2],
    ) -> ([uint64x2_t; 2], [uint64x2_t; 2]) {
        let half = |i: usize| {
            // SAFETY: the token proves NEON.
            unsafe {
                let high = vfmaq_f64(vdupq_n_f64(HIGH), a[i], b[i]);
                let low = vfmaq_f64(vsubq_f64(vdupq_n_f64(LOW), high), a[i], b[i]);
                (vreinterpretq_u64_f64(high), vreinterpretq_u64_f64(low))
            }
        };
        let ((high_0, low_0), (high_1, low_1)) = (half(0), half(1));
        ([high_0, high_1], [low_0, low_1])
    }

    #[inline(always)]
    fn double(self, a: [float64x2_t; 2]) -> [float64x2_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe { [vaddq_f64(a[0], a[0]), vaddq_f64(a[1], a[1])] }
    }

    #[inline(always)]
    fn add(self, a: [uint64x2_t; 2], b: [uint64x2_t; 2]) -> [uint64x2_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe { [vaddq_u64(a[0], b[0]), vaddq_u64(a[1], b[1])] }
    }

    #[inline(always)]
    fn carry(self, a: [uint64x2_t; 2]) -> [uint64x2_t; 2] {
        // SAFETY: the token proves NEON.
        a.map(|half| unsafe { vshrq_n_u64::<{ RADIX_BITS.cast_signed() }>(half) })
    }

    #[inline(always)]
    fn limb(self, a: [uint64x2_t; 2]) -> [float64x2_t; 2] {
        a.map(|half| {
            // SAFETY: the token proves NEON.
            unsafe {
                let low = vandq_u64(half, vdupq_n_u64(MASK));
                let two_52 = vdupq_n_f64(TWO_52);
                let sum = vorrq_u64(low, vreinterpretq_u64_f64(two_52));
                vsubq_f64(vreinterpretq_f64_u64(sum), two_52)
            }
        })
    }

    #[inline(always)]
    fn pick(
        self,
        old: [uint64x2_t; 2],
        new: &Limb,
        digits: [uint64x2_t; 2],
        entry: u64,
    ) -> [uint64x2_t; 2] {
        let new = self.load_sums(new);
        let half = |i: usize| {
            // SAFETY: the token proves NEON.
            unsafe {
                let mask = vceqq_u64(digits[i], vdupq_n_u64(entry));
                vorrq_u64(old[i], vandq_u64(new[i], mask))
            }
        };
        [half(0), half(1)]
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        // SAFETY: the token proves NEON.
        unsafe { with_features(self, kernel) }
    }
}

/// Compiles `kernel` with NEON.
#[target_feature(enable = "neon")]
fn with_features<K: Kernel>(token: Token, kernel: K) {
    kernel.run(token);
}
