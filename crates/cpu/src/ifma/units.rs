//! The units of a batch: eight lanes or four.

use alloc::vec::Vec;

use batch_modexp_core::checks::Form;
use batch_modexp_core::engine::{Comparison, Moduli, Product};
use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::powers::{FixedPowers, MultiPowers, PowerEngine, PublicPowers};
use batch_modexp_core::width::width;
use crypto_bigint::{Choice, Limb};

use super::cost;
use super::lanes52::Lanes52;
use super::madd52::{Limb as _, Limb4, Limb8, Madd52};
use super::pair::{Across, Pairs};
use crate::adx;
use crate::adx::Words;
use crate::lanes;
use crate::lanes::Run;
use crate::lanes::powers_agree::powers_agree;
use crate::lanes::products;
use crate::lanes::reduce::reduce;
use crate::lanes::{fixed_base, multi_exp, public_exp};

/// The lanes of a processor: eight with the instructions of `E`, or four with those of `F`. Four
/// lanes come with words for a single instance.
#[derive(Clone, Copy, Debug)]
pub(super) enum Units<E, F> {
    Eight(E),
    Four(F, Option<Words<adx::Token>>),
}

impl<E: Across, F: Madd52<Limb = Limb4>> Units<E, F> {
    /// The number of instances that are computed at the same time.
    pub(super) fn lanes(self) -> usize {
        match self {
            Self::Eight(_) => Limb8::LANES,
            Self::Four(..) => Limb4::LANES,
        }
    }

    /// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
    pub(super) fn relative_time(self, bits: u32, count: usize) -> u64 {
        match self {
            Self::Eight(_) => cost::relative_time(bits, count),
            Self::Four(_, words) => cost::four::relative_time(bits, count, words.is_some()),
        }
    }

    /// Computes the powers of a run. Full groups use the lanes; the rest uses pairs or words where
    /// that takes less time.
    pub(super) fn pow(self, exponent_bits: u32, run: &mut dyn Run<'_>) {
        let count = run.count();
        match self {
            Self::Eight(unit) => {
                let in_lanes = count - cost::in_pairs(run.bits(), count);
                lanes::pow(Lanes52(unit), exponent_bits, run, 0..in_lanes);
                lanes::pow(Pairs(unit), exponent_bits, run, in_lanes..count);
            }
            Self::Four(unit, words) => {
                let in_words = words.zip(cost::four::one_in_words(run.bits(), count));
                let in_lanes = count - usize::from(in_words.is_some());
                lanes::pow(Lanes52(unit), exponent_bits, run, 0..in_lanes);
                if let Some((words, _)) = in_words {
                    lanes::pow(words, exponent_bits, run, in_lanes..count);
                }
            }
        }
    }

    /// Computes the products of a run.
    pub(super) fn multiply(self, form: Form, run: &mut dyn Run<'_>) {
        match self {
            Self::Eight(unit) => lanes::mul::multiply(Lanes52(unit), form, run),
            Self::Four(unit, _) => lanes::mul::multiply(Lanes52(unit), form, run),
        }
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
        match *self {
            Self::Eight(unit) => fixed_base::fill(Lanes52(unit), table, base, first),
            Self::Four(unit, _) => fixed_base::fill(Lanes52(unit), table, base, first),
        }
    }

    #[inline(never)]
    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        match *self {
            Self::Eight(unit) => fixed_base::powers(Lanes52(unit), powers),
            Self::Four(unit, _) => fixed_base::powers(Lanes52(unit), powers),
        }
    }

    #[inline(never)]
    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        match *self {
            Self::Eight(unit) => multi_exp::powers(Lanes52(unit), powers),
            Self::Four(unit, _) => multi_exp::powers(Lanes52(unit), powers),
        }
    }

    #[inline(never)]
    fn public_powers(&self, powers: PublicPowers<'_, '_>) {
        match *self {
            Self::Eight(unit) => public_exp::powers(Lanes52(unit), powers),
            Self::Four(unit, _) => public_exp::powers(Lanes52(unit), powers),
        }
    }
}

/// See [`Engine`](batch_modexp_core::engine::Engine). A few numbers use pairs.
impl<E: Across, F: Madd52<Limb = Limb4>> Units<E, F> {
    pub(super) fn mul_public_power(self, product: Product<'_>) {
        match self {
            Self::Eight(unit) if go_by_twos(product.moduli) => {
                products::mul_public_power(Pairs(unit), product);
            }
            Self::Eight(unit) => products::mul_public_power(Lanes52(unit), product),
            Self::Four(unit, _) => products::mul_public_power(Lanes52(unit), product),
        }
    }

    pub(super) fn reduce(self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        match self {
            Self::Eight(unit) if go_by_twos(moduli) => reduce(Pairs(unit), moduli, numbers, out),
            Self::Eight(unit) => reduce(Lanes52(unit), moduli, numbers, out),
            Self::Four(unit, _) => reduce(Lanes52(unit), moduli, numbers, out),
        }
    }

    pub(super) fn powers_agree(self, comparison: &Comparison<'_>) -> Vec<Choice> {
        match self {
            Self::Eight(unit) if go_by_twos(comparison.factors[0]) => {
                powers_agree(Pairs(unit), comparison)
            }
            Self::Eight(unit) => powers_agree(Lanes52(unit), comparison),
            Self::Four(unit, _) => powers_agree(Lanes52(unit), comparison),
        }
    }
}

/// Whether there are so few equally wide moduli that all of them use pairs.
fn go_by_twos(moduli: Moduli<'_>) -> bool {
    let bits = moduli
        .first()
        .map_or(0, |modulus| width(modulus.modulus().as_ref()));
    cost::in_pairs(bits, moduli.len()) == moduli.len()
}
