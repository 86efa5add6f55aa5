//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the representative and the result; all others go by way of the host.

mod job;

use alloc::vec::Vec;
use std::sync::Mutex;

use self::job::{CrtJob, InjectFault};
use super::{PrivateOps, RsaPrivateOp};
use crate::Error;
use crate::backend::Cuda;
use crate::backend::cuda::Timing;
use crate::backend::cuda::registry::Entry;

/// Lanes whose keys there are no kernels for: so many at a time, so that the exponentiations fill a device.
const LANES_BY_WAY_OF_THE_HOST: usize = 8192;

/// Representatives, blinding factors and the check are made on the host's threads; blinding, the exponentiations,
/// recombination and unblinding on the devices.
impl RsaPrivateOp for Cuda {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        tampered(self, ops, Tampering::NONE).map(|_| ())
    }
}

impl Cuda {
    /// Like [`private_op`](RsaPrivateOp::private_op), and tells the time that the kernels took; none for keys that
    /// there are no kernels for. For measurements.
    ///
    /// # Errors
    ///
    /// Those of [`private_op`](RsaPrivateOp::private_op).
    pub fn private_op_timed(&self, ops: PrivateOps<'_>) -> Result<Timing, Error> {
        tampered(self, ops, Tampering::NONE)
    }
}

/// What tests do to a batch.
#[derive(Clone, Copy)]
struct Tampering<'a> {
    inject_fault: InjectFault<'a>,
    /// The only family whose kernels may compute the halves.
    halves_by: Option<&'a str>,
}

impl Tampering<'_> {
    const NONE: Self = Self {
        inject_fault: &|_| (),
        halves_by: None,
    };
}

/// With something done to the batch on its way to a device.
fn tampered(cuda: &Cuda, ops: PrivateOps<'_>, tampering: Tampering<'_>) -> Result<Timing, Error> {
    let class = &ops.batch.class;
    let fits = (1..=u64::BITS).contains(&class.e_bits);
    let mut classes = class.prime.filter(|_| fits).map_or_else(Vec::new, |prime| {
        cuda.crt_classes(class.n_width, prime.width)
    });
    if let Some(family) = tampering.halves_by {
        let by_it = |entry: &&Entry| entry.image.key.family == family;
        classes
            .iter_mut()
            .for_each(|class| class.halves.retain(by_it));
    }
    let Some(prime) = class.prime.filter(|_| !classes.is_empty()) else {
        ops.compute_on(cuda, LANES_BY_WAY_OF_THE_HOST)?;
        return Ok(Timing::default());
    };
    let job = CrtJob {
        classes: &classes,
        threads: cuda.host_pool(),
        prime,
        batch: ops.batch,
        lanes: ops.range(),
        inject_fault: tampering.inject_fault,
        opening: Mutex::default(),
    };
    cuda.run_job(&job, ops.places)
}

#[cfg(test)]
mod tests;
