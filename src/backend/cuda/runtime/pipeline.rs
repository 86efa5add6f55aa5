//! The pipeline of a batch: devices take chunks from what remains of it, which take turns in slots.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use batch_modexp_core::Error;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::device::{Call, Device, Devices, with_times};
use super::lock;
use super::probe::DeviceInfo;
use super::slot::Slot;

/// Work that devices compute in chunks. The results go to an `O`.
pub(crate) trait Job<O>: Sync {
    /// State that all chunks on a device have in common.
    type Prepared: Sync;
    /// State of a chunk that is under way.
    type Chunk;
    /// Errors that end a call early: those of devices, and those of the maker of the inputs.
    type Error: From<Error> + Send;

    /// Whether a chunk has several launches.
    const HAS_SEVERAL_LAUNCHES: bool = false;

    /// The estimated time for `count` instances on the device, in milliseconds. An instance has one
    /// result: in a CRT batch it is an item. `None` if the device has no kernel for this job.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64>;

    /// Prepares the device of the call for any instances of the batch, and says how long its chunks
    /// are, from [`chunk_len`].
    ///
    /// The device is expected to compute about `share` instances of the batch, and as many for each
    /// other call under way.
    fn prepare(
        &self,
        call: &Call<'_>,
        share: usize,
    ) -> Result<(Self::Prepared, usize), Self::Error>;

    /// Submits a chunk. While its inputs are made it holds `submitting`, one for each call on a
    /// device: two chunks at a time would both be late.
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

/// The length of the chunks of `share` instances: whole blocks, for as few chunks as possible of at
/// most `most`, rounded up to whole blocks. They are about equally long.
pub(crate) fn chunk_len(share: usize, most: usize, per_block: usize) -> usize {
    let most = most.next_multiple_of(per_block).max(1);
    let count = share.div_ceil(most).max(1);
    let even = share.div_ceil(count).next_multiple_of(per_block);
    even.min(share).max(1)
}

/// The places for the results of a batch, which can be split like a slice.
pub(crate) trait Destination: Send + Sized {
    /// The number of instances.
    fn len(&self) -> usize;

    /// The places of the first `middle` instances, and the rest.
    fn split_at(self, middle: usize) -> (Self, Self);
}

impl<P: Send> Destination for &mut [P] {
    fn len(&self) -> usize {
        <[P]>::len(self)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        self.split_at_mut(middle)
    }
}

/// Consecutive instances of a batch that have yet to be computed, and the places for their results.
struct Piece<O> {
    range: Range<usize>,
    output: O,
}

/// The instances of a batch that no device has taken, and those that lost devices have given back.
/// In any order; the next piece is the last.
struct Remaining<O>(Mutex<Vec<Piece<O>>>);

impl<O: Destination> Remaining<O> {
    fn all(output: O) -> Self {
        let range = 0..output.len();
        Self(Mutex::new(Vec::from([Piece { range, output }])))
    }

    /// The number of instances.
    fn count(&self) -> usize {
        let pieces = lock(&self.0);
        pieces.iter().map(|piece| piece.range.len()).sum()
    }

    /// Takes the next chunk, of at most `len` instances. `None` if nothing remains.
    fn next(&self, len: usize) -> Option<Piece<O>> {
        let mut pieces = lock(&self.0);
        let Piece { range, output } = pieces.pop()?;
        let len = len.min(range.len());
        let (head, tail) = output.split_at(len);
        let middle = range.start + len;
        let piece = |range, output| Piece { range, output };
        if middle < range.end {
            pieces.push(piece(middle..range.end, tail));
        }
        Some(piece(range.start..middle, head))
    }

    fn give_back(&self, piece: Piece<O>) {
        lock(&self.0).push(piece);
    }
}

/// The least share of a device, unless it is the fastest one. Others compute as many instances in
/// about the time of one.
const LEAST_SHARE: usize = 256;

impl Devices {
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

    /// Runs a job on these devices, all with a kernel for it, and with their times for the same
    /// number of instances.
    ///
    /// If a device is lost, or has no thread, the others compute what it had not finished. Any other
    /// error, or the loss of the last device, ends the batch once all have ended.
    pub(crate) fn run_on<O: Destination, J: Job<O>>(
        &self,
        devices: &[(&Device, f64)],
        job: &J,
        output: O,
    ) -> Result<(), J::Error> {
        self.check()?;
        let (check, all) = (
            |device: &&Device| device.check_lost(),
            Remaining::all(output),
        );
        on_all(devices, check, &all, |device, share, remaining| {
            pass_chunks(job, device, share, remaining)
        })
    }
}

/// Runs `work` for each worker on a thread of its own, with the number of instances that it is
/// expected to compute, in inverse proportion to its time, and with all that remain. Lost workers,
/// for which `check` returns an error, are left out.
///
/// For errors see [`Devices::run_on`].
fn on_all<W: Sync, O: Destination, E: From<Error> + Send>(
    workers: &[(W, f64)],
    check: impl Fn(&W) -> Result<(), Error> + Sync,
    remaining: &Remaining<O>,
    work: impl Fn(&W, usize, &Remaining<O>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    loop {
        let count = remaining.count();
        if count == 0 {
            return Ok(());
        }
        let mut usable: Vec<_> = workers.iter().filter(|(w, _)| check(w).is_ok()).collect();
        if usable.is_empty() {
            workers.iter().try_for_each(|(worker, _)| check(worker))?;
        }
        usable.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let share = |all: &[&(W, f64)], time: f64| {
            let speed: f64 = all.iter().map(|(_, time)| 1.0 / time).sum();
            ((count as f64 / time / speed).ceil() as usize).min(count)
        };
        while usable.len() > 1 && share(&usable, usable[usable.len() - 1].1) < LEAST_SHARE {
            usable.pop();
        }
        let shares = usable.iter().map(|(w, time)| (w, share(&usable, *time)));
        let done = on_each(shares.collect(), |(worker, share)| {
            let result = work(worker, share, remaining);
            if result.is_err() && check(worker).is_err() {
                // The others take over, or the next round.
                return Ok(());
            }
            // Leave nothing to the others.
            result.inspect_err(|_| lock(&remaining.0).clear())
        });
        if done.is_empty() {
            return Err(Error::ThreadPool { threads: 1 }.into());
        }
        done.into_iter().collect::<Result<(), E>>()?;
    }
}

/// Runs `work` for each item, on threads of their own, except for items whose thread the operating
/// system refuses.
///
/// The first item runs on the calling thread, unless that belongs to a pool. While a pool's thread
/// waits for copies, it takes other work, which may wait for the device that this thread holds.
fn on_each<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (mut items, work) = (items.into_iter(), &work);
    let here = match rayon::current_thread_index() {
        None => items.next(),
        Some(_) => None,
    };
    thread::scope(|scope| {
        let start = |item| {
            let thread = thread::Builder::new();
            thread.spawn_scoped(scope, move || work(item)).ok()
        };
        let threads: Vec<_> = items.filter_map(start).collect();
        let mut results: Vec<_> = here.into_iter().map(work).collect();
        results.extend(threads.into_iter().map(|thread| {
            let result = thread.join();
            result.unwrap_or_else(|panic| resume_unwind(panic))
        }));
        results
    })
}

/// Passes chunks through a device until nothing remains. `share` as for [`Job::prepare`].
///
/// With several chunks, two threads do this, each with half of the slots. While one fills or
/// empties a slot, helped by the host's other threads, the other does the same, without waiting. If
/// the device is lost, the chunks under way are given back.
fn pass_chunks<O: Destination, J: Job<O>>(
    job: &J,
    device: &Device,
    share: usize,
    remaining: &Remaining<O>,
) -> Result<(), J::Error> {
    let call = device.call();
    let (prepared, chunk_len) = job.prepare(&call, share)?;
    let chunks = share.div_ceil(chunk_len);
    let has_many = chunks > 1;
    let mut in_use = call.slots(match has_many {
        false => 1,
        true => chunks.next_multiple_of(2),
    });
    device.check_lost()?;
    let passage = Passage {
        job,
        device,
        remaining,
        prepared: &prepared,
        chunk_len,
        submitting: Mutex::default(),
        is_stopped: AtomicBool::new(false),
        sleeps: has_many || call.calls > 1,
    };
    let half = in_use.slots.len().div_ceil(2);
    let halves = in_use.slots.chunks_mut(half).collect();
    let results = on_each(halves, |slots| passage.drive(slots)).into_iter();
    let result = results.collect::<Result<(), _>>();
    let full = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let is_full = matches!(&result, Err(Stop::Device(error)) if *error == full);
    if is_full {
        in_use.release();
    }
    result.map_err(|stop| match stop {
        Stop::Device(error) => device.fault(error).into(),
        Stop::Batch(error) => error,
    })
}

/// Chunks on their way through a device.
struct Passage<'a, O: Destination, J: Job<O>> {
    job: &'a J,
    device: &'a Device,
    remaining: &'a Remaining<O>,
    prepared: &'a J::Prepared,
    chunk_len: usize,
    /// See [`Job::submit`].
    submitting: Mutex<()>,
    /// Whether a thread has failed, so that the other one can stop.
    is_stopped: AtomicBool,
    /// Whether threads sleep while they wait for the device. With many chunks or other calls, the
    /// host's other threads can use the processor, and a delay of some microseconds does not matter.
    sleeps: bool,
}

impl<O: Destination, J: Job<O>> Passage<'_, O, J> {
    /// Passes chunks through some slots in turn, until none is left or a thread stops.
    fn drive(&self, slots: &mut [Slot]) -> Result<(), Stop<J::Error>> {
        Slot::set_streams(slots, J::HAS_SEVERAL_LAUNCHES);
        let mut under_way: Vec<_> = slots.iter().map(|_| None).collect();
        let result = self.in_turn(slots, &mut under_way);
        if result.is_err() {
            self.is_stopped.store(true, Ordering::Relaxed);
            let under_way = under_way.into_iter().flatten();
            under_way.for_each(|(_, piece)| self.remaining.give_back(piece));
        }
        result
    }

    /// While the device computes some chunks, the host fills another slot or takes its results.
    fn in_turn(
        &self,
        slots: &mut [Slot],
        under_way: &mut [Option<(J::Chunk, Piece<O>)>],
    ) -> Result<(), Stop<J::Error>> {
        let mut has_ended = false;
        for turn in (0..slots.len()).cycle() {
            let slot = &mut slots[turn];
            if let Some((kept, piece)) = under_way[turn].take() {
                match slot.finish(self.sleeps) {
                    Ok(kernel) => self.device.add_timing(kernel),
                    Err(error) => {
                        self.remaining.give_back(piece);
                        return Err(error.into());
                    }
                }
                let Piece { range, output } = piece;
                slot.take_results(|words| {
                    self.job.take(self.prepared, kept, &range, words, output);
                });
            }
            has_ended = has_ended
                || self.is_stopped.load(Ordering::Relaxed)
                || !self.send_next(slot, &mut under_way[turn])?;
            if has_ended {
                if under_way.iter().all(Option::is_none) {
                    break;
                }
                // Wipe while the device computes the last chunks.
                slots.iter_mut().try_for_each(Slot::wipe_input)?;
            }
        }
        Ok(slots.iter_mut().try_for_each(Slot::settle)?)
    }

    /// Submits the next chunk in a free slot, and puts what the job keeps of it in `under_way`.
    /// Returns whether there was one.
    fn send_next(
        &self,
        slot: &mut Slot,
        under_way: &mut Option<(J::Chunk, Piece<O>)>,
    ) -> Result<bool, Stop<J::Error>> {
        let Some(piece) = self.remaining.next(self.chunk_len) else {
            return Ok(false);
        };
        match self
            .job
            .submit(self.prepared, &piece.range, slot, &self.submitting)
        {
            Ok(kept) => {
                *under_way = Some((kept, piece));
                Ok(true)
            }
            Err(stop) => {
                self.remaining.give_back(piece);
                Err(stop)
            }
        }
    }
}

#[cfg(test)]
mod tests;
