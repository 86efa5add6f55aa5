//! AVX-512 IFMA and AVX-IFMA in radix 2^52: eight instances at a time, or four; two where there are
//! few.

mod avx512;
mod avx_ifma;
mod cost;
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
use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::powers::{
    FixedPowers, HasPowerEngine, MultiPowers, PowerEngine, PublicPowers,
};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::{Choice, Limb, Unsigned};

use self::lanes52::Lanes52;
use self::madd52::{Limb as _, Limb4, Limb8, Madd52};
use self::pair::{Across, Pairs};
use super::adx::{self, Words};
use super::lanes::mul::{self, Run};
use super::lanes::powers_agree::powers_agree;
use super::lanes::reduce::reduce;
use super::lanes::{fixed_base, multi_exp, pow, products, public_exp};

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
            avx_ifma::Token::<EVEX>::detect().map(|token| Units::Four(token, words))
        };
        let units = match EVEX {
            true => four(),
            false => avx512::Token::detect().map(Units::Eight).or_else(four),
        };
        units.map(Self)
    }
}

impl Ifma {
    /// The most instances that this processor computes at the same time.
    pub(crate) fn lanes(self) -> usize {
        self.0.lanes()
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
    fn multiply(self, form: Form, run: &mut dyn Run<'_>) {
        self.0.multiply(form, run);
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
        self.0.relative_time(bits, count)
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
        &self.0
    }
}

/// The lanes of a processor: eight with the instructions of `E`, or four with those of `F`. Four
/// lanes come with words for a single instance.
#[derive(Clone, Copy, Debug)]
enum Units<E, F> {
    Eight(E),
    Four(F, Option<Words<adx::Token>>),
}

/// `call` with the lanes of the units.
macro_rules! in_lanes {
    ($units:expr, $lanes:ident => $call:expr) => {
        match $units {
            Units::Eight(unit) => {
                let $lanes = Lanes52(unit);
                $call
            }
            Units::Four(unit, _) => {
                let $lanes = Lanes52(unit);
                $call
            }
        }
    };
}

impl<E: Across, F: Madd52<Limb = Limb4>> Units<E, F> {
    /// The number of instances that are computed at the same time.
    fn lanes(self) -> usize {
        match self {
            Self::Eight(_) => Limb8::LANES,
            Self::Four(..) => Limb4::LANES,
        }
    }

    /// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
    fn relative_time(self, bits: u32, count: usize) -> u64 {
        match self {
            Self::Eight(_) => cost::relative_time(bits, count),
            Self::Four(_, words) => cost::four::relative_time(bits, count, words.is_some()),
        }
    }

    /// Computes the products of a run.
    fn multiply(self, form: Form, run: &mut dyn Run<'_>) {
        in_lanes!(self, lanes52 => mul::multiply(lanes52, form, run));
    }
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> PowerEngine for Units<E, F> {
    fn table_form(&self, bits: u32) -> TableForm {
        match self {
            Self::Eight(_) => fixed_base::form::<Lanes52<E>>(bits),
            Self::Four(..) => fixed_base::form::<Lanes52<F>>(bits),
        }
    }

    #[inline(never)]
    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        in_lanes!(*self, lanes52 => fixed_base::fill(lanes52, table, base, first));
    }

    #[inline(never)]
    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        in_lanes!(*self, lanes52 => fixed_base::powers(lanes52, powers));
    }

    #[inline(never)]
    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        in_lanes!(*self, lanes52 => multi_exp::powers(lanes52, powers));
    }

    #[inline(never)]
    fn public_powers(&self, powers: PublicPowers<'_, '_>) {
        in_lanes!(*self, lanes52 => public_exp::powers(lanes52, powers));
    }
}

/// Full groups of numbers use the lanes. The rest, or a few numbers, use pairs or words where that
/// takes less time.
impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> Engine for Units<E, F> {
    fn name(&self) -> &'static str {
        "ifma"
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let (bits, count) = (bits(powers.moduli), powers.moduli.len());
        match *self {
            Self::Eight(unit) => {
                let (in_lanes, in_pairs) = powers.split_at(count - cost::in_pairs(bits, count));
                pow(Lanes52(unit), in_lanes);
                pow(Pairs(unit), in_pairs);
            }
            Self::Four(unit, words) => {
                let words = words.filter(|_| cost::four::one_in_words(bits, count).is_some());
                let (in_lanes, in_words) = powers.split_at(count - usize::from(words.is_some()));
                pow(Lanes52(unit), in_lanes);
                if let Some(words) = words {
                    pow(words, in_words);
                }
            }
        }
    }

    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        match *self {
            Self::Eight(unit) if go_by_twos(moduli) => {
                products::products(Pairs(unit), moduli, factors, out);
            }
            _ => in_lanes!(*self, lanes52 => products::products(lanes52, moduli, factors, out)),
        }
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        match *self {
            Self::Eight(unit) if go_by_twos(moduli) => {
                products::public_powers(Pairs(unit), moduli, exponent, bases, out);
            }
            _ => in_lanes!(*self, lanes52 => {
                products::public_powers(lanes52, moduli, exponent, bases, out);
            }),
        }
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        match *self {
            Self::Eight(unit) if go_by_twos(moduli) => reduce(Pairs(unit), moduli, numbers, out),
            _ => in_lanes!(*self, lanes52 => reduce(lanes52, moduli, numbers, out)),
        }
    }

    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        Some(match *self {
            Self::Eight(unit) if go_by_twos(comparison.factors[0]) => {
                powers_agree(Pairs(unit), comparison)
            }
            _ => in_lanes!(*self, lanes52 => powers_agree(lanes52, comparison)),
        })
    }
}

/// Whether there are so few equally wide moduli that all of them use pairs.
fn go_by_twos(moduli: Moduli<'_>) -> bool {
    cost::in_pairs(bits(moduli), moduli.len()) == moduli.len()
}

/// The width of equally wide moduli in bits; 0 without any.
fn bits(moduli: Moduli<'_>) -> u32 {
    moduli.first().map_or(0, |modulus| modulus.bits())
}
