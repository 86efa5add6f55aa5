//! When a batch begins, and how large it is.

use core::time::Duration;

/// See [`QueueBuilder`](super::QueueBuilder).
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The most requests that wait.
    pub(super) capacity: usize,
    /// With fewer an idle backend waits.
    pub(super) min_batch: usize,
    /// The most requests of a batch.
    pub(super) max_batch: usize,
    /// How long the oldest request waits for others.
    pub(super) max_wait: Duration,
    /// How batches share the backend.
    pub(super) sharing: Sharing,
}

/// How batches share the backend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sharing {
    /// A batch takes the whole backend; another one beside it does not make it idle.
    Whole,
    /// A batch takes one of so many threads, whose lanes are filled by so many requests.
    Threads { count: usize, lanes: usize },
}

/// A thread's rate hardly rises with longer batches, and its requests wait for all of them.
const MOST_FOR_A_THREAD: usize = 64;

/// The most requests that a caller takes instead of a worker where the backend is shared by whole batches: it is to be back soon after its own
/// answer, and not to wake hundreds of others.
const MOST_FOR_A_CALLER: usize = 8;

impl Policy {
    /// For how much longer to wait for more than the `waiting` requests, of which the oldest came `age` ago, while
    /// `under_way` batches are being computed; zero to begin now, `None` until one of those is done.
    pub(super) fn remaining_wait(
        &self,
        waiting: usize,
        age: Duration,
        under_way: usize,
    ) -> Option<Duration> {
        let enough = match self.sharing {
            _ if self.is_idle(under_way) => self.min_batch,
            Sharing::Whole => self.max_batch,
            // A thread more would take its time from the others.
            Sharing::Threads { .. } => return None,
        };
        // Where no more can come, there is nothing to wait for.
        if waiting >= enough.min(self.max_batch).min(self.capacity) {
            return Some(Duration::ZERO);
        }
        Some(self.max_wait.saturating_sub(age))
    }

    /// Whether the backend, or a thread of it, has nothing to do.
    pub(super) fn is_idle(&self, under_way: usize) -> bool {
        match self.sharing {
            Sharing::Whole => under_way == 0,
            Sharing::Threads { count, .. } => under_way < count,
        }
    }

    /// How many of the `waiting` requests a worker takes while `under_way` batches are being computed.
    pub(super) fn share(&self, waiting: usize, under_way: usize) -> usize {
        let share = match self.sharing {
            Sharing::Whole => usize::MAX,
            Sharing::Threads { count, lanes } => {
                // The last thread fills its lanes: none is left that would be sooner done with some of them.
                let least = if under_way + 1 < count { 1 } else { lanes };
                waiting.div_ceil(count).max(least).min(MOST_FOR_A_THREAD)
            }
        };
        share.min(self.max_batch)
    }

    /// The same for a caller that computes for itself and for some others; `None` if it has to wait for a worker.
    pub(super) fn caller_share(&self, waiting: usize, under_way: usize) -> Option<usize> {
        let may_begin = self.is_idle(under_way) && waiting >= self.min_batch.min(self.capacity);
        let share = self.share(waiting, under_way);
        match self.sharing {
            Sharing::Whole => {
                (may_begin && waiting <= share.min(MOST_FOR_A_CALLER)).then_some(waiting)
            }
            Sharing::Threads { .. } => may_begin.then_some(share),
        }
    }
}
