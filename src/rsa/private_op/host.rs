//! The private operation with everything but the exponentiations on the host.
//!
//! Blind, reduce modulo p and q, exponentiate, recombine, unblind: every stage runs over a whole
//! group of lanes before the next begins, so that the backend sees large batches.

use alloc::vec::Vec;

use crypto_bigint::BoxedUint;

use super::blinding::Blinding;
use super::crt::{combine, split};
use super::group::{Group, PrimeClass, Values, crt, in_groups, modulus, private_exponent, zeros};
use super::op::{Candidates, PrivateOp};
use crate::rsa::key::Crt;
use crate::secret::Secret;
use crate::{BatchModExp, Error, ModExp};

/// See [`RsaPrivateOp::private_op`](super::RsaPrivateOp::private_op).
pub(super) fn private_op<B>(backend: &B, batch: &[PrivateOp<'_>]) -> Candidates
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
{
    with_faults(backend, batch, &mut NoFaults)
}

/// What lies between two stages of the private operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// The copy of the representatives that is computed on.
    Input,
    /// The representatives times the blinding factors.
    Blinded,
    /// The representatives modulo p, then modulo q.
    Residues,
    /// The half results modulo p, then modulo q.
    Halves,
    /// The results modulo n.
    Combined,
    /// The results without the blinding factors.
    Unblinded,
}

/// A look at the intermediate results between two stages, for tests that flip bits in them.
trait FaultInjection {
    /// Called with the values of all lanes, once for each stage of each group of keys.
    fn inject_fault(&mut self, stage: Stage, intermediate: &mut [BoxedUint]);
}

/// The real world: no fault is injected.
struct NoFaults;

impl FaultInjection for NoFaults {
    fn inject_fault(&mut self, _: Stage, _: &mut [BoxedUint]) {}
}

fn with_faults<B, F>(backend: &B, batch: &[PrivateOp<'_>], faults: &mut F) -> Candidates
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: FaultInjection,
{
    in_groups(batch, |group| {
        let mut candidates = group_op(backend, group, faults)?;
        Ok(candidates
            .drain(..)
            .map(|value| Ok(Secret::new(value)))
            .collect())
    })
}

/// The private operation for one group.
fn group_op<B, F>(backend: &B, group: &Group<'_>, faults: &mut F) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: FaultInjection,
{
    let copies = group.ops.iter().map(|op| op.representative.clone());
    let mut values: Values = Secret::new(copies.collect());
    faults.inject_fault(Stage::Input, &mut values);

    let blinding = if group.is_blinded {
        let powers = group.public_power(backend, group.blinds())?;
        Some(Blinding::new(&group.ops, powers)?)
    } else {
        None
    };
    if let Some(blinding) = &blinding {
        blinding.blind(&group.ops, &mut values);
    }
    faults.inject_fault(Stage::Blinded, &mut values);

    let mut values = match group.class.prime {
        Some(prime) => crt_op(backend, group, prime, &values, faults)?,
        None => plain_op(backend, group, &values)?,
    };
    faults.inject_fault(Stage::Combined, &mut values);

    if let Some(blinding) = &blinding {
        blinding.unblind(&group.ops, &mut values);
    }
    faults.inject_fault(Stage::Unblinded, &mut values);
    Ok(values)
}

/// `values[i] ^ d mod n` by the Chinese remainder theorem (RFC 8017, section 5.2.1, step 2.b).
fn crt_op<B, F>(
    backend: &B,
    group: &Group<'_>,
    prime: PrimeClass,
    values: &[BoxedUint],
    faults: &mut F,
) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: FaultInjection,
{
    let keys: Vec<&Crt> = group.ops.iter().map(crt).collect();
    let mut residues = split(&keys, values);
    faults.inject_fault(Stage::Residues, &mut residues);

    let exponents = keys
        .iter()
        .map(|key| &key.dp)
        .chain(keys.iter().map(|key| &key.dq));
    let moduli = keys
        .iter()
        .map(|key| &key.p)
        .chain(keys.iter().map(|key| &key.q));
    let halves: Vec<ModExp<'_, BoxedUint>> = residues
        .iter()
        .zip(exponents.zip(moduli))
        .map(|(base, (exponent, params))| ModExp {
            base,
            exponent,
            params,
        })
        .collect();
    let mut powers = zeros(halves.len(), prime.width);
    backend.batch_mod_exp(&halves, prime.bits, &mut powers)?;
    faults.inject_fault(Stage::Halves, &mut powers);

    let (powers_p, powers_q) = powers.split_at(keys.len());
    Ok(combine(&keys, powers_p, powers_q, group.class.n_width))
}

/// `values[i] ^ d mod n`, for keys without CRT values.
fn plain_op<B>(backend: &B, group: &Group<'_>, values: &[BoxedUint]) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
{
    let batch: Vec<ModExp<'_, BoxedUint>> = group
        .ops
        .iter()
        .zip(values)
        .map(|(op, base)| ModExp {
            base,
            exponent: private_exponent(op),
            params: modulus(op),
        })
        .collect();
    let width = group.class.n_width;
    let mut out = zeros(batch.len(), width);
    backend.batch_mod_exp(&batch, width, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests;
