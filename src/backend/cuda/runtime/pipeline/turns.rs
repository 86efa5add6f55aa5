//! Passes the chunks of a share through the slots of a device in turn.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::super::device::{Device, SLOTS_OF_CALL};
use super::super::shares::{Piece, Share};
use super::super::slot::Slot;
use super::{ChunkLens, Destination, Job, Stop};

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
    let is_full = matches!(
        result,
        Err(Stop::Device(DriverError(
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        )))
    );
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
    prepared: &'a J::Share,
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
