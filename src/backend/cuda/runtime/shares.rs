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

/// A taker of shares of a batch.
pub(super) trait Worker: Sync {
    /// An error if the worker is lost. A lost worker gets no more shares.
    fn check(&self) -> Result<(), Error>;
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
        let Self {
            most,
            least,
            per_block,
        } = self;
        let count = len.div_ceil(most.max(1)).max(1);
        let even = len.div_ceil(count).next_multiple_of(per_block);
        let least = least.min(most).next_multiple_of(per_block);
        even.max(least).min(len)
    }
}

/// Consecutive instances of a batch that have yet to be computed, and the places for their results.
pub(super) struct Piece<O> {
    pub(super) range: Range<usize>,
    pub(super) output: O,
}

impl<O: Destination> Piece<O> {
    /// The first `len` instances, and the rest.
    fn split_at(self, len: usize) -> (Self, Self) {
        let Self { range, output } = self;
        let (head, tail) = output.split_at(len);
        let middle = range.start + len;
        let piece = |range, output| Piece { range, output };
        (
            piece(range.start..middle, head),
            piece(middle..range.end, tail),
        )
    }
}

/// The remaining instances of a batch.
struct Queue<O> {
    /// For each worker the pieces of its share, last first.
    pieces: Mutex<Vec<Vec<Piece<O>>>>,
}

impl<O: Destination> Queue<O> {
    fn new(output: O) -> Self {
        let range = 0..output.len();
        Self {
            pieces: Mutex::new(Vec::from([Vec::from([Piece { range, output }])])),
        }
    }

    /// Distributes all remaining instances again. Returns each worker with a share, and its length.
    fn distribute(&self, speeds: &[f64]) -> Vec<(usize, usize)> {
        let mut workers = lock(&self.pieces);
        let mut pieces: Vec<_> = workers.drain(..).flatten().collect();
        pieces.sort_unstable_by_key(|piece| piece.range.start);
        workers.resize_with(speeds.len(), Vec::new);
        for mut piece in pieces {
            for (worker, share) in shares(piece.range.clone(), speeds, GRANULARITY) {
                let (head, tail) = piece.split_at(share.len());
                workers[worker].insert(0, head);
                piece = tail;
            }
        }
        let lens = workers.iter().map(|pieces| left(pieces)).enumerate();
        lens.filter(|(_, len)| *len > 0).collect()
    }

    fn is_empty(&self) -> bool {
        lock(&self.pieces).iter().all(Vec::is_empty)
    }

    fn clear(&self) {
        lock(&self.pieces).iter_mut().for_each(Vec::clear);
    }
}

/// The number of instances in some pieces.
fn left<O>(pieces: &[Piece<O>]) -> usize {
    pieces.iter().map(|piece| piece.range.len()).sum()
}

/// A worker's access to the batch.
pub(super) struct Share<'q, O> {
    queue: &'q Queue<O>,
    worker: usize,
    /// The initial number of instances in the share.
    len: usize,
}

impl<O: Destination> Share<'_, O> {
    /// The approximate number of instances for this worker.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes the next chunk. `None` if there is none.
    pub(super) fn next(&self, lens: ChunkLens) -> Option<Piece<O>> {
        let mut workers = lock(&self.queue.pieces);
        if let Some(piece) = workers[self.worker].pop() {
            let len = lens.first_of(piece.range.len());
            let (head, tail) = piece.split_at(len);
            if !tail.range.is_empty() {
                workers[self.worker].push(tail);
            }
            return Some(head);
        }
        let slowest = workers.iter_mut().max_by_key(|pieces| left(pieces))?;
        // The piece that its owner would take last.
        let piece = (!slowest.is_empty()).then(|| slowest.remove(0))?;
        let half = piece.range.len().div_ceil(2);
        let half = half.next_multiple_of(lens.per_block);
        let len = half.min(lens.most.max(1)).min(piece.range.len());
        let start = piece.range.len() - len;
        let (head, tail) = piece.split_at(start);
        if !head.range.is_empty() {
            slowest.insert(0, head);
        }
        Some(tail)
    }

    /// Whether no share has instances left.
    pub(super) fn is_taken(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns a piece that the worker could not finish.
    pub(super) fn give_back(&self, piece: Piece<O>) {
        lock(&self.queue.pieces)[self.worker].push(piece);
    }
}

/// Runs `work` for each worker, on a thread of its own, with a share in proportion to `speed`.
/// Workers with speed 0 get no share.
///
/// If a worker is lost, or has no thread, the others take the pieces that it returned or had not
/// taken. Any other error, or the loss of the last worker, ends the batch once all have ended.
pub(super) fn run_on_all<W: Worker, O: Destination, R: Send, E: From<Error> + Send>(
    workers: &[W],
    speed: impl Fn(&W) -> f64,
    output: O,
    work: impl Fn(&W, Share<'_, O>) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let queue = Queue::new(output);
    let mut results = Vec::new();
    while !queue.is_empty() {
        let usable: Vec<&W> = workers.iter().filter(|w| w.check().is_ok()).collect();
        if usable.is_empty() {
            workers.iter().try_for_each(Worker::check)?;
        }
        let speeds: Vec<f64> = usable.iter().map(|worker| speed(worker)).collect();
        let busy = queue.distribute(&speeds);
        if busy.is_empty() {
            break;
        }
        let done = on_each(&busy, |&(worker, len)| {
            let queue = &queue;
            let share = Share { queue, worker, len };
            let result = work(usable[worker], share);
            // Asked once: the worker may be lost later, by another batch.
            let is_lost = result.is_err() && usable[worker].check().is_err();
            if result.is_err() && !is_lost {
                // Stop the other workers.
                queue.clear();
            }
            (is_lost, result)
        });
        if done.is_empty() {
            return Err(Error::ThreadPool { threads: 1 }.into());
        }
        for (is_lost, result) in done {
            match result {
                Ok(result) => results.push(result),
                Err(_) if is_lost => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(results)
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

/// Splits `range` into one part for each worker, in proportion to its speed, in whole blocks.
/// Workers with an empty part are left out.
fn shares(range: Range<usize>, speeds: &[f64], granularity: usize) -> Vec<(usize, Range<usize>)> {
    let total: f64 = speeds.iter().sum();
    let Some(last) = speeds.iter().rposition(|&speed| speed > 0.0) else {
        panic!("no worker has any speed");
    };
    let len = range.len();
    let mut shares = Vec::new();
    let (mut start, mut sum) = (0, 0.0);
    for (worker, speed) in speeds.iter().enumerate().take(last + 1) {
        sum += speed;
        let end = (len as f64 * sum / total) as usize;
        let end = end.next_multiple_of(granularity).min(len);
        let end = if worker == last { len } else { end };
        if start < end && *speed > 0.0 {
            shares.push((worker, range.start + start..range.start + end));
            start = end;
        }
    }
    shares
}

#[cfg(test)]
mod tests;
