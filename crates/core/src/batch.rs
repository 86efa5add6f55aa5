//! Batches of a caller's numbers: the checks of every backend, and powers by an engine.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Limb, Unsigned};

use crate::engine::{Engine, SecretPowers};
use crate::monty::ModulusRef;
use crate::secret::Secret;
pub use crate::width::check_lengths;
use crate::width::{MAX_BITS, check_exponent, check_widths, clear, place, width};
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

/// [`BatchModExp::batch_mod_exp`](crate::BatchModExp::batch_mod_exp) by an engine, which is not
/// generic over a caller's numbers: Rust compiles generic code again in every crate that calls it, and
/// the kernels of an engine take minutes.
///
/// # Errors
///
/// Those of [`check_batch`].
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub fn batch_mod_exp<U: Unsigned>(
    engine: &dyn Engine,
    batch: &[ModExp<'_, U>],
    exponent_bits: u32,
    out: &mut [U],
) -> Result<(), Error> {
    /// A multiple of the lanes of every engine. More numbers would not fit into a cache.
    const MOST: usize = 512;
    check_batch(batch, exponent_bits, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let bits = |instance: &ModExp<'_, U>| width(instance.params.modulus().as_ref());
    let runs = batch.chunk_by(|a, b| bits(a) == bits(b));
    let mut places = out.iter_mut();
    for run in runs.flat_map(|run| run.chunks(MOST)) {
        let moduli: Vec<_> = run.iter().map(|x| ModulusRef::of(x.params)).collect();
        let exponents: Vec<_> = run.iter().map(|x| x.exponent.as_limbs()).collect();
        let size = moduli[0].limbs.len();
        let zeros = || Secret::new(vec![Limb::ZERO; moduli.len() * size]);
        let (mut bases, mut powers) = (zeros(), zeros());
        for (base, instance) in bases.chunks_exact_mut(size).zip(run) {
            let limbs = instance.base.as_limbs();
            base[..limbs.len()].copy_from_slice(limbs);
        }
        engine.pow(SecretPowers {
            moduli: &moduli,
            exponents: &exponents,
            exponent_bits,
            bases: &bases,
            out: &mut powers,
        });
        let powers = powers.chunks_exact(size).zip(run);
        for ((power, instance), out) in powers.zip(&mut places) {
            place(out, instance.params.modulus().as_ref()).copy_from_slice(power);
        }
    }
    Ok(())
}
