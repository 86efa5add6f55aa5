//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the representative and the result; all others go by way of the host.

mod job;

use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use self::job::{CrtJob, InjectFault, is_fault};
use super::group::{KeyClass, runs};
use super::places::{Place, Places, Room};
use super::{Helpers, HostEngine, PrivateOps, RsaPrivateOp};
use crate::backend::Cuda;
use crate::backend::cuda::Timing;
use crate::backend::cuda::family::crt::CrtClass;
use crate::backend::cuda::family::entry::Entry;
use crate::backend::cuda::runtime::pipeline::Places as DevicePlaces;
use crate::rsa::Error;
use crate::rsa::KeyHandle;

/// Lanes whose keys there are no kernels for: so many at a time, so that the exponentiations fill a device.
const LANES_BY_WAY_OF_THE_HOST: usize = 8192;

/// Representatives, blinding factors and the check are made on the host's threads; blinding, the exponentiations,
/// recombination and unblinding on the devices.
impl RsaPrivateOp for Cuda {
    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        tampered(self, ops, Tampering::NONE).map(|_| ())
    }

    fn engine(&self) -> HostEngine<'_> {
        self.host().engine()
    }

    fn helpers(&self) -> Helpers<'_> {
        Helpers::of(self.host_pool().0)
    }
}

impl Cuda {
    /// Compiles the kernels for private operations with keys like this one now rather than in the first call that needs them: a
    /// call waits seconds for them, once on a machine if the driver keeps what it has compiled, as it does by default. For services,
    /// before [`Auto::with_cuda`](crate::backend::Auto::with_cuda) or a queue gets the devices.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`](crate::Error::Cuda) if the driver cannot compile or load a kernel, [`Error::Forked`](crate::Error::Forked) in a forked child.
    pub fn prepare_private_op(&self, key: &KeyHandle) -> Result<(), crate::Error> {
        let class = KeyClass::of(key.parts());
        let classes = classes_for(self, &class);
        match class.prime {
            Some(_) if !classes.is_empty() => {
                self.compile(|| classes.iter().flat_map(CrtClass::entries))
            }
            Some(prime) => self.prepare(prime.width),
            None => self.prepare(class.n_width),
        }
    }

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
    #[cfg(test)]
    strike: Option<&'a job::Strike>,
}

impl Tampering<'_> {
    const NONE: Self = Self {
        inject_fault: &|_| (),
        halves_by: None,
        #[cfg(test)]
        strike: None,
    };
}

/// With something done to the batch on its way to a device.
fn tampered(cuda: &Cuda, ops: PrivateOps<'_>, tampering: Tampering<'_>) -> Result<Timing, Error> {
    let class = &ops.batch.class;
    let mut classes = classes_for(cuda, class);
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
        devices: cuda.devices().count(),
        prime,
        batch: ops.batch,
        engine: cuda.engine().0,
        lanes: ops.range(),
        inject_fault: tampering.inject_fault,
        #[cfg(test)]
        strike: tampering.strike.cloned(),
        any_fault: AtomicBool::new(false),
    };
    match ops.places {
        Places::Secret(places) => run(cuda, job, places),
        Places::Signatures(places) => run(cuda, job, places),
    }
}

fn run<P: Place>(cuda: &Cuda, job: CrtJob<'_>, room: Room<'_, P>) -> Result<Timing, Error> {
    let (timing, places) = match room {
        Room::Unmade {
            places,
            count,
            make,
        } if places.is_empty() => {
            let run = |later| cuda.run_job(&job, DevicePlaces::Later(count, later));
            let timing = cuda.helpers().make_beside(places, count, make, run);
            (timing, &mut places[..])
        }
        room => {
            let places = room.made();
            (cuda.run_job(&job, DevicePlaces::Made(places)), places)
        }
    };
    if job.any_fault.into_inner() {
        renew_records(places, &job.batch.keys[job.lanes]);
    }
    timing
}

/// The kernels for keys that stay on the devices; none for other keys.
fn classes_for(cuda: &Cuda, class: &KeyClass) -> Vec<CrtClass> {
    let fits = (1..=u64::BITS).contains(&class.e_bits);
    class.prime.filter(|_| fits).map_or_else(Vec::new, |prime| {
        cuda.crt_classes(class.n_width, prime.width)
    })
}

/// Wipes the records of keys of which a lane has failed its check, so that the next call brings them to the devices anew: in one that
/// a fault has changed all lanes would fail for ever.
fn renew_records<P: Place>(results: &[P], keys: &[&KeyHandle]) {
    let mut first = 0;
    for run in runs(keys) {
        let results = &results[first..first + run.len()];
        first += run.len();
        if results.iter().any(is_fault) {
            // A device that cannot wipe it is lost, or says so in the next call.
            let _ = run[0].evict();
        }
    }
}

#[cfg(test)]
mod tests;
