//! The RSA public operation on many items: powers with the public exponents of their keys.
//!
//! The engine is constant-time in the bases; each source states how it treats bases and powers.

use core::ops::Range;

use batch_modexp_core::engine::{Engine, Exponent};

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
    if let Some(key) = keys.first() {
        let exponent = Exponent::new(key.exponent());
        let powers = engine.public_power(&moduli(keys), exponent, &encoded.ems, None);
        encoded.write_public(batch, &powers, slots);
    }
    Ok(())
}
