//! The private operation with everything but the exponentiations on the calling thread.
//!
//! Make bases and factors, reduce bases modulo p and q, exponentiate, recombine, multiply by the factors: every stage runs
//! over all lanes of a chunk before the next begins, so that the backend sees many at a time.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb};

use super::batch::Batch;
use super::crt::{combine, split};
use super::group::{PrimeClass, crt, d_less_1, zeros};
use super::opened::Opened;
use crate::engine::Engine;
use crate::rsa::Error;
use crate::rsa::key::Crt;
use crate::secret::Secret;
use crate::{BatchModExp, ModExp};

/// Numbers in a flat buffer, wiped on drop.
type Flat = Secret<Vec<Limb>>;

/// See [`Chunk::candidates`](super::Chunk::candidates).
pub(super) fn candidates<B>(
    backend: &B,
    engine: &dyn Engine,
    batch: &Batch<'_>,
    opened: &Opened,
) -> Result<Flat, Error>
where
    B: BatchModExp<BoxedUint, Error = crate::Error> + ?Sized,
{
    with_faults(backend, engine, batch, opened, &mut NoFaults)
}

/// What lies between two stages of the private operation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Stage {
    /// What is exponentiated.
    Bases,
    /// What the powers are multiplied by.
    Factors,
    /// The bases modulo p, then modulo q.
    Residues,
    /// The half powers modulo p, then modulo q.
    Halves,
    /// The powers modulo n.
    Combined,
    /// The powers times the factors.
    Results,
}

/// The numbers of all lanes at one stage.
#[cfg_attr(not(test), allow(dead_code))]
enum Intermediate<'a> {
    /// So many limbs each.
    Flat(&'a mut [Limb], usize),
    Boxed(&'a mut [BoxedUint]),
}

/// A look at the intermediate results between two stages, for tests that flip bits in them.
trait FaultInjection {
    /// Called with the numbers of all lanes, once for each stage.
    fn inject_fault(&mut self, stage: Stage, intermediate: Intermediate<'_>);
}

/// The real world: no fault is injected.
struct NoFaults;

impl FaultInjection for NoFaults {
    fn inject_fault(&mut self, _: Stage, _: Intermediate<'_>) {}
}

fn with_faults<B, F>(
    backend: &B,
    engine: &dyn Engine,
    batch: &Batch<'_>,
    opened: &Opened,
    faults: &mut F,
) -> Result<Flat, Error>
where
    B: BatchModExp<BoxedUint, Error = crate::Error> + ?Sized,
    F: FaultInjection,
{
    let limbs = batch.class.limbs();
    let look = |stage, values: &mut Flat, faults: &mut F| {
        faults.inject_fault(stage, Intermediate::Flat(values, limbs));
    };
    let mut operands = opened.operands(engine, batch);
    look(Stage::Bases, &mut operands.bases, faults);
    look(Stage::Factors, &mut operands.factors, faults);

    let mut powers = match batch.class.prime {
        Some(prime) => crt_op(
            backend,
            engine,
            batch,
            opened,
            prime,
            &operands.bases,
            faults,
        )?,
        None => plain_op(backend, batch, opened, &operands.bases)?,
    };
    look(Stage::Combined, &mut powers, faults);

    let mut results = operands.results(engine, opened.keys(batch), &powers);
    look(Stage::Results, &mut results, faults);
    Ok(results)
}

/// `values[i] ^ (d - 1) mod n` by the Chinese remainder theorem (RFC 8017, section 5.2.1, step 2.b).
fn crt_op<B, F>(
    backend: &B,
    engine: &dyn Engine,
    batch: &Batch<'_>,
    opened: &Opened,
    prime: PrimeClass,
    values: &[Limb],
    faults: &mut F,
) -> Result<Flat, Error>
where
    B: BatchModExp<BoxedUint, Error = crate::Error> + ?Sized,
    F: FaultInjection,
{
    let keys: Vec<&Crt> = opened.keys(batch).iter().map(crt).collect();
    if keys.is_empty() {
        return Ok(Secret::new(Vec::new()));
    }
    let limbs = batch.class.limbs();
    let mut residues = split(engine, &keys, values);
    faults.inject_fault(Stage::Residues, Intermediate::Boxed(&mut residues));

    let exponents = keys
        .iter()
        .map(|key| &key.dp_less_1)
        .chain(keys.iter().map(|key| &key.dq_less_1));
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
    faults.inject_fault(Stage::Halves, Intermediate::Boxed(&mut powers));

    let (powers_p, powers_q) = powers.split_at(keys.len());
    Ok(combine(engine, &keys, powers_p, powers_q, limbs))
}

/// `values[i] ^ (d - 1) mod n`, for keys without CRT values.
fn plain_op<B>(
    backend: &B,
    batch: &Batch<'_>,
    opened: &Opened,
    values: &[Limb],
) -> Result<Flat, Error>
where
    B: BatchModExp<BoxedUint, Error = crate::Error> + ?Sized,
{
    let (width, limbs) = (batch.class.n_width, batch.class.limbs());
    let keys = opened.keys(batch);
    let mut bases = zeros(keys.len(), width);
    for (base, value) in bases.iter_mut().zip(values.chunks_exact(limbs)) {
        base.as_mut_limbs().copy_from_slice(value);
    }
    let instances: Vec<ModExp<'_, BoxedUint>> = keys
        .iter()
        .zip(bases.iter())
        .map(|(key, base)| ModExp {
            base,
            exponent: d_less_1(key),
            params: key.parts().n.as_ref(),
        })
        .collect();
    let mut powers = zeros(instances.len(), width);
    backend.batch_mod_exp(&instances, width, &mut powers)?;
    let mut flat = Secret::new(Vec::with_capacity(values.len()));
    powers
        .iter()
        .for_each(|power| flat.extend_from_slice(power.as_limbs()));
    Ok(flat)
}

#[cfg(all(test, feature = "std"))]
pub(super) mod campaign;
#[cfg(test)]
mod tests;
