//! Checks of batches that every backend makes.

use crypto_bigint::Unsigned;

pub use crate::width::check_lengths;
use crate::width::{check_exponent, check_widths, width};
use crate::{Error, ModExp, ModMul};

/// Checks a batch of powers against the widest modulus, in bits, that a backend supports.
///
/// # Errors
///
/// [`Error::ModulusWidth`], [`Error::BaseWidth`] and [`Error::ExponentBits`].
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub fn check_batch<U: Unsigned>(
    batch: &[ModExp<'_, U>],
    exponent_bits: u32,
    out: &[U],
    max_bits: u32,
) -> Result<(), Error> {
    check_lengths(batch, out);
    check_instances(batch, exponent_bits, max_bits)
}

/// Checks a part of a batch of powers; see [`check_batch`].
///
/// # Errors
///
/// Those of [`check_batch`].
pub fn check_instances<U: Unsigned>(
    instances: &[ModExp<'_, U>],
    exponent_bits: u32,
    max_bits: u32,
) -> Result<(), Error> {
    for (index, instance) in instances.iter().enumerate() {
        let modulus = width(instance.params.modulus().as_ref());
        check_widths(index, modulus, width(instance.base), max_bits)?;
        check_exponent(index, width(instance.exponent), exponent_bits)?;
    }
    Ok(())
}

/// The representation of the factors and results of products.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// [`batch_mod_mul`](crate::BatchModMul::batch_mod_mul).
    Ordinary,
    /// [`batch_monty_mul`](crate::BatchModMul::batch_monty_mul).
    Montgomery,
}

/// Checks a batch of products against the widest modulus, in bits, that a backend supports.
///
/// # Errors
///
/// [`Error::ModulusWidth`] and [`Error::FactorWidth`].
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub fn check_products<U: Unsigned>(
    batch: &[ModMul<'_, U>],
    out: &[U],
    max_bits: u32,
) -> Result<(), Error> {
    check_lengths(batch, out);
    for (index, instance) in batch.iter().enumerate() {
        let modulus_bits = width(instance.params.modulus().as_ref());
        let bits = width(instance.a).max(width(instance.b));
        check_widths(index, modulus_bits, bits, max_bits).map_err(|error| match error {
            Error::BaseWidth {
                index,
                bits,
                modulus_bits,
            } => Error::FactorWidth {
                index,
                bits,
                modulus_bits,
            },
            error => error,
        })?;
    }
    Ok(())
}
