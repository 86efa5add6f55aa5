//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the block and the checked result; all others go by way of the host.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb};
use rayon::prelude::*;

use super::blinding::{Blinding, random_or_one};
use super::host::{self, NoFaults, Values, checked, key_address, public_op};
use super::key::{KeyParts, Private};
use super::private_op::{Checked, PrivateOp, RsaPrivateOp};
use crate::Error;
use crate::backend::Cuda;
use crate::backend::cuda::{Class, RsaGroup, RsaKey, RsaLane};
use crate::secret::Secret;

/// Without blinding the device does everything. With blinding the host multiplies by the blinding factors
/// before and divides by them after, on all threads, and the result without them is checked once more.
impl RsaPrivateOp for Cuda {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Checked<BoxedUint> {
        host::check_widths(batch);
        // Lanes of one key together, and then keys of one shape.
        let mut order: Vec<_> = (0..batch.len())
            .map(|i| (key_address(&batch[i]), batch[i].blind.is_some(), i))
            .collect();
        order.sort_unstable();
        let runs = order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let mut runs: Vec<_> = runs.map(|run| (Shape::of(&batch[run[0].2]), run)).collect();
        runs.sort_by_key(|run| run.0);

        let mut results: Vec<_> = batch.iter().map(|_| Err(Error::Fault)).collect();
        for runs in runs.chunk_by(|a, b| a.0 == b.0) {
            let lanes = || runs.iter().flat_map(|run| run.1).map(|lane| lane.2);
            let group: Vec<PrivateOp<'_>> = lanes().map(|i| batch[i]).collect();
            let shape = runs[0]
                .0
                .and_then(|shape| Some((shape, shape.class(self)?)));
            let done = match shape {
                None => host::private_op(self, &group, &mut NoFaults)?,
                Some((shape, class)) if shape.is_blinded => blinded(self, &group, shape, class)?,
                Some((shape, class)) => {
                    let blocks = group.iter().map(|op| op.block);
                    let results =
                        self.rsa_private_op(&device_group(&group, blocks, shape, class))?;
                    results
                        .into_iter()
                        .map(|lane| lane.ok_or(Error::Fault))
                        .collect()
                }
            };
            for (i, result) in lanes().zip(done) {
                results[i] = result;
            }
        }
        Ok(results)
    }
}

/// What all lanes of one launch have in common; public.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Shape {
    n_width: u32,
    prime_width: u32,
    prime_bits: u32,
    e: u64,
    is_blinded: bool,
}

impl Shape {
    /// `None` for keys without CRT values and for long public exponents.
    fn of(op: &PrivateOp<'_>) -> Option<Self> {
        let key: &KeyParts = op.key.parts();
        let Private::Crt(crt) = &key.private else {
            return None;
        };
        if key.e_bits > u64::BITS {
            return None;
        }
        Some(Self {
            n_width: key.n.bits_precision(),
            prime_width: crt.p().modulus().bits_precision(),
            prime_bits: crt.prime_bits,
            e: low_64_bits(&key.e),
            is_blinded: op.blind.is_some(),
        })
    }

    fn class(self, cuda: &Cuda) -> Option<Class> {
        cuda.rsa_class(self.n_width, self.prime_width)
    }
}

/// The value modulo `2^64`.
// A limb has 32 bits on some targets.
#[allow(clippy::unnecessary_cast)]
fn low_64_bits(value: &BoxedUint) -> u64 {
    let limbs = value.as_limbs().iter();
    let limbs = limbs.zip((0..u64::BITS).step_by(Limb::BITS as usize));
    limbs.fold(0, |bits, (limb, position)| {
        bits | (limb.0 as u64) << position
    })
}

/// The group as the backend takes it, with `blocks` in place of the lanes' own.
fn device_group<'a>(
    group: &[PrivateOp<'a>],
    blocks: impl Iterator<Item = &'a BoxedUint>,
    shape: Shape,
    class: Class,
) -> RsaGroup<'a> {
    let lane = |(op, block): (&PrivateOp<'a>, &'a BoxedUint)| {
        let parts = op.key.parts();
        let Private::Crt(crt) = &parts.private else {
            unreachable!("a shape has CRT values");
        };
        let key = RsaKey {
            p: crt.p(),
            dp: &crt.dp,
            q: crt.q(),
            dq: &crt.dq,
            qinv: &crt.qinv,
            n: parts.n.as_ref(),
            places: &parts.on_devices,
        };
        RsaLane { key, block }
    };
    RsaGroup {
        class,
        n_bits: shape.n_width,
        prime_bits: shape.prime_width,
        exponent_bits: shape.prime_bits,
        public_exponent: shape.e,
        lanes: group.iter().zip(blocks).map(lane).collect(),
    }
}

/// The private operation with blinding.
fn blinded(cuda: &Cuda, group: &[PrivateOp<'_>], shape: Shape, class: Class) -> Checked<BoxedUint> {
    let pool = cuda.pool()?;
    let share = group.len().div_ceil(4 * pool.current_num_threads()).max(1);
    let random = || group.par_iter().map(random_or_one).collect();
    let random: Values = Secret::new(pool.install(random));
    let powers = public_op(cuda, group, &random)?;

    // Each thread takes its share of the lanes: it inverts the random numbers and blinds the blocks.
    type Share = Result<(Blinding, Values), Error>;
    let prepared: Result<Vec<_>, Error> = pool.install(|| {
        let shares = group.par_chunks(share);
        let shares = shares
            .zip(random.par_chunks(share))
            .zip(powers.par_chunks(share));
        shares
            .map(|((group, random), powers)| -> Share {
                let (random, powers) = (copy(random), copy(powers));
                let blinding = Blinding::from_powers(group, random, powers)?;
                let mut blocks: Values =
                    Secret::new(group.iter().map(|op| op.block.clone()).collect());
                blinding.blind(group, &mut blocks);
                Ok((blinding, blocks))
            })
            .collect()
    });
    let prepared = prepared?;

    let blocks = prepared.iter().flat_map(|(_, blocks)| blocks.iter());
    let powers = cuda.rsa_private_op(&device_group(group, blocks, shape, class))?;
    // A lane that did not pass has a zero from here on, which does not pass the last check either.
    let zero = || Secret::new(BoxedUint::zero_with_precision(shape.n_width));
    let values = powers
        .into_par_iter()
        .map(|lane| lane.unwrap_or_else(zero).clone());
    let mut values: Values = Secret::new(pool.install(|| values.collect()));
    pool.install(|| {
        let shares = group.par_chunks(share).zip(values.par_chunks_mut(share));
        shares
            .zip(&prepared)
            .for_each(|((group, values), (blinding, _))| {
                blinding.unblind(group, values);
            });
    });
    checked(cuda, group, values)
}

fn copy(values: &[BoxedUint]) -> Values {
    Secret::new(values.to_vec())
}

#[cfg(test)]
mod tests;
