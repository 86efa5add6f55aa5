//! Passes the chunks of a share through the slots of a device in turn.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::resume_unwind;
use std::thread;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use super::super::device::{Call, SlotsInUse};
use super::super::shares::{Piece, Share};
use super::super::slot::Slot;
use super::{Destination, Job, Prepared, Stop, Timing};

/// The way in which a thread waits for its device.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    /// Whether another thread has failed, so that this one can stop.
    is_stopped: &'a AtomicBool,
    /// Whether the thread sleeps while it waits. With many chunks or other calls, the host's other
    /// threads can use the processor, and a delay of some microseconds does not matter.
    sleeps: bool,
}

/// A chunk on a device.
struct UnderWay<C, O> {
    kept: C,
    piece: Piece<O>,
}

/// Passes the chunks of a share through the slots.
///
/// With several chunks, two threads do this, each with half of the slots. While one fills or
/// empties a slot, helped by the host's other threads, the other does the same, without waiting. If
/// the device is lost, the chunks under way return to the share.
pub(super) fn send_through<O: Destination, J: Job<O>>(
    job: &J,
    call: &Call<'_>,
    in_use: &mut SlotsInUse<'_>,
    prepared: &Prepared<J::Share>,
    share: &Share<'_, O>,
) -> Result<Timing, J::Error> {
    call.device().check_lost()?;
    let is_stopped = AtomicBool::new(false);
    let has_many = share.len() > prepared.chunks.most;
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
            thread::scope(|scope| {
                let other = thread::Builder::new().spawn_scoped(scope, || drive(second));
                let this = drive(first);
                // If the operating system refuses a thread, this one has passed all chunks.
                let Ok(other) = other else { return this };
                let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                let mut timing = this?;
                timing += other?;
                Ok(timing)
            })
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
        Stop::Device(error) => call.device().fault(error).into(),
        Stop::Batch(error) => error,
    })
}

/// Passes chunks through some slots in turn, until none is left or a thread stops. While the device
/// computes some, the host fills another slot or takes its results.
fn through<O: Destination, J: Job<O>>(
    job: &J,
    slots: &mut [Slot],
    prepared: &Prepared<J::Share>,
    share: &Share<'_, O>,
    waiting: Waiting<'_>,
) -> Result<Timing, Stop<J::Error>> {
    let mut under_way: Vec<_> = slots.iter().map(|_| None).collect();
    let result = in_turn(job, slots, prepared, share, waiting, &mut under_way);
    if result.is_err() {
        waiting.is_stopped.store(true, Ordering::Relaxed);
        let under_way = under_way.into_iter().flatten();
        under_way.for_each(|chunk| share.give_back(chunk.piece));
    }
    result
}

fn in_turn<O: Destination, J: Job<O>>(
    job: &J,
    slots: &mut [Slot],
    prepared: &Prepared<J::Share>,
    share: &Share<'_, O>,
    waiting: Waiting<'_>,
    under_way: &mut [Option<UnderWay<J::Chunk, O>>],
) -> Result<Timing, Stop<J::Error>> {
    let mut timing = Timing::default();
    let mut has_ended = false;
    for turn in (0..slots.len()).cycle() {
        let slot = &mut slots[turn];
        let mut finished = None;
        if let Some(UnderWay { kept, piece }) = under_way[turn].take() {
            match slot.finish(waiting.sleeps) {
                Ok((results, kernel)) => {
                    timing += Timing { kernel, chunks: 1 };
                    finished = Some((results, kept, piece));
                }
                Err(error) => {
                    share.give_back(piece);
                    return Err(error.into());
                }
            }
        }
        // Submit the next chunk before taking results: the device waits for the chunk.
        let sent = match has_ended || waiting.is_stopped.load(Ordering::Relaxed) {
            false => send_next(job, slot, prepared, share, &mut under_way[turn]),
            true => Ok(false),
        };
        if let Some((mut results, kept, Piece { range, output })) = finished {
            results.take(|words| job.take(kept, &range, words, output));
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
    slots.iter_mut().try_for_each(Slot::settle)?;
    Ok(timing)
}

/// Submits the next chunk in a free slot. Returns whether there was one.
fn send_next<O: Destination, J: Job<O>>(
    job: &J,
    slot: &mut Slot,
    prepared: &Prepared<J::Share>,
    share: &Share<'_, O>,
    under_way: &mut Option<UnderWay<J::Chunk, O>>,
) -> Result<bool, Stop<J::Error>> {
    let Some(piece) = share.next(prepared.chunks) else {
        return Ok(false);
    };
    match job.submit(&prepared.share, &piece.range, slot) {
        Ok(kept) => *under_way = Some(UnderWay { kept, piece }),
        Err(stop) => {
            share.give_back(piece);
            return Err(stop);
        }
    }
    // After the last chunk, queue the clearing at once, while the host takes results.
    if share.is_taken() {
        slot.clear_device()?;
    }
    Ok(true)
}
