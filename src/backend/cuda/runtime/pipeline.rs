//! The pipeline of a batch: a share for each device, whose chunks take turns in the device's slots.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::{process, thread};

use batch_modexp_core::Error;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::device::{Call, Device, SLOTS_OF_CALL};
use super::probe::DeviceInfo;
pub(crate) use super::shares::{ChunkLens, Destination};
use super::shares::{Piece, Share, run_on_all};
use super::slot::Slot;

/// Work that devices compute in chunks. The results go to an `O`.
pub(crate) trait Job<O>: Sync {
    /// State that the chunks of a device's share have in common.
    type Prepared: Sync;
    /// State of a chunk that is under way.
    type Chunk;
    /// Errors that end a call early: those of devices, and those of the maker of the inputs.
    type Error: From<Error> + Send;

    /// The estimated time for `count` instances on the device, in milliseconds. An instance has one
    /// result: in a CRT batch it is an item. `None` if the device has no kernel for this job.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64>;

    /// Prepares the device of the call for any instances of the batch, and says how long the chunks
    /// are.
    ///
    /// The calls under way on the device have about `count` instances together, if they are alike.
    fn prepare(
        &self,
        call: &Call<'_>,
        count: usize,
    ) -> Result<(Self::Prepared, ChunkLens), Self::Error>;

    /// Submits a chunk. From the moment when it opens the chunk's items it holds `submitting`, of
    /// which each share has one: two chunks at a time would both be late.
    fn submit(
        &self,
        prepared: &Self::Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        submitting: &Mutex<()>,
    ) -> Result<Self::Chunk, Stop<Self::Error>>;

    /// Copies the results of a chunk, all words of its output, to their places, and wipes them. A
    /// thread that has just read a word wipes it faster than another thread would later.
    fn take(
        &self,
        prepared: &Self::Prepared,
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
        self.run_on(&devices, job, output)
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

    /// Runs a job on these devices, all with a kernel for it, each with a share in inverse proportion
    /// to its time.
    pub(crate) fn run_on<O: Destination, J: Job<O>>(
        &self,
        devices: &[(&Device, f64)],
        job: &J,
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

/// Computes a share on one device.
///
/// With several chunks, two threads do this, each with half of the slots. While one fills or
/// empties a slot, helped by the host's other threads, the other does the same, without waiting. If
/// the device is lost, the chunks under way return to the share.
pub(super) fn run_share<O: Destination, J: Job<O>>(
    job: &J,
    device: &Device,
    share: &Share<'_, O>,
) -> Result<(), J::Error> {
    let call = device.call();
    let (prepared, lens) = job.prepare(&call, share.len.saturating_mul(call.calls))?;
    let mut in_use = call.slots(slots_for(share.len.div_ceil(lens.most.max(1))));
    device.check_lost()?;
    let has_many = share.len > lens.most;
    let sending = Sending {
        job,
        device,
        share,
        prepared: &prepared,
        lens,
        submitting: Mutex::default(),
        is_stopped: AtomicBool::new(false),
        sleeps: has_many || call.calls > 1,
    };
    let slots = &mut in_use.slots[..];
    let result = match has_many {
        false => sending.drive(slots),
        true => {
            let (first, second) = slots.split_at_mut(slots.len().div_ceil(2));
            thread::scope(|scope| {
                let other = thread::Builder::new().spawn_scoped(scope, || sending.drive(second));
                let this = sending.drive(first);
                // If the operating system refuses a thread, this one has passed all chunks.
                let Ok(other) = other else { return this };
                let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                this.and(other)
            })
        }
    };
    let full = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let is_full = matches!(&result, Err(Stop::Device(error)) if *error == full);
    in_use.slots.iter_mut().for_each(Slot::abandon);
    if is_full {
        in_use.release();
    }
    result.map_err(|stop| match stop {
        Stop::Device(error) => device.fault(error).into(),
        Stop::Batch(error) => error,
    })
}

/// The number of slots for `chunks` chunks: one for a single chunk, otherwise an equal number for
/// each of two threads.
fn slots_for(chunks: usize) -> usize {
    match chunks {
        0 | 1 => 1,
        _ => chunks.next_multiple_of(2).min(SLOTS_OF_CALL),
    }
}

/// A chunk on a device: what the job keeps of it, and its places.
type UnderWay<C, O> = (C, Piece<O>);

/// A share on its way through a device.
struct Sending<'a, O: Destination, J: Job<O>> {
    job: &'a J,
    device: &'a Device,
    share: &'a Share<'a, O>,
    prepared: &'a J::Prepared,
    lens: ChunkLens,
    /// See [`Job::submit`].
    submitting: Mutex<()>,
    /// Whether a thread has failed, so that the other one can stop.
    is_stopped: AtomicBool,
    /// Whether threads sleep while they wait for the device. With many chunks or other calls, the
    /// host's other threads can use the processor, and a delay of some microseconds does not matter.
    sleeps: bool,
}

impl<O: Destination, J: Job<O>> Sending<'_, O, J> {
    /// Passes chunks through some slots in turn, until none is left or a thread stops.
    fn drive(&self, slots: &mut [Slot]) -> Result<(), Stop<J::Error>> {
        Slot::share_chain(slots);
        let mut under_way: Vec<_> = slots.iter().map(|_| None).collect();
        let result = self.in_turn(slots, &mut under_way);
        if result.is_err() {
            self.is_stopped.store(true, Ordering::Relaxed);
            let under_way = under_way.into_iter().flatten();
            under_way.for_each(|(_, piece)| self.share.give_back(piece));
        }
        result
    }

    /// While the device computes some chunks, the host fills another slot or takes its results.
    fn in_turn(
        &self,
        slots: &mut [Slot],
        under_way: &mut [Option<UnderWay<J::Chunk, O>>],
    ) -> Result<(), Stop<J::Error>> {
        let mut has_ended = false;
        for turn in (0..slots.len()).cycle() {
            let slot = &mut slots[turn];
            let mut finished = None;
            if let Some((kept, piece)) = under_way[turn].take() {
                match slot.finish(self.sleeps) {
                    Ok((results, kernel)) => {
                        self.device.add_timing(kernel);
                        finished = Some((results, kept, piece));
                    }
                    Err(error) => {
                        self.share.give_back(piece);
                        return Err(error.into());
                    }
                }
            }
            // Submit the next chunk before taking results: the device waits for the chunk.
            let sent = match has_ended || self.is_stopped.load(Ordering::Relaxed) {
                false => self.send_next(slot, &mut under_way[turn]),
                true => Ok(false),
            };
            if let Some((mut results, kept, Piece { range, output })) = finished {
                results.take(|words| self.job.take(self.prepared, kept, &range, words, output));
                slot.return_results(results);
            }
            if !sent? {
                has_ended = true;
                if under_way.iter().all(Option::is_none) {
                    break;
                }
                // Clear while the device computes the last chunks.
                slots[turn].clear_device()?;
                slots.iter_mut().try_for_each(Slot::wipe_input)?;
            }
        }
        Ok(slots.iter_mut().try_for_each(Slot::settle)?)
    }

    /// Submits the next chunk in a free slot. Returns whether there was one.
    fn send_next(
        &self,
        slot: &mut Slot,
        under_way: &mut Option<UnderWay<J::Chunk, O>>,
    ) -> Result<bool, Stop<J::Error>> {
        let Some(piece) = self.share.next(self.lens) else {
            return Ok(false);
        };
        let (range, submitting) = (&piece.range, &self.submitting);
        match self.job.submit(self.prepared, range, slot, submitting) {
            Ok(kept) => *under_way = Some((kept, piece)),
            Err(stop) => {
                self.share.give_back(piece);
                return Err(stop);
            }
        }
        // After the last chunk, queue the clearing at once, while the host takes results.
        if self.share.is_taken() {
            slot.clear_device()?;
        }
        Ok(true)
    }
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
