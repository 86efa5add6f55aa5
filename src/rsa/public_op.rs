//! The RSA public operation on many items: powers with the public exponents of their keys.
//!
//! The engine is constant-time in the bases; each source states how it treats bases and powers.

use alloc::vec;
use core::ops::Range;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::requests::{Exponent, Product};
use batch_modexp_core::secret::Secret;
use crypto_bigint::Limb;

use super::error::Error;
use super::key::PublicKey;
use super::output::Slots;
use super::private_op::class::moduli;
use super::private_op::{Batch, Encoded};

/// Computes a range of items of `batch` with `engine` on the calling thread.
///
/// # Errors
///
/// [`Error::Rng`]. An item that cannot be encoded or decoded has its error in its slot.
pub(super) fn run(
    engine: &dyn Engine,
    batch: &Batch<'_, PublicKey>,
    range: Range<usize>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let encoded = Encoded::new(batch, range)?;
    let keys = encoded.keys(batch);
    let mut powers = Secret::new(vec![Limb::ZERO; encoded.ems.len()]);
    if let Some(key) = keys.first() {
        engine.mul_public_power(Product {
            moduli: &moduli(keys),
            exponent: Exponent::new(key.exponent()),
            bases: &encoded.ems,
            factors: None,
            out: &mut powers,
            times_base: None,
        });
    }
    encoded.write_public(batch, &powers, slots);
    Ok(())
}
