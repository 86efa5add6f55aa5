//! AVX-512 IFMA and AVX-IFMA in radix 2^52: eight instances at a time, or four; two where there are
//! few.

mod avx512;
mod avx_ifma;
#[cfg(all(test, target_os = "linux"))]
mod emulator;
mod halves;
mod kernel;
mod lanes52;
mod look_up;
mod madd52;
mod pair;
#[cfg(test)]
mod portable;
mod size;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tiles;
mod tuning;

use alloc::vec::Vec;

use batch_modexp_core::checks::Form;
use batch_modexp_core::engine::{
    Comparison, Engine, Exponent, Moduli, SecretPowers, batch_mod_exp,
};
use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::{Choice, Limb, Unsigned};

use self::lanes52::Lanes52;
use self::madd52::{Limb as _, Limb4, Madd52};
use self::pair::{Across, Pairs};
use super::adx::{self, Words};
use super::cost::{self, Rest};
use super::lanes::mul::{self, Run};
use super::lanes::{LaneEngine, OnLanes, pow};

/// Computes a batch on the calling thread with 52-bit multiply-adds of vectors.
///
/// Uses AVX-512 IFMA, eight instances at a time (x86-64: Intel's servers since Ice Lake, AMD since
/// Zen 4), or AVX-IFMA, four at a time (Intel's clients since Meteor Lake, Sierra Forest). The
/// processor is asked at run time; no build settings are needed.
///
/// In a group of eight each instance has its own 64-bit lane of the vector registers. The rest of a
/// batch is computed in pairs where that takes less time, each instance across four lanes. This
/// applies at most widths from 384 to 4,096 bits, to up to two instances, and to four from 1,024
/// bits on. Two instances take from nine to four tenths of the time of a group. A larger rest
/// costs as much as a group.
///
/// With four lanes there are no pairs. A single instance whose width is a multiple of 512 bits is
/// computed in words of 64 bits; two or three instances cost as much as four.
///
/// Moduli of up to 16,384 bits are served; wider ones fail with [`Error::ModulusWidth`]. An
/// instance costs the same whatever its neighbours are, so different moduli may stand side by side.
/// Instances of equal width should stand together: each change of width starts new vectors.
///
/// Source for groups: S. Gueron and V. Krasnov, "Accelerating Big Integer Arithmetic Using Intel
/// IFMA Extensions", ARITH 2016. Here each lane has its own instance, so that no data moves across
/// lanes. Source for pairs: the same authors, "Software Implementation of Modular Exponentiation,
/// Using Advanced Vector Instructions Architectures", WAIFI 2012.
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Ifma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 8];
///
/// if let Some(ifma) = Ifma::new() {
///     let mut out = [U256::ZERO; 8];
///     ifma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 8]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Units<avx512::Token, avx_ifma::Token<EVEX>>);

/// Forces four lanes in the AVX-512 encoding, for tests and measurements on processors without
/// AVX-IFMA. Set by `RUSTFLAGS='--cfg batch_modexp_ifma_evex256'`.
const EVEX: bool = cfg!(batch_modexp_ifma_evex256);

impl Ifma {
    /// The most instances that are computed at the same time: half as many with AVX-IFMA. See
    /// [`granularity`](BatchModExp::granularity).
    pub const LANES: usize = 8;

    /// The backend, if the processor and the operating system support AVX-512 F and IFMA, or
    /// AVX-IFMA.
    #[must_use]
    pub fn new() -> Option<Self> {
        let four = || {
            let words = adx::Token::detect().map(Words);
            avx_ifma::Token::<EVEX>::detect().map(|token| Units::four(token, words))
        };
        let units = match EVEX {
            true => four(),
            false => avx512::Token::detect().map(Units::eight).or_else(four),
        };
        units.map(Self)
    }
}

impl Ifma {
    /// The most instances that this processor computes at the same time.
    pub(crate) fn lanes(self) -> usize {
        self.0.rest().lanes()
    }
}

/// The entry points behind which the kernels are compiled. Inlined into a caller's crate, they would
/// compile them again there.
impl Ifma {
    /// The engine of this processor.
    #[inline(never)]
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        &self.0
    }

    #[inline(never)]
    fn multiply(&self, form: Form, run: &mut dyn Run<'_>) {
        self.0.lanes().multiply(form, run);
    }
}

impl<U: Unsigned> BatchModExp<U> for Ifma {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self.engine(), batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        self.lanes()
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        self.0.rest().relative_time(bits, count)
    }
}

impl<U: Unsigned> BatchModMul<U> for Ifma {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Ordinary, run))
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Montgomery, run))
    }
}

impl HasPowerEngine for Ifma {
    #[inline(never)]
    fn power_engine(&self) -> &dyn PowerEngine {
        self.0.lanes()
    }
}

/// The lanes of a processor, with what computes the last instances of a batch: eight with the
/// instructions of `E`, or four with those of `F`.
#[derive(Clone, Copy, Debug)]
enum Units<E, F> {
    Eight {
        lanes: LaneEngine<Lanes52<E>>,
        pairs: LaneEngine<Pairs<E>>,
    },
    Four {
        lanes: LaneEngine<Lanes52<F>>,
        words: Option<Words<adx::Token>>,
    },
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> Units<E, F> {
    fn eight(unit: E) -> Self {
        Self::Eight {
            lanes: LaneEngine(Lanes52(unit)),
            pairs: LaneEngine(Pairs(unit)),
        }
    }

    fn four(unit: F, words: Option<Words<adx::Token>>) -> Self {
        Self::Four {
            lanes: LaneEngine(Lanes52(unit)),
            words,
        }
    }

    fn lanes(&self) -> &dyn OnLanes {
        match self {
            Self::Eight { lanes, .. } => lanes,
            Self::Four { lanes, .. } => lanes,
        }
    }

    /// The way to compute the last instances of a batch.
    fn rest(&self) -> Rest {
        match self {
            Self::Eight { .. } => cost::PAIRS,
            Self::Four { words: Some(_), .. } => cost::WORDS_AFTER_IFMA,
            Self::Four { .. } => Rest::in_group_of(Limb4::LANES),
        }
    }

    /// Pairs if there are so few equally wide moduli that all of them use pairs, else lanes.
    fn engine_for(&self, moduli: Moduli<'_>) -> &dyn Engine {
        match self {
            Self::Eight { pairs, .. } if self.rest_of(moduli) == moduli.len() => pairs,
            _ => self.lanes(),
        }
    }

    /// How many of these equally wide moduli are the rest.
    fn rest_of(&self, moduli: Moduli<'_>) -> usize {
        let bits = moduli.first().map_or(0, |modulus| modulus.bits());
        self.rest().count(bits, moduli.len())
    }
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> Engine for Units<E, F> {
    fn name(&self) -> &'static str {
        "ifma"
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let in_lanes = powers.moduli.len() - self.rest_of(powers.moduli);
        let (in_lanes, rest) = powers.split_at(in_lanes);
        self.lanes().run_pow(in_lanes);
        match self {
            Self::Eight { pairs, .. } => pairs.run_pow(rest),
            Self::Four { words, .. } => {
                if let Some(words) = words {
                    pow(*words, rest);
                }
            }
        }
    }

    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        self.engine_for(moduli).run_products(moduli, factors, out);
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        self.engine_for(moduli)
            .run_public_powers(moduli, exponent, bases, out);
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        self.engine_for(moduli).run_remainders(moduli, numbers, out);
    }

    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        self.engine_for(comparison.factors[0])
            .run_comparison(comparison)
    }
}
