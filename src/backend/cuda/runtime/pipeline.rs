//! The way of a batch through all devices: shares, chunks, and several of them under way at a time on each.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::time::Instant;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::device::{Call, Device, SLOTS_OF_CALL, SlotsInUse};
use super::module::KernelKey;
use super::probe::DeviceInfo;
use super::process::Process;
pub(crate) use super::shares::Places;
use super::shares::{Piece, Share, run_on_all};
use super::slot::Slot;
use crate::Error;

/// Work that devices do in chunks. `P` is where the result of an instance goes.
pub(crate) trait Job<P>: Sync {
    /// What the chunks of a device's share have in common.
    type Share: Sync;
    /// What is kept of a chunk while it is under way.
    type Chunk;

    /// The kernel that the device would compute `count` instances with, and the time in milliseconds that it
    /// should take; `None` if the device has no kernel for this job.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Forecast>;

    /// Gets the device that the call is under way on ready for its instances, any of the batch. With those of the calls beside it, if they
    /// are alike, they are about `count`: so many share the device.
    fn prepare(&self, call: &Call<'_>, count: usize) -> Result<Prepared<Self::Share>, Error>;

    /// Sends a chunk off.
    fn submit(
        &self,
        share: &Self::Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<Self::Chunk, Stop>;

    /// Puts the results of a chunk, the output of its layout, to their places, and wipes all of the output: threads that have just
    /// read it do so sooner than another one after them.
    fn take(&self, kept: Self::Chunk, chunk: &Range<usize>, output: &mut [u64], places: &mut [P]);
}

/// Why a chunk cannot be computed.
pub(crate) enum Stop {
    /// The driver has an error.
    Device(DriverError),
    /// No device could compute it.
    Batch(Error),
}

impl From<DriverError> for Stop {
    fn from(error: DriverError) -> Self {
        Self::Device(error)
    }
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
    /// The most instances in a chunk: as a rule [half a device's](half_of), so that two are computed side by side, and
    /// the first starts and the last ends with less of the host's work before and after it.
    pub(crate) chunk: usize,
    /// Chunks are multiples of so many instances, a block's.
    pub(crate) per_block: usize,
}

/// Half of the instances that a device works on at a time, in whole blocks.
pub(crate) fn half_of(resident: usize, per_block: usize) -> usize {
    resident.div_ceil(2).next_multiple_of(per_block)
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

/// Devices that are slower than the fastest by less than this are taken to be as fast: measurements differ by more from
/// call to call than two devices of one kind do.
const ALIKE: f64 = 0.85;

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

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.devices.iter_mut()
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
        self.run_to(job, Places::Made(places))
    }

    /// The same with places that may be made meanwhile.
    pub(crate) fn run_to<P: Send, J: Job<P>>(
        &self,
        job: &J,
        places: Places<'_, P>,
    ) -> Result<Timing, Error> {
        self.check()?;
        let able = |device: &&Device| job.forecast(device.info(), 1).is_some();
        let able: Vec<_> = self.iter().filter(able).collect();
        let count = places.len().div_ceil(able.len().max(1));
        let measured = |device: &&Device| {
            job.forecast(device.info(), count).map_or(0.0, |forecast| {
                device.pace(forecast.key) / forecast.milliseconds
            })
        };
        let fastest = able.iter().map(measured).fold(0.0, f64::max);
        let speed = |device: &&Device| match measured(device) {
            speed if speed > ALIKE * fastest => fastest,
            speed => speed,
        };
        run_with(job, &able, speed, places)
    }

    /// Runs a job on one of the devices alone, which must have a kernel for it.
    pub(crate) fn run_on<P: Send, J: Job<P>>(
        &self,
        device: &Device,
        job: &J,
        places: &mut [P],
    ) -> Result<Timing, Error> {
        self.check()?;
        run_with(job, &[device], |_| 1.0, Places::Made(places))
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

/// Runs a job on these devices, each with a share by its speed.
fn run_with<P: Send, J: Job<P>>(
    job: &J,
    devices: &[&Device],
    speed: impl Fn(&&Device) -> f64,
    places: Places<'_, P>,
) -> Result<Timing, Error> {
    let timings = run_on_all(devices, speed, places, |device, share| {
        run_share(job, device, &share)
    })?;
    let mut sum = Timing::default();
    timings.into_iter().for_each(|timing| sum += timing);
    Ok(sum)
}

/// Computes a share on one device.
fn run_share<P: Send, J: Job<P>>(
    job: &J,
    device: &Device,
    share: &Share<'_, '_, P>,
) -> Result<Timing, Error> {
    let call = device.call();
    let prepared = job.prepare(&call, share.len().saturating_mul(call.calls()))?;
    let mut slots = call.slots(slots_for(share.len().div_ceil(prepared.chunk.max(1))));
    let started = Instant::now();
    let (timing, count) = send_through(job, &call, &mut slots, &prepared, share)?;
    // A share of few chunks says more about the host than about the device's speed, one with company about that.
    let is_long = count >= 2 * prepared.resident && count >= 2 * prepared.chunk;
    if let (true, Some(forecast)) = (
        is_long && slots.is_alone(),
        job.forecast(device.info(), count),
    ) {
        let milliseconds = started.elapsed().as_secs_f64().max(1e-9) * 1e3;
        device.set_pace(forecast.key, forecast.milliseconds / milliseconds);
    }
    Ok(timing)
}

/// Slots for so many chunks: one if there is but one, else as many for each of two threads.
fn slots_for(chunks: usize) -> usize {
    match chunks {
        0 | 1 => 1,
        _ => chunks.next_multiple_of(2).min(SLOTS_OF_CALL),
    }
}

/// How a thread waits for its device.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    /// Whether it is of no use any more, because another has failed.
    is_stopped: &'a AtomicBool,
    /// Whether it sleeps meanwhile. Where there are many chunks or other calls, the host's other threads can do with its processor, and
    /// some microseconds do not matter.
    sleeps: bool,
}

/// A chunk that a device works on.
struct UnderWay<'p, C, P> {
    kept: C,
    piece: Piece<'p, P>,
}

/// Sends the chunks of a share through the slots. Returns how many instances there were, too.
///
/// Where there are several chunks, two threads do that, each with half of the slots: while one fills or empties a slot
/// of its own, with the help of the host's other threads, the other does the same, and neither waits for the other. If the device is lost, what was under way goes back to the share.
fn send_through<P: Send, J: Job<P>>(
    job: &J,
    call: &Call<'_>,
    in_use: &mut SlotsInUse<'_>,
    prepared: &Prepared<J::Share>,
    share: &Share<'_, '_, P>,
) -> Result<(Timing, usize), Error> {
    call.device().check_lost()?;
    let is_stopped = AtomicBool::new(false);
    let has_many = share.len() > prepared.chunk;
    let waiting = Waiting {
        is_stopped: &is_stopped,
        sleeps: has_many || call.calls() > 1,
    };
    let drive = |slots: &mut [Slot]| {
        Slot::share_chain(slots);
        through(job, slots, prepared, share, waiting)
    };
    let slots = in_use.slots();
    let result = match has_many {
        false => drive(slots),
        true => {
            let (first, second) = slots.split_at_mut(slots.len().div_ceil(2));
            let driver = call.second_driver();
            match driver.run_both(|| drive(first), || drive(second)) {
                (this, None) => this,
                (this, Some(other)) => this.and_then(|(mut timing, count)| {
                    let (other_timing, other_count) = other?;
                    timing += other_timing;
                    Ok((timing, count + other_count))
                }),
            }
        }
    };
    let is_full = matches!(
        result,
        Err(Stop::Device(DriverError(
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        )))
    );
    in_use.slots().iter_mut().for_each(Slot::abandon);
    if is_full {
        in_use.release();
    }
    result.map_err(|stop| match stop {
        Stop::Device(error) => call.device().fault(error),
        Stop::Batch(error) => error,
    })
}

/// Sends chunks through some slots in turn, until there are no more, or somebody has stopped: while the device
/// computes some, the host fills another or takes its results.
fn through<P, J: Job<P>>(
    job: &J,
    slots: &mut [Slot],
    prepared: &Prepared<J::Share>,
    share: &Share<'_, '_, P>,
    waiting: Waiting<'_>,
) -> Result<(Timing, usize), Stop> {
    let mut under_way: Vec<_> = slots.iter().map(|_| None).collect();
    let result = in_turn(job, slots, prepared, share, waiting, &mut under_way);
    if result.is_err() {
        waiting.is_stopped.store(true, Ordering::Relaxed);
        let under_way = under_way.into_iter().flatten();
        under_way.for_each(|chunk| share.give_back(chunk.piece));
    }
    result
}

fn in_turn<'p, P, J: Job<P>>(
    job: &J,
    slots: &mut [Slot],
    prepared: &Prepared<J::Share>,
    share: &Share<'_, 'p, P>,
    waiting: Waiting<'_>,
    under_way: &mut [Option<UnderWay<'p, J::Chunk, P>>],
) -> Result<(Timing, usize), Stop> {
    let (mut timing, mut count) = (Timing::default(), 0);
    let mut has_ended = false;
    for turn in (0..slots.len()).cycle() {
        let slot = &mut slots[turn];
        let mut finished = None;
        if let Some(UnderWay { kept, piece }) = under_way[turn].take() {
            match slot.finish(waiting.sleeps) {
                Ok((results, kernel)) => {
                    timing += Timing {
                        kernel,
                        launches: 1,
                    };
                    finished = Some((results, kept, piece));
                }
                Err(error) => {
                    share.give_back(piece);
                    return Err(error.into());
                }
            }
        }
        // The next chunk first: the device waits for that, and nobody for the results.
        let sent = match has_ended || waiting.is_stopped.load(Ordering::Relaxed) {
            false => send_next(job, slot, prepared, share, &mut under_way[turn]),
            true => Ok(false),
        };
        if let Some((mut results, kept, mut piece)) = finished {
            let range = piece.range.clone();
            count += range.len();
            let places = share.places(&mut piece);
            results.take(|output| job.take(kept, &range, output, places));
            slot.bring_back(results);
        }
        if !sent? {
            has_ended = true;
            if under_way.iter().all(Option::is_none) {
                break;
            }
            // While the device computes the last ones.
            slots[turn].clear_device()?;
            slots.iter_mut().try_for_each(Slot::wipe_input)?;
        }
    }
    slots.iter_mut().try_for_each(Slot::settle)?;
    Ok((timing, count))
}

/// Sends the next chunk through a slot that is free, if there is one.
fn send_next<'p, P, J: Job<P>>(
    job: &J,
    slot: &mut Slot,
    prepared: &Prepared<J::Share>,
    share: &Share<'_, 'p, P>,
    under_way: &mut Option<UnderWay<'p, J::Chunk, P>>,
) -> Result<bool, Stop> {
    let Some(piece) = share.next(prepared.chunk, prepared.per_block) else {
        return Ok(false);
    };
    match job.submit(&prepared.share, &piece.range, slot) {
        Ok(kept) => *under_way = Some(UnderWay { kept, piece }),
        Err(stop) => {
            share.give_back(piece);
            return Err(stop);
        }
    }
    // At once, if this is the last one, while the host takes what it has made.
    if share.is_taken() {
        slot.clear_device()?;
    }
    Ok(true)
}
