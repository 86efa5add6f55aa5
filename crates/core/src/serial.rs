//! The portable reference backend: one instance after the other.

mod fixed_base;
mod mul;
mod numbers;
mod powers;

use crypto_bigint::Unsigned;

use crate::engine::batch_mod_exp;
use crate::{BatchModExp, Error, ModExp};

/// Computes a batch on the calling thread, one instance after the other, on crypto-bigint's limbs.
///
/// The method is constant-time fixed-window exponentiation (almost Montgomery multiplication,
/// windows of up to 4 bits).
///
/// Works on every target and without `std`. Serves moduli of up to 16,384 bits. Wider ones fail
/// with [`Error::ModulusWidth`]. It does not use crypto-bigint's `BoxedUint` arithmetic, which
/// leaves copies of secrets in freed heap memory. Each call overwrites the stack that it used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl<U: Unsigned> BatchModExp<U> for Serial {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self, batch, exponent_bits, out)
    }
}
