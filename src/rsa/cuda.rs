//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the block and the checked result; all others go by way of the host.

mod job;

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb};

use self::job::{CrtJob, DeviceLane, InjectFault, Verdict};
use super::blinding::{Blinding, random_or_one};
use super::host::{self, NoFaults, Values, checked, key_address, public_op};
use super::key::{KeyParts, Private};
use super::private_op::{Checked, PrivateOp, RsaPrivateOp};
use crate::Error;
use crate::backend::Cuda;
use crate::backend::cuda::family::crt::{CrtClass, CrtModulus};
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
            let shape = runs[0].0.map(|shape| (shape, shape.classes(self)));
            let done = match shape {
                Some((shape, classes)) if !classes.is_empty() => {
                    let device = Group {
                        cuda: self,
                        classes: &classes,
                        shape,
                        ops: &group,
                        inject_fault: &|_| (),
                    };
                    match shape.is_blinded {
                        true => device.blinded()?,
                        false => device.plain()?,
                    }
                }
                _ => host::private_op(self, &group, &mut NoFaults)?,
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
        if !(1..=u64::BITS).contains(&key.e_bits) {
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

    /// The kernels for keys of this shape, of all families; none if no device has them.
    fn classes(self, cuda: &Cuda) -> Vec<CrtClass> {
        cuda.crt_classes(self.n_width, self.prime_width)
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

/// Lanes of one shape, for which there are kernels.
struct Group<'a> {
    cuda: &'a Cuda,
    classes: &'a [CrtClass],
    shape: Shape,
    ops: &'a [PrivateOp<'a>],
    inject_fault: InjectFault<'a>,
}

impl Group<'_> {
    /// The private operation without blinding.
    fn plain(&self) -> Checked<BoxedUint> {
        let verdicts = self.on_devices(self.ops.iter().map(|op| op.block))?;
        let verdicts = verdicts.into_iter();
        Ok(verdicts.map(|lane| lane.ok_or(Error::Fault)).collect())
    }

    /// The private operation with blinding.
    fn blinded(&self) -> Checked<BoxedUint> {
        let (cuda, ops) = (self.cuda, self.ops);
        let threads = cuda.host_pool();
        let share = ops.len().div_ceil(4 * cuda.host_threads()).max(1);
        let random = threads.map_chunks(ops, share, |_, ops| {
            ops.iter().map(random_or_one).collect::<Vec<_>>()
        });
        let random: Values = Secret::new(random.into_iter().flatten().collect());
        let powers = public_op(cuda, ops, &random)?;

        // Each thread takes its share of the lanes: it inverts the random numbers and blinds the
        // representatives.
        type Share = Result<(Blinding, Values), Error>;
        let prepared = threads.map_chunks(ops, share, |start, ops| -> Share {
            let of_share =
                |values: &[BoxedUint]| Secret::new(values[start..][..ops.len()].to_vec());
            let blinding = Blinding::from_powers(ops, of_share(&random), of_share(&powers))?;
            let mut representatives: Values =
                Secret::new(ops.iter().map(|op| op.block.clone()).collect());
            blinding.blind(ops, &mut representatives);
            Ok((blinding, representatives))
        });
        let prepared: Vec<_> = prepared.into_iter().collect::<Result<_, _>>()?;

        let representatives = prepared.iter().flat_map(|(_, values)| values.iter());
        let powers = self.on_devices(representatives)?;
        // A lane that did not pass has a zero from here on, which does not pass the last check either.
        let zero = || BoxedUint::zero_with_precision(self.shape.n_width);
        let values = threads.map_chunks(ops, share, |start, ops| {
            let powers = powers[start..][..ops.len()].iter();
            let powers =
                powers.map(|lane| lane.as_ref().map_or_else(zero, |power| (**power).clone()));
            let mut values: Values = Secret::new(powers.collect());
            let (blinding, _) = &prepared[start / share];
            blinding.unblind(ops, &mut values);
            values
        });
        let values = values
            .into_iter()
            .flat_map(|mut values| core::mem::take(&mut *values));
        checked(cuda, ops, Secret::new(values.collect()))
    }

    /// The private operation on the devices, with `representatives` in place of the lanes' own.
    fn on_devices<'b>(
        &'b self,
        representatives: impl Iterator<Item = &'b BoxedUint>,
    ) -> Result<Vec<Verdict>, Error> {
        let job = self.job(representatives);
        let mut verdicts: Vec<Verdict> = job.lanes.iter().map(|_| None).collect();
        self.cuda.run_job(&job, &mut verdicts)?;
        Ok(verdicts)
    }

    fn job<'b>(&'b self, representatives: impl Iterator<Item = &'b BoxedUint>) -> CrtJob<'b> {
        let lane = |(op, representative): (&'b PrivateOp<'b>, &'b BoxedUint)| {
            let parts = op.key.parts();
            let Private::Crt(crt) = &parts.private else {
                unreachable!("a shape has CRT values");
            };
            DeviceLane {
                modulus: CrtModulus {
                    p: crt.p(),
                    dp: &crt.dp,
                    q: crt.q(),
                    dq: &crt.dq,
                    qinv: &crt.qinv,
                    n: parts.n.as_ref(),
                },
                residence: &parts.on_devices,
                representative,
            }
        };
        CrtJob {
            classes: self.classes,
            threads: self.cuda.host_pool(),
            n_bits: self.shape.n_width,
            prime_bits: self.shape.prime_width,
            exponent_bits: self.shape.prime_bits,
            public_exponent: self.shape.e,
            lanes: self.ops.iter().zip(representatives).map(lane).collect(),
            inject_fault: self.inject_fault,
        }
    }
}

#[cfg(test)]
mod tests;
