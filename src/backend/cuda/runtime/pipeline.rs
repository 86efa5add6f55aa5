//! The pipeline of a batch over all devices: shares, chunks, and several chunks under way on each
//! device.

mod turns;

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;
use std::process;
use std::sync::Mutex;

use batch_modexp_core::Error;
use cudarc::driver::DriverError;

use self::turns::run_share;
use super::device::{Call, Device};
use super::probe::DeviceInfo;
use super::shares::run_on_all;
pub(crate) use super::shares::{ChunkLens, Destination};
use super::slot::Slot;

/// Work that devices compute in chunks. The results go to an `O`.
pub(crate) trait Job<O>: Sync {
    /// State that the chunks of a device's share have in common.
    type Share: Sync;
    /// State of a chunk that is under way.
    type Chunk;
    /// Errors that end a call early: those of devices, and those of the maker of the inputs.
    type Error: From<Error> + Send;

    /// The estimated time for `count` instances on the device, in milliseconds. `None` if the
    /// device has no kernel for this job.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64>;

    /// Prepares the device of the call for any instances of the batch, and says how long the chunks
    /// are.
    ///
    /// The calls under way on the device have about `count` instances together, if they are alike.
    fn prepare(
        &self,
        call: &Call<'_>,
        count: usize,
    ) -> Result<(Self::Share, ChunkLens), Self::Error>;

    /// Submits a chunk. From the moment when it opens the chunk's items it holds `submitting`, of
    /// which each share has one: two chunks at a time would both be late.
    fn submit(
        &self,
        share: &Self::Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<Self::Error>>;

    /// Copies the results of a chunk, all words of its output, to their places, and wipes them. A
    /// thread that has just read a word wipes it faster than another thread would later.
    fn take(
        &self,
        share: &Self::Share,
        kept: Self::Chunk,
        chunk: &Range<usize>,
        words: &mut [u64],
        output: O,
    );
}

/// The reason for not computing a chunk.
pub(crate) enum Stop<E> {
    /// The driver reported an error.
    Device(DriverError),
    /// The batch is invalid, so no device could compute the chunk.
    Batch(E),
}

impl<E> From<DriverError> for Stop<E> {
    fn from(error: DriverError) -> Self {
        Self::Device(error)
    }
}

/// The devices of a backend.
#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<Device>,
    /// The process that opened the devices. A forked child has the memory of its parent, but neither
    /// its threads nor its CUDA contexts. Every driver call would fail or hang there, and pinned
    /// memory may be missing.
    process: u32,
}

impl Devices {
    pub(crate) fn open(infos: &[DeviceInfo]) -> Result<Self, Error> {
        Ok(Self {
            devices: infos.iter().map(Device::open).collect::<Result<_, _>>()?,
            process: process::id(),
        })
    }

    /// All devices, including lost ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter()
    }

    /// The devices that calls use: those that are not lost. If all are lost, all, so that calls for
    /// them return the loss.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Device> {
        let is_usable = |device: &Device| device.lost().is_none();
        let any = self.iter().any(is_usable);
        self.iter().filter(move |device| !any || is_usable(device))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.devices.iter_mut()
    }

    /// Whether this is a forked child.
    fn is_left(&self) -> bool {
        self.process != process::id()
    }

    /// An error if no device is usable.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_left() {
            return Err(Error::Forked);
        }
        if self.iter().all(|device| device.lost().is_some()) {
            self.iter().try_for_each(Device::check_lost)?;
        }
        Ok(())
    }

    /// Runs a job on all usable devices with a kernel for it. At least one device, possibly lost,
    /// must have a kernel.
    ///
    /// After an error, only some instances may have results.
    pub(crate) fn run<O: Destination, J: Job<O>>(
        &self,
        job: &J,
        output: O,
    ) -> Result<(), J::Error> {
        let forecast = |device: &&Device, count| job.forecast(&device.info, count);
        let devices = with_times(self.iter(), output.len(), forecast);
        self.run_with(job, &devices, output)
    }

    /// The estimated time in milliseconds for a job of `count` instances on the devices in use.
    /// `None` if none has a kernel.
    pub(crate) fn forecast(
        &self,
        count: usize,
        forecast: impl Fn(&DeviceInfo, usize) -> Option<f64>,
    ) -> Option<f64> {
        let forecast = |device: &&Device, count| forecast(&device.info, count);
        together(&with_times(self.in_use(), count, forecast))
    }

    /// Runs a job on only one of the devices, which must have a kernel for it.
    pub(crate) fn run_on<O: Destination, J: Job<O>>(
        &self,
        device: &Device,
        job: &J,
        output: O,
    ) -> Result<(), J::Error> {
        self.run_with(job, &[(device, 1.0)], output)
    }

    /// Runs a job on these devices, each with a share in inverse proportion to its time.
    fn run_with<O: Destination, J: Job<O>>(
        &self,
        job: &J,
        devices: &[(&Device, f64)],
        output: O,
    ) -> Result<(), J::Error> {
        self.check()?;
        let check = |(device, _): &(&Device, _)| device.check_lost();
        let speed = |(_, time): &(_, f64)| 1.0 / time;
        run_on_all(devices, check, speed, output, |&(device, _), share| {
            run_share(job, device, share)
        })
    }
}

/// Leaves the devices to the parent in a forked child: the driver must not be called there.
impl Drop for Devices {
    fn drop(&mut self) {
        if self.is_left() {
            mem::forget(mem::take(&mut self.devices));
        }
    }
}

/// The devices with a kernel, each with its estimated time for an equal part of `count` instances.
fn with_times<D>(
    devices: impl Iterator<Item = D>,
    count: usize,
    forecast: impl Fn(&D, usize) -> Option<f64>,
) -> Vec<(D, f64)> {
    let able: Vec<_> = devices
        .filter(|device| forecast(device, 1).is_some())
        .collect();
    let part = count.div_ceil(able.len().max(1));
    let timed = able.into_iter().filter_map(|device| {
        let time = forecast(&device, part)?;
        Some((device, time))
    });
    timed.collect()
}

/// The time of devices that take these times for equal parts, and share the work by their speed.
fn together<D>(devices: &[(D, f64)]) -> Option<f64> {
    let speed: f64 = devices.iter().map(|(_, time)| 1.0 / time).sum();
    (!devices.is_empty()).then(|| devices.len() as f64 / speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices that take these milliseconds for an instance; those with 0 have no kernel.
    fn forecast(devices: &[u8], count: usize) -> Option<f64> {
        let ms = |&each: &u8, count| (each > 0).then(|| f64::from(each) * count as f64);
        together(&with_times(devices.iter().copied(), count, ms))
    }

    #[test]
    fn forecasts_are_for_shares_by_speed() {
        let about = |ms: f64, expected: f64| (ms / expected - 1.0).abs() < 1e-9;
        assert_eq!(forecast(&[], 10), None);
        assert_eq!(forecast(&[0, 0], 10), None);
        assert!(about(forecast(&[3], 10).unwrap(), 30.0));
        assert!(about(forecast(&[3, 3, 0], 10).unwrap(), 15.0));
        // Of 110 instances the slow device takes 10.
        assert!(about(forecast(&[1, 10], 110).unwrap(), 100.0));
    }
}
