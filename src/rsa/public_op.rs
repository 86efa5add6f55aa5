//! The RSA public operation on many items: powers with the public exponents of their keys.
//!
//! The engine is constant-time in the bases; each source states how it treats bases and powers.

use batch_modexp_core::engine::{Engine, Exponent};

use super::batch::Batch;
use super::error::Error;
use super::key::PublicKey;
use super::key::class::moduli;
use super::output::Slots;
use super::private_op::Encoded;

/// Computes the items of `batch` with `engine` on the calling thread.
///
/// # Errors
///
/// [`Error::Rng`]. An item that cannot be encoded or decoded has its error in its slot.
pub(super) fn run(
    engine: &dyn Engine,
    batch: Batch<'_, PublicKey>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let encoded = Encoded::new(batch)?;
    if let Some(key) = batch.keys.first() {
        let exponent = Exponent::new(key.exponent());
        let powers = engine.public_powers(&moduli(batch.keys), exponent, &encoded.ems);
        encoded.write_public(&powers, slots);
    }
    Ok(())
}
