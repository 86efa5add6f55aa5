//! How a batch is shared out among devices, and what becomes of the share of one that is lost.

use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

/// Shares of several workers are multiples of this many instances, about a block.
const GRANULARITY: usize = 256;

/// Who takes shares of a batch.
pub(super) trait Worker: Sync {
    type Error: Send;

    /// An error if the worker is lost: it is set aside then, and gets no share any more.
    fn check(&self) -> Result<(), Self::Error>;
}

/// Runs `work` on shares of a batch of `places.len()` instances, in proportion to `speed`, each on a thread of
/// its own with its part of `places`. Workers of no speed get no share.
///
/// The share of a worker that is lost on the way, whole, goes to those that are left. Any other error, and the
/// loss of the last worker, ends the batch when all shares have ended.
pub(super) fn run_on_all<W: Worker, P: Send, R: Send>(
    workers: &[W],
    speed: impl Fn(&W) -> f64,
    places: &mut [P],
    work: impl Fn(&W, Range<usize>, &mut [P]) -> Result<R, W::Error> + Sync,
) -> Result<Vec<R>, W::Error> {
    let mut open: Vec<_> = iter::once(0..places.len()).collect();
    let mut results = Vec::new();
    while !open.is_empty() {
        let usable: Vec<&W> = workers.iter().filter(|w| w.check().is_ok()).collect();
        if usable.is_empty() {
            workers.iter().try_for_each(Worker::check)?;
        }
        let speeds: Vec<f64> = usable.iter().map(|worker| speed(worker)).collect();
        let shares: Vec<_> = open
            .drain(..)
            .flat_map(|range| shares(range, &speeds, GRANULARITY))
            .collect();
        let done = on_each(shares.clone(), places, |worker, share, places| {
            work(usable[worker], share, places)
        });
        for ((worker, share), result) in shares.into_iter().zip(done) {
            match result {
                Ok(result) => results.push(result),
                Err(_) if usable[worker].check().is_err() => open.push(share),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(results)
}

/// Runs `work` for each share with its part of `places`, each on a thread of its own. Shares ascend.
///
/// A single share has the calling thread, unless that belongs to a pool, which gives it other work while
/// it waits for the copies: that work may come back here and wait for the device that this thread holds.
fn on_each<P: Send, R: Send>(
    shares: Vec<(usize, Range<usize>)>,
    places: &mut [P],
    work: impl Fn(usize, Range<usize>, &mut [P]) -> R + Sync,
) -> Vec<R> {
    if let ([(worker, share)], None) = (shares.as_slice(), rayon::current_thread_index()) {
        return Vec::from([work(*worker, share.clone(), &mut places[share.clone()])]);
    }
    let (mut rest, mut start, work) = (places, 0, &work);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (worker, share) in shares {
            let (_, from_here) = rest.split_at_mut(share.start - start);
            let (places, others) = from_here.split_at_mut(share.len());
            (rest, start) = (others, share.end);
            threads.push(scope.spawn(move || work(worker, share, places)));
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, R>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// A part of `range` for each worker, in proportion to its speed, in whole blocks. Workers whose part is empty
/// are left out.
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

/// Cuts a share into chunks of at most `most` instances, or somewhat more to make them whole blocks, all
/// about equally long.
pub(super) fn cut(share: &Range<usize>, most: usize, per_block: usize) -> Vec<Range<usize>> {
    let count = share.len().div_ceil(most.max(1)).max(1);
    let len = share.len().div_ceil(count).next_multiple_of(per_block);
    let starts = share.clone().step_by(len.max(1));
    starts
        .map(|start| start..(start + len).min(share.end))
        .collect()
}

#[cfg(test)]
mod tests;
