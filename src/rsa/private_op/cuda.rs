//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the representative and the result; all others go by way of the host.

mod job;

use alloc::vec::Vec;

use crypto_bigint::BoxedUint;

use self::job::{CrtJob, InjectFault, Verdict};
use super::blinding::Blinding;
use super::group::{Group, PrimeClass, Values, in_groups};
use super::op::{Candidates, PrivateOp};
use super::{HostThreads, RsaPrivateOp, host};
use crate::Error;
use crate::backend::Cuda;
use crate::backend::cuda::family::crt::CrtClass;
use crate::secret::Secret;

/// Without blinding the device does everything. With blinding the host multiplies by the blinding factors
/// before and divides by them after, on all threads.
impl RsaPrivateOp for Cuda {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        in_groups(batch, |group| match DeviceGroup::new(self, group) {
            None => host::private_op(self, &group.ops),
            Some(group) if group.lanes.is_blinded => group.blinded(),
            Some(group) => group.plain(),
        })
    }

    fn check_threads(&self) -> HostThreads<'_> {
        HostThreads::of(self.host().inner().pool_here())
    }
}

/// A group of lanes for whose keys a device has kernels.
struct DeviceGroup<'s, 'a> {
    cuda: &'s Cuda,
    lanes: &'s Group<'a>,
    prime: PrimeClass,
    /// One class of each family.
    classes: Vec<CrtClass>,
    inject_fault: InjectFault<'s>,
}

impl<'s, 'a> DeviceGroup<'s, 'a> {
    /// `None` for keys without CRT values, for long public exponents, and for widths that there are no kernels
    /// for.
    fn new(cuda: &'s Cuda, lanes: &'s Group<'a>) -> Option<Self> {
        let fits = (1..=u64::BITS).contains(&lanes.class.e_bits);
        let prime = lanes.class.prime.filter(|_| fits)?;
        let classes = cuda.crt_classes(lanes.class.n_width, prime.width);
        (!classes.is_empty()).then_some(Self {
            cuda,
            lanes,
            prime,
            classes,
            inject_fault: &|_| (),
        })
    }

    /// The private operation without blinding.
    fn plain(&self) -> Candidates {
        let representatives = self.lanes.ops.iter().map(|op| op.representative);
        let verdicts = self.on_devices(representatives.collect())?.into_iter();
        Ok(verdicts.map(|lane| lane.ok_or(Error::Fault)).collect())
    }

    /// The private operation with blinding.
    fn blinded(&self) -> Candidates {
        let (cuda, ops) = (self.cuda, &self.lanes.ops);
        let threads = cuda.host_pool();
        let share = ops.len().div_ceil(4 * cuda.host_threads()).max(1);
        let powers = self.lanes.public_power(cuda, self.lanes.blinds())?;

        // Each thread takes its share of the lanes: it inverts the random numbers and blinds the
        // representatives.
        type Share = Result<(Blinding, Values), Error>;
        let prepared = threads.map_chunks(ops, share, |start, ops| -> Share {
            let powers = powers[start..][..ops.len()].to_vec();
            let blinding = Blinding::new(ops, Secret::new(powers))?;
            let copies = ops.iter().map(|op| op.representative.clone());
            let mut representatives: Values = Secret::new(copies.collect());
            blinding.blind(ops, &mut representatives);
            Ok((blinding, representatives))
        });
        let prepared: Vec<_> = prepared.into_iter().collect::<Result<_, _>>()?;

        let representatives = prepared.iter().flat_map(|(_, blinded)| blinded.iter());
        let verdicts = self.on_devices(representatives.collect())?;
        // A lane that did not pass has a zero on the way.
        let zero = || BoxedUint::zero_with_precision(self.lanes.class.n_width);
        let candidates = threads.map_chunks(ops, share, |start, ops| -> Vec<_> {
            let verdicts = &verdicts[start..][..ops.len()];
            let values = verdicts
                .iter()
                .map(|lane| lane.as_ref().map_or_else(zero, |power| (**power).clone()));
            let mut values: Values = Secret::new(values.collect());
            let (blinding, _) = &prepared[start / share];
            blinding.unblind(ops, &mut values);
            let lanes = values.drain(..).map(Secret::new).zip(verdicts);
            lanes
                .map(|(value, verdict)| match verdict {
                    Some(_) => Ok(value),
                    None => Err(Error::Fault),
                })
                .collect()
        });
        Ok(candidates.into_iter().flatten().collect())
    }

    /// The private operation on the devices, with `representatives` in place of the lanes' own.
    fn on_devices(&self, representatives: Vec<&BoxedUint>) -> Result<Vec<Verdict>, Error> {
        let job = CrtJob {
            classes: &self.classes,
            threads: self.cuda.host_pool(),
            n_bits: self.lanes.class.n_width,
            prime: self.prime,
            public_exponent: self.lanes.class.e_low,
            ops: &self.lanes.ops,
            representatives,
            inject_fault: self.inject_fault,
        };
        let mut verdicts: Vec<Verdict> = self.lanes.ops.iter().map(|_| None).collect();
        self.cuda.run_job(&job, &mut verdicts)?;
        Ok(verdicts)
    }
}

#[cfg(test)]
mod tests;
