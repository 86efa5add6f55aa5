//! Tests that need a GPU and access to internals: wiped buffers, and lost devices.

use super::powers::PowerJob;
use super::runtime::device::Call;
use super::runtime::launch::Work;
use super::runtime::pipeline::{Job, Stop};
use super::runtime::slot::Slot;
use super::*;
use alloc::vec;
use batch_modexp_core::Serial;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{NonZero, Odd, U1024};
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use std::sync::{Condvar, Mutex};

impl Cuda {
    /// The number of kernels that were compiled, over all devices.
    pub(crate) fn compiled(&self) -> usize {
        self.devices.iter().map(Device::compiled).sum()
    }

    /// Whether all buffers hold zeros only.
    pub(crate) fn is_wiped(&self) -> bool {
        self.devices.iter().all(Device::is_wiped)
    }

    /// Marks the first `count` devices as lost.
    pub(crate) fn inject_losses(&self, count: usize, error: &str) {
        let lost = self.devices.iter().take(count);
        lost.for_each(|device| device.inject_loss(error));
    }
}

/// The first device, named `times` times.
fn gpu(times: usize) -> Option<Cuda> {
    let found = crate::need::available("cuda", Cuda::probe())?;
    Some(Cuda::with_devices(&vec![found[0].ordinal(); times]).unwrap())
}

/// Runs `check` with a batch of several chunks of pseudorandom secrets, and its result.
fn with_batch(check: impl FnOnce(&[ModExp<'_, U1024>], U1024)) {
    let params = FixedMontyParams::new(Odd::new(U1024::MAX).unwrap());
    let secret = U1024::MAX.wrapping_div(&NonZero::new(U1024::from(7u8)).unwrap());
    let instance = ModExp {
        base: &secret,
        exponent: &secret,
        params: &params,
    };
    let mut expected = [U1024::ZERO];
    Serial
        .batch_mod_exp(&[instance], 32, &mut expected)
        .unwrap();
    check(&vec![instance; 100_000], expected[0]);
}

type Instances<'a> = [ModExp<'a, U1024>];

fn job<'a>(cuda: &'a Cuda, batch: &'a Instances<'a>) -> PowerJob<'a, Instances<'a>> {
    PowerJob::new(cuda, 32, Tuning::default(), batch)
}

#[test]
fn buffers_are_wiped_after_a_call() {
    let Some(cuda) = gpu(1) else { return };
    with_batch(|batch, expected| {
        let mut out = vec![U1024::ZERO; batch.len()];
        cuda.batch_mod_exp(batch, 32, &mut out).unwrap();
        assert!(cuda.take_timing().chunks > 1);
        assert!(out.iter().all(|result| *result == expected));
        assert!(cuda.devices.iter().all(Device::is_wiped));
    });
}

/// A job whose chunks wait on the device until another call has one there.
struct Overlapping<'a, J> {
    job: J,
    arrived: &'a (Mutex<usize>, Condvar),
}

impl<O, J: Job<O>> Job<O> for Overlapping<'_, J> {
    type Prepared = J::Prepared;
    type Chunk = J::Chunk;
    type Error = J::Error;

    const HAS_SEVERAL_LAUNCHES: bool = J::HAS_SEVERAL_LAUNCHES;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.job.forecast(device, count)
    }

    fn prepare(&self, call: &Call<'_>, share: usize) -> Result<(J::Prepared, usize), J::Error> {
        self.job.prepare(call, share)
    }

    fn submit(
        &self,
        prepared: &J::Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<J::Chunk, Stop<J::Error>> {
        let submitted = self.job.submit(prepared, chunk, slot, submitting)?;
        let (arrived, changed) = self.arrived;
        *arrived.lock().unwrap() += 1;
        changed.notify_all();
        let long = Duration::from_secs(60);
        let alone = |arrived: &mut usize| *arrived < 2;
        let met = changed.wait_timeout_while(arrived.lock().unwrap(), long, alone);
        assert!(!met.unwrap().1.timed_out(), "no other call came");
        Ok(submitted)
    }

    fn take(
        &self,
        prepared: &J::Prepared,
        kept: J::Chunk,
        chunk: &Range<usize>,
        words: &mut [u64],
        output: O,
    ) {
        self.job.take(prepared, kept, chunk, words, output);
    }
}

/// Small calls do not wait for each other: both have a chunk on the device at the same time.
#[test]
fn small_calls_share_a_device() {
    let Some(cuda) = gpu(1) else { return };
    with_batch(|batch, expected| {
        let arrived = &(Mutex::default(), Condvar::new());
        std::thread::scope(|scope| {
            for batch in [&batch[..100], &batch[..300]] {
                let cuda = &cuda;
                scope.spawn(move || {
                    let job = job(cuda, batch);
                    let mut out = vec![U1024::ZERO; batch.len()];
                    cuda.devices
                        .run(&Overlapping { job, arrived }, &mut out[..])
                        .unwrap();
                    assert!(out.iter().all(|result| *result == expected));
                });
            }
        });
        assert!(cuda.devices.iter().all(Device::is_wiped));
    });
}

/// Many concurrent calls of all sizes, more of them than slots.
#[test]
fn calls_of_all_sizes_at_once() {
    let Some(cuda) = gpu(1) else { return };
    with_batch(|batch, expected| {
        std::thread::scope(|scope| {
            for caller in 0..12 {
                let cuda = &cuda;
                scope.spawn(move || {
                    for turn in 0..6 {
                        let len = [1, 700, 20_000, 60_000][(caller + turn) % 4];
                        let mut out = vec![U1024::ZERO; len];
                        cuda.batch_mod_exp(&batch[..len], 32, &mut out).unwrap();
                        assert!(out.iter().all(|result| *result == expected));
                    }
                });
            }
        });
        assert!(cuda.devices.iter().all(Device::is_wiped));
    });
}

/// A job that fails at one of its chunks on one of the devices.
struct Failing<'a, J> {
    job: J,
    victim: &'a Device,
    how: Failure,
    /// The number of successful chunks before that.
    after: usize,
}

#[derive(Clone, Copy)]
enum Failure {
    /// A panic while one chunk is on the device and the next is being filled.
    Panic,
    /// An error of the batch.
    Batch,
    /// A driver error after which the device counts as lost.
    Loss,
}

impl<O, J: Job<O>> Job<O> for Failing<'_, J> {
    /// That of the job, and on the victim the number of submitted chunks.
    type Prepared = (J::Prepared, Option<AtomicUsize>);
    type Chunk = J::Chunk;
    type Error = J::Error;

    const HAS_SEVERAL_LAUNCHES: bool = J::HAS_SEVERAL_LAUNCHES;

    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        self.job.forecast(device, count)
    }

    fn prepare(&self, call: &Call<'_>, share: usize) -> Result<(Self::Prepared, usize), J::Error> {
        let (prepared, len) = self.job.prepare(call, share)?;
        let on_victim = ptr::eq(call.device, self.victim);
        // At least one more chunk.
        let len = len.min(share / (self.after + 1));
        Ok(((prepared, on_victim.then(AtomicUsize::default)), len))
    }

    fn submit(
        &self,
        (prepared, on_victim): &Self::Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<J::Chunk, Stop<J::Error>> {
        let before = on_victim
            .as_ref()
            .map(|count| count.fetch_add(1, Ordering::Relaxed));
        if let (None, Failure::Loss) = (before, self.how) {
            // Otherwise the others may finish everything before the victim fails.
            while self.victim.lost().is_none() {
                std::thread::yield_now();
            }
        }
        if before.is_some_and(|count| count >= self.after) {
            match self.how {
                Failure::Panic => {
                    let mut work = Work::default();
                    work.input(5000);
                    let fill = |input: &mut [u64]| {
                        input.fill(7);
                        std::panic::resume_unwind(alloc::boxed::Box::new("on the way"));
                    };
                    slot.submit(&work, fill)?;
                }
                Failure::Batch => return Err(Stop::Batch(Error::Forked.into())),
                Failure::Loss => {
                    self.victim.inject_loss("CUDA_ERROR_TEST");
                    return Err(DriverError(CUresult::CUDA_ERROR_LAUNCH_FAILED).into());
                }
            }
        }
        self.job.submit(prepared, chunk, slot, submitting)
    }

    fn take(
        &self,
        (prepared, _): &Self::Prepared,
        kept: J::Chunk,
        chunk: &Range<usize>,
        words: &mut [u64],
        output: O,
    ) {
        self.job.take(prepared, kept, chunk, words, output);
    }
}

/// Runs a job that fails at the second chunk, and later when each slot holds the data of a chunk.
/// `has_failed` gets the job and the place for its results.
fn check_wiping(
    how: Failure,
    has_failed: impl Fn(&Cuda, &Failing<'_, PowerJob<'_, Instances<'_>>>, &mut [U1024]) -> bool,
) {
    let Some(cuda) = gpu(1) else { return };
    with_batch(|batch, _| {
        for after in [1, 6] {
            let failing = Failing {
                job: job(&cuda, batch),
                victim: cuda.devices.iter().next().unwrap(),
                how,
                after,
            };
            let mut out = vec![U1024::ZERO; batch.len()];
            assert!(has_failed(&cuda, &failing, &mut out));
            assert!(cuda.devices.iter().all(Device::is_wiped));
        }
    });
}

#[test]
fn buffers_are_wiped_after_a_panic() {
    check_wiping(Failure::Panic, |cuda, failing, out| {
        let panicking = || cuda.devices.run(failing, out);
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(panicking)).is_err()
    });
}

#[test]
fn buffers_are_wiped_after_a_fault_of_the_batch() {
    check_wiping(Failure::Batch, |cuda, failing, out| {
        cuda.devices.run(failing, out) == Err(Error::Forked)
    });
}

/// One of three devices is lost during a call. The others finish its share, and compute all later
/// calls.
#[test]
fn a_lost_device_is_set_aside() {
    let Some(cuda) = gpu(3) else { return };
    with_batch(|batch, expected| {
        let failing = Failing {
            job: job(&cuda, batch),
            victim: cuda.devices.iter().nth(1).unwrap(),
            how: Failure::Loss,
            after: 1,
        };
        assert_eq!(cuda.lost().count(), 0);
        let mut out = vec![U1024::ZERO; batch.len()];
        cuda.devices.run(&failing, &mut out[..]).unwrap();
        assert!(out.iter().all(|result| *result == expected));
        let lost: Vec<_> = cuda.lost().collect();
        assert_eq!(lost.len(), 1);
        assert_eq!(lost[0].error, "CUDA_ERROR_TEST");
        assert_eq!(cuda.devices().count(), 3);
        assert!(!cuda.is_over());

        out.fill(U1024::ZERO);
        cuda.batch_mod_exp(batch, 32, &mut out).unwrap();
        cuda.prepare(2048).unwrap();
        assert!(out.iter().all(|result| *result == expected));
        assert!(cuda.devices.iter().all(Device::is_wiped));

        cuda.inject_losses(usize::MAX, "CUDA_ERROR_TEST");
        assert!(cuda.is_over());
        let result = cuda.batch_mod_exp(batch, 32, &mut out);
        assert!(matches!(
            result,
            Err(Error::Cuda {
                fault: DeviceFault::Lost { .. },
                ..
            })
        ));
        assert!(out.iter().all(|result| *result == U1024::ZERO));
        assert!(cuda.prepare(2048).is_err());
    });
}
