//! Fused multiply-add of doubles: four instances at a time in radix 2^51.
//!
//! # Exact products from rounded ones
//!
//! Limbs are integers of up to 51 bits held in doubles. Let `a` and `b` be limbs of at most 2^51;
//! one may be doubled if the product stays below 2^103. Then
//!
//! ```text
//! high = fma(a, b, 2^103)                       = 2^103 + H * 2^51
//! low  = fma(a, b, (2^103 + 1.5 * 2^52) - high) = 1.5 * 2^52 + L
//! ```
//!
//! with `a * b = H * 2^51 + L` and `|L| <= 2^50`. Doubles from 2^103 to 2^104 are 2^51 apart, so
//! the first line rounds `a * b` to the nearest multiple of 2^51. The difference in the second line
//! is exact: it is a multiple of 2^51 below 2^104. Its result is exact too, an integer between 2^52
//! and 2^53. Rounding is to nearest throughout, as always in Rust. Limbs of 52 bits would need
//! another rounding mode, which Rust does not allow.
//!
//! The bit patterns of both are `0x466 << 52 | H` and `0x433 << 52 | 2^51 + L`, and can be added as
//! 64-bit integers, column by column. The number of products of each column is known, so their
//! constant parts are subtracted beforehand: see [`bias`].
//!
//! Source: N. Emmart, J. Luitjens, C. Weems, C. Woolley, "Optimizing Modular Multiplication for
//! NVIDIA's Maxwell GPUs", ARITH 2016, and N. Emmart, F. Zheng, C. Weems, "Faster Modular
//! Exponentiation using Double Precision Floating Point Arithmetic on the GPU", ARITH 2018, who use
//! 52 bits and rounding toward zero.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod band;
mod bias;
mod fma51;
mod lanes4;
mod look_up;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod portable;
mod product;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use batch_modexp_core::checks::Form;
use batch_modexp_core::engine::{
    Comparison, Engine, Exponent, Moduli, SecretPowers, batch_mod_exp,
};
use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::{Choice, Limb, Unsigned};

#[cfg(target_arch = "x86_64")]
use self::avx2::Token;
use self::lanes4::Lanes4;
#[cfg(target_arch = "aarch64")]
use self::neon::Token;
#[cfg(target_arch = "x86_64")]
use super::adx::{self, Words};
#[cfg(target_arch = "x86_64")]
use super::cost;
use super::cost::Rest;
use super::lanes::mul::{self, Run};
#[cfg(target_arch = "x86_64")]
use super::lanes::pow;
use super::lanes::{LaneEngine, OnLanes};

/// Computes a batch on the calling thread with fused multiply-add of doubles, four instances at a
/// time.
///
/// Runs on x86-64 with AVX2 and FMA (Intel since Haswell, AMD since Zen) and on any 64-bit Arm. The
/// processor is asked at run time; no build settings are needed.
///
/// Each instance has its own lane of the vector registers. Up to three instances may remain after
/// groups of four. They cost as much as a group of four, or are computed one by one in words of 64
/// bits where that takes less time. The latter applies to one or two instances of most widths, on
/// x86-64 with BMI2 and ADX (Intel since Broadwell, AMD since Zen).
///
/// Moduli of up to 16,384 bits are served; wider ones fail with [`Error::ModulusWidth`]. An
/// instance costs the same whatever its neighbours are, so different moduli may stand side by side.
/// Instances of equal width should stand together: each change of width starts new vectors.
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Fma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 4];
///
/// if let Some(fma) = Fma::new() {
///     let mut out = [U256::ZERO; 4];
///     fma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 4]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fma {
    lanes: LaneEngine<Lanes4<Token>>,
    /// For instances that would leave lanes empty.
    #[cfg(target_arch = "x86_64")]
    words: Option<Words<adx::Token>>,
}

impl Fma {
    /// The number of instances that are computed at the same time.
    pub const LANES: usize = 4;

    /// The backend, if the processor has the instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        Some(Self {
            lanes: LaneEngine(Lanes4(Token::detect()?)),
            #[cfg(target_arch = "x86_64")]
            words: adx::Token::detect().map(Words),
        })
    }

    /// Enables the words under valgrind, which has the instructions.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn with_words_under_valgrind(self) -> Self {
        Self {
            words: Some(Words(adx::Token::under_valgrind())),
            ..self
        }
    }

    /// The way to compute the last instances of a batch.
    pub(super) fn rest(&self) -> Rest {
        #[cfg(target_arch = "x86_64")]
        if self.words.is_some() {
            return cost::WORDS_AFTER_FMA;
        }
        Rest::in_group_of(Self::LANES)
    }
}

impl Fma {
    #[inline(never)]
    fn multiply(&self, form: Form, run: &mut dyn Run<'_>) {
        self.lanes.multiply(form, run);
    }
}

/// Kernels are compiled with these functions. Inlined into a caller's crate, they would compile them
/// again there.
impl Engine for Fma {
    fn name(&self) -> &'static str {
        "fma"
    }

    #[inline(never)]
    fn run_pow(&self, powers: SecretPowers<'_>) {
        let count = powers.moduli.len();
        let bits = powers.moduli.first().map_or(0, |modulus| modulus.bits());
        let (in_lanes, _rest) = powers.split_at(count - self.rest().count(bits, count));
        self.lanes.run_pow(in_lanes);
        #[cfg(target_arch = "x86_64")]
        if let Some(words) = self.words {
            pow(words, _rest);
        }
    }

    #[inline(never)]
    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        self.lanes.run_products(moduli, factors, out);
    }

    #[inline(never)]
    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        self.lanes.run_public_powers(moduli, exponent, bases, out);
    }

    #[inline(never)]
    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        self.lanes.run_remainders(moduli, numbers, out);
    }

    #[inline(never)]
    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        self.lanes.run_comparison(comparison)
    }
}

impl<U: Unsigned> BatchModExp<U> for Fma {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self, batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        Self::LANES
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        self.rest().relative_time(bits, count)
    }
}

impl<U: Unsigned> BatchModMul<U> for Fma {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Ordinary, run))
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Montgomery, run))
    }
}

impl HasPowerEngine for Fma {
    #[inline(never)]
    fn power_engine(&self) -> &dyn PowerEngine {
        &self.lanes
    }
}
