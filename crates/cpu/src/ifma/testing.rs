//! The backend on units other than those that this processor would select.

use batch_modexp_core::checks::Form;
use batch_modexp_core::engine::{Engine, batch_mod_exp};
use batch_modexp_core::powers::{HasPowerEngine, PowerEngine};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::Unsigned;

use super::Units;
use super::avx_ifma;
use super::madd52::{Limb4, Limb8, Madd52};
use super::pair::Across;
use super::portable::{self, Portable};
use crate::adx;
use crate::adx::Words;
use crate::lanes::mul;

/// [`Ifma`](super::Ifma) on other units.
#[derive(Clone, Copy)]
pub(crate) struct OnUnits<E, F>(Units<E, F>);

/// The kernels in plain Rust.
pub(crate) type OnPortable = OnUnits<Portable<Limb8>, Portable<Limb4>>;

/// The kernels of four lanes in the encoding of AVX-512.
pub(crate) type OnEvex = OnUnits<Portable<Limb8>, avx_ifma::Token<true>>;

/// Eight lanes without AVX-512.
pub(crate) fn eight_on_portable_unit() -> OnPortable {
    OnUnits(Units::eight(portable::EIGHT))
}

/// Eight lanes with fewer multiply-adds, as on a Zen 4.
pub(crate) fn eight_saving_on_portable_unit() -> OnPortable {
    OnUnits(Units::eight(portable::EIGHT_SAVING))
}

/// Four lanes without AVX-IFMA.
pub(crate) fn four_on_portable_unit() -> OnPortable {
    OnUnits(Units::four(portable::FOUR, None))
}

/// Four lanes in the encoding of AVX-512, if this processor has it.
pub(crate) fn four_by_evex() -> Option<OnEvex> {
    let token = avx_ifma::Token::<true>::detect();
    let words = adx::Token::detect().map(Words);
    token.map(|token| OnUnits(Units::four(token, words)))
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync, U: Unsigned> BatchModExp<U>
    for OnUnits<E, F>
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self.engine(), batch, exponent_bits, out)
    }
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync, U: Unsigned> BatchModMul<U>
    for OnUnits<E, F>
{
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| {
            self.0.lanes().multiply(Form::Ordinary, run);
        })
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        mul::batch_mod_mul(batch, out, |run| {
            self.0.lanes().multiply(Form::Montgomery, run);
        })
    }
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> OnUnits<E, F> {
    pub(crate) fn engine(&self) -> &dyn Engine {
        &self.0
    }
}

impl<E: Across + Sync, F: Madd52<Limb = Limb4> + Sync> HasPowerEngine for OnUnits<E, F> {
    fn power_engine(&self) -> &dyn PowerEngine {
        self.0.lanes()
    }
}
