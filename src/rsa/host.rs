//! The private operation with everything but the exponentiations on the host.
//!
//! Blind, reduce modulo p and q, exponentiate, recombine, unblind, check: every stage runs over the
//! whole batch before the next begins, so that the backend sees large batches.

use alloc::vec::Vec;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, CtEq, CtLt};

use super::blinding::Blinding;
use super::crt;
use super::key::{Crt, KeyParts, Private};
use super::private_op::{Checked, PrivateOp};
use crate::secret::Secret;
use crate::{BatchModExp, Error, ModExp};

/// Values of one stage, wiped on drop.
pub(super) type Values = Secret<Vec<BoxedUint>>;

/// What lies between two stages of the private operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// The copy of the blocks that is computed on.
    Input,
    /// The blocks times the blinding factors.
    Blinded,
    /// The blocks modulo p, then modulo q.
    Residues,
    /// The half results modulo p, then modulo q.
    Halves,
    /// The results modulo n.
    Combined,
    /// The results without the blinding factors.
    Unblinded,
}

/// A look at the values between two stages, for tests that flip bits in them.
pub(super) trait Faults {
    /// Called with the values of all lanes, once for each stage of each group of keys.
    fn strike(&mut self, stage: Stage, values: &mut [BoxedUint]);
}

/// The real world: nothing strikes.
pub(super) struct NoFaults;

impl Faults for NoFaults {
    fn strike(&mut self, _: Stage, _: &mut [BoxedUint]) {}
}

/// See [`RsaPrivateOp::private_op`](super::RsaPrivateOp::private_op).
pub(super) fn private_op<B, F>(
    backend: &B,
    batch: &[PrivateOp<'_>],
    faults: &mut F,
) -> Checked<BoxedUint>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: Faults,
{
    check_widths(batch);

    // Keys of one shape together, because one call has one number of exponent bits, and lanes of one
    // key together, because backends prepare a modulus once for each run of equal references.
    let mut order: Vec<usize> = (0..batch.len()).collect();
    order.sort_by_key(|&i| (Shape::of(batch[i].key.parts()), key_address(&batch[i])));

    let mut results: Vec<_> = batch.iter().map(|_| Err(Error::Fault)).collect();
    for indices in
        order.chunk_by(|&a, &b| Shape::of(batch[a].key.parts()) == Shape::of(batch[b].key.parts()))
    {
        let group: Vec<PrivateOp<'_>> = indices.iter().map(|&i| batch[i]).collect();
        for (&i, result) in indices.iter().zip(group_op(backend, &group, faults)?) {
            results[i] = result;
        }
    }
    Ok(results)
}

/// Panics unless blocks and blinds are as wide as their moduli.
pub(super) fn check_widths(batch: &[PrivateOp<'_>]) {
    for op in batch {
        let width = op.key.parts().n.bits_precision();
        assert_eq!(
            op.block.bits_precision(),
            width,
            "a block must be as wide as its modulus"
        );
        if let Some(blind) = op.blind {
            assert_eq!(
                blind.bits_precision(),
                width,
                "a blind must be as wide as its modulus"
            );
        }
    }
}

/// What all keys of a group have in common; public.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Shape {
    n_width: u32,
    e_bits: u32,
    /// The width of the primes and their length in bits; `None` without CRT.
    prime: Option<(u32, u32)>,
}

impl Shape {
    fn of(key: &KeyParts) -> Self {
        let prime = match &key.private {
            Private::Crt(crt) => Some((crt.p.modulus().bits_precision(), crt.prime_bits)),
            Private::Plain { .. } => None,
        };
        Self {
            n_width: key.n.bits_precision(),
            e_bits: key.e_bits,
            prime,
        }
    }
}

/// Tells keys apart.
pub(super) fn key_address(op: &PrivateOp<'_>) -> *const KeyParts {
    op.key.parts()
}

/// The private operation for keys of one shape.
fn group_op<B, F>(backend: &B, group: &[PrivateOp<'_>], faults: &mut F) -> Checked<BoxedUint>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: Faults,
{
    let mut values: Values = Secret::new(group.iter().map(|op| op.block.clone()).collect());
    faults.strike(Stage::Input, &mut values);

    let blinding = Blinding::new(backend, group)?;
    blinding.blind(group, &mut values);
    faults.strike(Stage::Blinded, &mut values);

    let mut values = match Shape::of(group[0].key.parts()).prime {
        Some((_, prime_bits)) => crt_op(backend, group, &values, prime_bits, faults)?,
        None => plain_op(backend, group, &values)?,
    };
    faults.strike(Stage::Combined, &mut values);

    blinding.unblind(group, &mut values);
    faults.strike(Stage::Unblinded, &mut values);

    checked(backend, group, values)
}

/// The values whose power of e is the block of their lane.
pub(super) fn checked<B>(
    backend: &B,
    group: &[PrivateOp<'_>],
    mut values: Values,
) -> Checked<BoxedUint>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
{
    let checks = public_op(backend, group, &values)?;
    Ok(group
        .iter()
        .zip(values.drain(..).map(Secret::new))
        .zip(checks.iter())
        .map(|((op, value), check)| {
            // Against the caller's block, not against the copy that was computed on.
            let passed = check.ct_eq(op.block) & value.ct_lt(params(op).modulus().as_ref());
            if passed.to_bool() {
                Ok(value)
            } else {
                Err(Error::Fault)
            }
        })
        .collect())
}

/// `values[i] ^ d mod n` by the Chinese remainder theorem (RFC 8017, section 5.2.1, step 2.b).
fn crt_op<B, F>(
    backend: &B,
    group: &[PrivateOp<'_>],
    values: &[BoxedUint],
    prime_bits: u32,
    faults: &mut F,
) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    F: Faults,
{
    let keys: Vec<&Crt> = group.iter().map(|op| crt_parts(op)).collect();
    let mut residues = crt::split(&keys, values);
    faults.strike(Stage::Residues, &mut residues);

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
    let mut powers = zeros(residues.iter().map(BoxedUint::bits_precision));
    backend.batch_mod_exp(&halves, prime_bits, &mut powers)?;
    faults.strike(Stage::Halves, &mut powers);

    let (powers_p, powers_q) = powers.split_at(keys.len());
    let n_width = values[0].bits_precision();
    Ok(crt::combine(&keys, powers_p, powers_q, n_width))
}

/// `values[i] ^ d mod n`, for keys without CRT values.
fn plain_op<B>(backend: &B, group: &[PrivateOp<'_>], values: &[BoxedUint]) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
{
    let batch: Vec<ModExp<'_, BoxedUint>> = group
        .iter()
        .zip(values)
        .map(|(op, base)| ModExp {
            base,
            exponent: private_exponent(op),
            params: params(op),
        })
        .collect();
    let width = values[0].bits_precision();
    let mut out = zeros(values.iter().map(BoxedUint::bits_precision));
    backend.batch_mod_exp(&batch, width, &mut out)?;
    Ok(out)
}

/// `values[i] ^ e mod n`.
pub(super) fn public_op<B>(
    backend: &B,
    group: &[PrivateOp<'_>],
    values: &[BoxedUint],
) -> Result<Values, Error>
where
    B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
{
    let batch: Vec<ModExp<'_, BoxedUint>> = group
        .iter()
        .zip(values)
        .map(|(op, base)| ModExp {
            base,
            exponent: &op.key.parts().e,
            params: params(op),
        })
        .collect();
    let mut out = zeros(values.iter().map(BoxedUint::bits_precision));
    backend.batch_mod_exp(&batch, group[0].key.parts().e_bits, &mut out)?;
    Ok(out)
}

/// Room for results of the given widths.
fn zeros(widths: impl Iterator<Item = u32>) -> Values {
    Secret::new(widths.map(BoxedUint::zero_with_precision).collect())
}

fn params<'a>(op: &PrivateOp<'a>) -> &'a MontyParams<BoxedUint> {
    op.key.parts().n.as_ref()
}

fn crt_parts<'a>(op: &PrivateOp<'a>) -> &'a Crt {
    match &op.key.parts().private {
        Private::Crt(crt) => crt,
        Private::Plain { .. } => unreachable!("a group has one shape"),
    }
}

fn private_exponent<'a>(op: &PrivateOp<'a>) -> &'a BoxedUint {
    match &op.key.parts().private {
        Private::Plain { d } => d,
        Private::Crt(_) => unreachable!("a group has one shape"),
    }
}

#[cfg(test)]
mod tests;
