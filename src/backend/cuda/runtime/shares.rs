//! Distributes a batch over devices, and redistributes the work of slow or lost ones.
//!
//! Each device has a share in proportion to its speed, from which it takes a chunk at a time. A
//! device that has finished its share takes chunks from the largest one left. The chunks of a lost
//! device go to the others.

use alloc::vec::Vec;
use core::ops::Range;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread::{self, ScopedJoinHandle};

use batch_modexp_core::Error;

use super::lock;

/// The granularity of shares in instances, about a block.
const GRANULARITY: usize = 256;

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

/// The lengths of the chunks of a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLens {
    /// The maximum number of instances, before rounding up to whole blocks.
    pub(crate) most: usize,
    /// The minimum number of instances in all chunks except the last, which has the rest. With 0,
    /// all have about the same length. A short last chunk leaves less work for the host after it.
    pub(crate) least: usize,
    /// The number of instances of a block; lengths are multiples of it.
    pub(crate) per_block: usize,
}

impl ChunkLens {
    /// Chunks of half of the instances that a device computes at a time. Two chunks are then
    /// computed side by side, with less host work before the first starts and after the last ends.
    pub(crate) fn halves(resident: usize, per_block: usize) -> Self {
        Self {
            most: resident.div_ceil(2).next_multiple_of(per_block),
            least: 0,
            per_block,
        }
    }

    /// The length of the first chunk of a share of `len` instances, split into as few chunks as
    /// possible.
    fn first_of(self, len: usize) -> usize {
        let count = len.div_ceil(self.most.max(1)).max(1);
        let even = len.div_ceil(count).next_multiple_of(self.per_block);
        let least = self.least.min(self.most).next_multiple_of(self.per_block);
        even.max(least).min(len)
    }
}

/// Consecutive instances of a batch that have yet to be computed, and the places for their results.
pub(super) struct Piece<O> {
    pub(super) range: Range<usize>,
    pub(super) output: O,
}

/// The instances of a batch that no worker has taken, and those that were returned.
struct Remaining<O> {
    /// In any order. The next one is the last.
    pieces: Vec<Piece<O>>,
    /// For each worker the number of instances in its share. The sum is that of the pieces.
    left: Vec<usize>,
}

/// A worker's access to the batch.
pub(super) struct Share<'q, O> {
    remaining: &'q Mutex<Remaining<O>>,
    worker: usize,
    /// The initial number of instances in the share.
    pub(super) len: usize,
}

impl<O: Destination> Share<'_, O> {
    /// Takes the next chunk: of the worker's share, or else half of the largest share. `None` if
    /// there is none.
    pub(super) fn next(&self, lens: ChunkLens) -> Option<Piece<O>> {
        let mut remaining = lock(self.remaining);
        let Remaining { pieces, left } = &mut *remaining;
        let (share, len) = match left[self.worker] {
            0 => {
                let (share, &len) = left.iter().enumerate().max_by_key(|(_, len)| **len)?;
                let half = len.div_ceil(2).next_multiple_of(lens.per_block);
                (share, half.min(lens.most.max(1)))
            }
            len => (self.worker, lens.first_of(len)),
        };
        let Piece { range, output } = pieces.pop()?;
        let len = len.min(left[share]).min(range.len());
        left[share] -= len;
        let (head, tail) = output.split_at(len);
        let middle = range.start + len;
        let piece = |range, output| Piece { range, output };
        if middle < range.end {
            pieces.push(piece(middle..range.end, tail));
        }
        Some(piece(range.start..middle, head))
    }

    /// Whether no share has instances left.
    pub(super) fn is_taken(&self) -> bool {
        lock(self.remaining).pieces.is_empty()
    }

    /// Returns a piece that the worker could not finish.
    pub(super) fn give_back(&self, piece: Piece<O>) {
        let mut remaining = lock(self.remaining);
        remaining.left[self.worker] += piece.range.len();
        remaining.pieces.push(piece);
    }
}

/// Runs `work` for each worker, on a thread of its own, with a share in proportion to `speed`.
/// Workers with speed 0 get no share, nor do lost ones, for which `check` returns an error.
///
/// If a worker is lost, or has no thread, the others take the pieces that it returned or had not
/// taken. Any other error, or the loss of the last worker, ends the batch once all have ended.
pub(super) fn run_on_all<W: Sync, O: Destination, E: From<Error> + Send>(
    workers: &[W],
    check: impl Fn(&W) -> Result<(), Error> + Sync,
    speed: impl Fn(&W) -> f64,
    output: O,
    work: impl Fn(&W, &Share<'_, O>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let mut len = output.len();
    let range = 0..len;
    let remaining = Mutex::new(Remaining {
        pieces: Vec::from([Piece { range, output }]),
        left: Vec::new(),
    });
    while len > 0 {
        let usable: Vec<&W> = workers.iter().filter(|w| check(w).is_ok()).collect();
        if usable.is_empty() {
            workers.iter().try_for_each(&check)?;
        }
        let speeds: Vec<f64> = usable.iter().map(|worker| speed(worker)).collect();
        let left = shares(len, &speeds, GRANULARITY);
        lock(&remaining).left.clone_from(&left);
        let busy = left.into_iter().enumerate().filter(|(_, len)| *len > 0);
        let done = on_each(&busy.collect::<Vec<_>>(), |&(worker, len)| {
            let remaining = &remaining;
            let share = Share {
                remaining,
                worker,
                len,
            };
            let result = work(usable[worker], &share);
            if result.is_err() && check(usable[worker]).is_err() {
                // The others take over, or the next round.
                return Ok(());
            }
            if result.is_err() {
                // Stop the other workers.
                let mut remaining = lock(remaining);
                remaining.pieces.clear();
                remaining.left.fill(0);
            }
            result
        });
        if done.is_empty() {
            return Err(Error::ThreadPool { threads: 1 }.into());
        }
        done.into_iter().collect::<Result<(), E>>()?;
        let pieces = &lock(&remaining).pieces;
        len = pieces.iter().map(|piece| piece.range.len()).sum();
    }
    Ok(())
}

/// Runs `work` for each item, on a thread of its own, except for items whose thread the operating
/// system refuses.
///
/// A single item runs on the calling thread, unless that belongs to a pool. While a pool's thread
/// waits for copies, it takes other work, which may wait for the device that this thread holds.
fn on_each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if let ([item], None) = (items, rayon::current_thread_index()) {
        return Vec::from([work(item)]);
    }
    let work = &work;
    thread::scope(|scope| {
        let start = |item| {
            let thread = thread::Builder::new();
            thread.spawn_scoped(scope, move || work(item)).ok()
        };
        let threads: Vec<_> = items.iter().filter_map(start).collect();
        let results = threads.into_iter().map(ScopedJoinHandle::join);
        let unwound =
            |result: thread::Result<R>| result.unwrap_or_else(|panic| resume_unwind(panic));
        results.map(unwound).collect()
    })
}

/// Splits `len` instances into one share for each worker, in proportion to its speed, in whole
/// blocks.
fn shares(len: usize, speeds: &[f64], granularity: usize) -> Vec<usize> {
    let total: f64 = speeds.iter().sum();
    let last = speeds.iter().rposition(|&speed| speed > 0.0);
    let last = last.expect("a worker has some speed");
    let (mut start, mut sum) = (0, 0.0);
    let share = |(worker, &speed): (usize, &f64)| {
        sum += speed;
        let end = match worker < last {
            true => ((len as f64 * sum / total) as usize).next_multiple_of(granularity),
            false => len,
        };
        // A worker without speed has no instances even if rounding would give it some.
        let share = end.min(len).saturating_sub(start) * usize::from(speed > 0.0);
        start += share;
        share
    };
    speeds.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests;
