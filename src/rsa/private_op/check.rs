//! The check of every result, above all backends: the only way from a representative to a signature.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, CtEq, CtLt};
use rand_core::TryCryptoRng;

use super::RsaPrivateOp;
use super::blinding::draw;
use super::group::{in_groups, modulus, number_errors};
use super::op::{Checked, PrivateOp};
use super::threads::HostThreads;
use crate::rsa::KeyHandle;
use crate::secret::{Secret, reveal};
use crate::{BatchModExp, Error};

/// Runs the private operations of those `representatives` that are none the worse for being made, blinded if
/// there is a random number generator, and returns the results that pass their check. All three are in the
/// order of the caller's lanes.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(in crate::rsa) fn private_op<'k, B, R>(
    backend: &B,
    keys: impl Iterator<Item = &'k KeyHandle> + Clone,
    representatives: &[Result<Secret<BoxedUint>, Error>],
    rng: Option<&mut R>,
) -> Checked<BoxedUint>
where
    B: RsaPrivateOp + ?Sized,
    R: TryCryptoRng + ?Sized,
{
    let lanes = keys.zip(representatives);
    let sound = lanes.filter_map(|(key, lane)| Some((key, lane.as_ref().ok()?)));
    let blinds: Vec<Option<Secret<BoxedUint>>> = match rng {
        Some(rng) => {
            let blinds = sound.clone().map(|(key, _)| draw(key, rng).map(Some));
            blinds.collect::<Result<_, _>>()?
        }
        None => sound.clone().map(|_| None).collect(),
    };
    let ops: Vec<PrivateOp<'_>> = sound
        .zip(&blinds)
        .map(|((key, representative), blind)| PrivateOp {
            key,
            representative,
            blind: blind.as_deref(),
        })
        .collect();

    let mut checked =
        checked(backend.check_threads(), &ops, backend.private_op(&ops)?)?.into_iter();
    let mut results: Vec<_> = representatives
        .iter()
        .map(|lane| match lane {
            Ok(_) => checked.next().unwrap_or(Err(Error::Fault)),
            Err(error) => Err(error.clone()),
        })
        .collect();
    number_errors(&mut results);
    Ok(results)
}

/// Replaces every candidate by [`Error::Fault`], and wipes it, unless it is a number below n whose power of e
/// is the representative of its lane: the caller's, not a copy that a backend may have touched. The power is
/// computed by an engine of ours, not by the backend.
pub(super) fn checked(
    threads: HostThreads<'_>,
    ops: &[PrivateOp<'_>],
    mut candidates: Vec<Result<Secret<BoxedUint>, Error>>,
) -> Checked<BoxedUint> {
    if candidates.len() != ops.len() {
        // Nobody knows which candidate belongs to which lane.
        return Ok(ops.iter().map(|_| Err(Error::Fault)).collect());
    }
    let engine = engine();
    let granularity = BatchModExp::<BoxedUint>::granularity(&engine);
    threads.for_each_share(ops, &mut candidates, granularity, |ops, candidates| {
        check_share(&engine, ops, candidates)
    })?;
    Ok(candidates)
}

/// The same for one share, with large batches for the engine.
fn check_share<B>(
    engine: &B,
    ops: &[PrivateOp<'_>],
    candidates: &mut [Result<Secret<BoxedUint>, Error>],
) -> Result<(), Error>
where
    B: BatchModExp<BoxedUint, Error = Error>,
{
    for (op, candidate) in ops.iter().zip(&mut *candidates) {
        let width = op.representative.bits_precision();
        if candidate
            .as_ref()
            .is_ok_and(|value| value.bits_precision() != width)
        {
            *candidate = Err(Error::Fault);
        }
    }
    let mut indices = Vec::with_capacity(ops.len());
    let mut sound = Vec::with_capacity(ops.len());
    let mut values = Vec::with_capacity(ops.len());
    for (index, (op, candidate)) in ops.iter().zip(&*candidates).enumerate() {
        if let Ok(value) = candidate {
            indices.push(index);
            sound.push(*op);
            values.push(&**value);
        }
    }
    let verdicts = in_groups(&sound, |group| {
        let values = || group.indices.iter().map(|&index| values[index]);
        let powers = group.public_power(engine, values())?;
        let lanes = group.ops.iter().zip(values()).zip(powers.iter());
        let verdict = |((op, value), power): ((&PrivateOp<'_>, &BoxedUint), &BoxedUint)| {
            let passed =
                power.ct_eq(op.representative) & value.ct_lt(modulus(op).modulus().as_ref());
            if reveal(passed) {
                Ok(())
            } else {
                Err(Error::Fault)
            }
        };
        Ok(lanes.map(verdict).collect())
    })?;
    for (index, verdict) in indices.into_iter().zip(verdicts) {
        if let Err(error) = verdict {
            candidates[index] = Err(error);
        }
    }
    Ok(())
}

/// The fastest engine of this processor for one thread.
#[cfg(feature = "std")]
fn engine() -> crate::backend::cpu::Engine {
    crate::backend::cpu::Engine::fastest()
}

#[cfg(not(feature = "std"))]
fn engine() -> crate::backend::Serial {
    crate::backend::Serial
}
