//! The way of a batch through all devices: shares, chunks, two of them under way at a time on each.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;
use core::time::Duration;
use std::time::Instant;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::device::{Device, InUse, SLOTS};
use super::module::KernelKey;
use super::probe::DeviceInfo;
use super::process::Process;
use super::shares::{cut, run_on_all};
use super::slot::Slot;
use crate::Error;

/// Work that devices do in chunks. `P` is where the result of an instance goes.
pub(crate) trait Job<P>: Sync {
    /// What the chunks of a device's share have in common.
    type Share;
    /// What is kept of a chunk while it is under way.
    type Chunk;

    /// The kernel that the device would compute `count` instances with, and the time in milliseconds that it
    /// should take; `None` if the device has no kernel for this job.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast>;

    /// Gets the device that the slots belong to ready for its share.
    fn prepare(
        &self,
        slots: &InUse<'_>,
        share: &Range<usize>,
    ) -> Result<Prepared<Self::Share>, Error>;

    /// Sends a chunk off.
    fn submit(
        &self,
        share: &Self::Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Self::Chunk, DriverError>;

    /// Puts the results of a chunk, the output of its layout, to their places.
    fn take(&self, kept: Self::Chunk, chunk: &Range<usize>, output: &[u64], places: &mut [P]);
}

/// What a share should take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forecast {
    pub(crate) key: KernelKey,
    pub(crate) milliseconds: f64,
}

/// A device that is ready for its share.
pub(crate) struct Prepared<S> {
    pub(crate) share: S,
    /// Instances that the device works on at a time.
    pub(crate) resident: usize,
    /// The most instances in a chunk.
    pub(crate) chunk: usize,
    /// Chunks are multiples of so many instances, a block's.
    pub(crate) per_block: usize,
}

/// What a batch cost on the devices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// The time from the start to the end of each kernel, by the device's clock, summed over all launches
    /// of the batch. Launches that overlap count in full each.
    pub kernel: Duration,
    /// The number of launches.
    pub launches: u32,
}

impl core::ops::AddAssign for Timing {
    fn add_assign(&mut self, other: Self) {
        self.kernel += other.kernel;
        self.launches += other.launches;
    }
}

/// The devices of a backend.
#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<Device>,
    process: Process,
}

impl Devices {
    pub(crate) fn open(infos: &[DeviceInfo]) -> Result<Self, Error> {
        Ok(Self {
            devices: infos.iter().map(Device::open).collect::<Result<_, _>>()?,
            process: Process::current(),
        })
    }

    /// All of them, those that are lost too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter()
    }

    /// An error if none of them can be used any more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.process.is_left() {
            return Err(Error::Forked);
        }
        if self.iter().all(|device| device.lost().is_some()) {
            self.iter().try_for_each(Device::check_lost)?;
        }
        Ok(())
    }

    /// Runs a job on all devices that are not lost and have a kernel for it. There must be one that does, lost
    /// or not.
    ///
    /// After an error some of the `places` may have results, and others none.
    pub(crate) fn run<P: Send, J: Job<P>>(
        &self,
        job: &J,
        places: &mut [P],
    ) -> Result<Timing, Error> {
        self.check()?;
        let able = |device: &&Device| job.forecast(device.info(), 1).is_some();
        let able: Vec<_> = self.iter().filter(able).collect();
        let count = places.len().div_ceil(able.len().max(1));
        let speed = |device: &&Device| {
            job.forecast(device.info(), count).map_or(0.0, |forecast| {
                device.pace(forecast.key) / forecast.milliseconds
            })
        };
        let timings = run_on_all(&able, speed, places, |device, share, places| {
            run_share(job, device, &share, places)
        })?;
        let mut sum = Timing::default();
        timings.into_iter().for_each(|timing| sum += timing);
        Ok(sum)
    }
}

/// In a forked child the devices are the parent's: the driver must not hear of them again.
impl Drop for Devices {
    fn drop(&mut self) {
        if self.process.is_left() {
            mem::forget(mem::take(&mut self.devices));
        }
    }
}

/// Computes a share on one device.
fn run_share<P, J: Job<P>>(
    job: &J,
    device: &Device,
    share: &Range<usize>,
    places: &mut [P],
) -> Result<Timing, Error> {
    let mut slots = device.slots();
    let prepared = job.prepare(&slots, share)?;
    let chunks = cut(share, prepared.chunk, prepared.per_block);
    let started = Instant::now();
    let timing = send_through(
        &mut slots,
        &chunks,
        |slot, chunk| job.submit(&prepared.share, chunk, slot),
        |kept, chunk, output| {
            let places = &mut places[chunk.start - share.start..chunk.end - share.start];
            job.take(kept, chunk, output, places);
        },
    )?;
    // A share that does not fill the device says little about its speed.
    if let (true, Some(forecast)) = (
        share.len() >= prepared.resident,
        job.forecast(device.info(), share.len()),
    ) {
        let milliseconds = started.elapsed().as_secs_f64().max(1e-9) * 1e3;
        device.set_pace(forecast.key, forecast.milliseconds / milliseconds);
    }
    Ok(timing)
}

/// Sends chunks through the slots in turn, so that one is copied while the other is computed, and hands the
/// results to `take`, in order.
fn send_through<C>(
    slots: &mut InUse<'_>,
    chunks: &[Range<usize>],
    mut submit: impl FnMut(&mut Slot, &Range<usize>) -> Result<C, DriverError>,
    mut take: impl FnMut(C, &Range<usize>, &[u64]),
) -> Result<Timing, Error> {
    slots.device().check_lost()?;
    let mut work = || {
        let mut timing = Timing::default();
        let mut under_way = [const { None }; SLOTS];
        // As many more rounds than chunks, in which what is under way is finished.
        for round in 0..chunks.len() + SLOTS {
            let slot = &mut slots.slots()[round % SLOTS];
            let under_way = &mut under_way[round % SLOTS];
            if let Some((kept, chunk)) = under_way.take() {
                timing += Timing {
                    kernel: slot.finish(|output| take(kept, chunk, output))?,
                    launches: 1,
                };
            }
            if let Some(chunk) = chunks.get(round) {
                *under_way = Some((submit(slot, chunk)?, chunk));
            }
        }
        Ok(timing)
    };
    let result = work();
    if let Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) = result {
        slots.slots().iter_mut().for_each(|slot| {
            slot.abandon();
            slot.release();
        });
    }
    slots.slots().iter_mut().for_each(Slot::abandon);
    result.map_err(|error| slots.device().fault(error))
}
