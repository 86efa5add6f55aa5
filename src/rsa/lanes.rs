//! A batch in which some lanes may have failed before they start.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, RandomMod};
use rand_core::TryCryptoRng;

use super::key::KeyHandle;
use super::private_op::{Checked, PrivateOp, RsaPrivateOp};
use crate::Error;
use crate::secret::Secret;

/// A key and the block to be raised to its private exponent.
pub(super) struct Lane<'a> {
    pub(super) key: &'a KeyHandle,
    pub(super) block: Secret<BoxedUint>,
}

/// Runs the lanes that have not failed, blinded if there is a random number generator, and returns the
/// results at their places.
pub(super) fn run<B, R>(
    backend: &B,
    lanes: Vec<Result<Lane<'_>, Error>>,
    rng: Option<&mut R>,
) -> Checked<BoxedUint>
where
    B: RsaPrivateOp + ?Sized,
    R: TryCryptoRng + ?Sized,
{
    let blinds = match rng {
        Some(rng) => lanes
            .iter()
            .flatten()
            .map(|lane| random(lane.key, rng).map(Some))
            .collect(),
        None => Ok(lanes.iter().flatten().map(|_| None).collect()),
    };
    let blinds: Vec<Option<Secret<BoxedUint>>> = blinds?;
    let ops: Vec<PrivateOp<'_>> = lanes
        .iter()
        .flatten()
        .zip(&blinds)
        .map(|(lane, blind)| PrivateOp {
            key: lane.key,
            block: &lane.block,
            blind: blind.as_deref(),
        })
        .collect();

    let mut results = backend.private_op(&ops)?.into_iter();
    Ok(lanes
        .iter()
        .map(|lane| match lane {
            Ok(_) => results.next().unwrap_or(Err(Error::Fault)),
            Err(error) => Err(error.clone()),
        })
        .collect())
}

/// A random number below n. Rejection sampling shows how many candidates were rejected, which says
/// nothing about the one that was not.
fn random<R: TryCryptoRng + ?Sized>(
    key: &KeyHandle,
    rng: &mut R,
) -> Result<Secret<BoxedUint>, Error> {
    BoxedUint::try_random_mod_vartime(rng, key.parts().n.modulus().as_nz_ref())
        .map(Secret::new)
        .map_err(|_| Error::Rng)
}
