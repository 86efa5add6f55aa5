//! When a batch begins, and how large it is.

use core::time::Duration;

use super::turns::Work;

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

/// A class of requests that wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// The work of each.
    pub(super) work: Work,
    /// How many there are.
    pub(super) waiting: usize,
    /// The number of classes that wait, this one included.
    pub(super) classes: usize,
}

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

    /// How many requests a worker takes of the class whose turn it is, while `under_way` batches are being computed.
    pub(super) fn share(&self, class: Class, under_way: usize) -> usize {
        let share = match self.sharing {
            Sharing::Whole => usize::MAX,
            Sharing::Threads { count, lanes } => {
                // As many threads as there are for each class share out what waits of it.
                let threads = count.div_ceil(class.classes.max(1));
                // The last thread fills its lanes: none is left that would be sooner done with some of them.
                let least = if under_way + 1 < count { 1 } else { lanes };
                let share = class.waiting.div_ceil(threads).max(least);
                share.min(class.work.most_of_a_thread(lanes))
            }
        };
        share.min(self.max_batch)
    }

    /// Whether a caller may compute for itself and for some others, of the `waiting` requests in all.
    pub(super) fn may_lead(&self, waiting: usize, under_way: usize) -> bool {
        self.is_idle(under_way) && waiting >= self.min_batch.min(self.capacity)
    }

    /// How many requests such a caller takes if it is the turn of its class; `None` if it has to wait for a worker.
    pub(super) fn caller_share(&self, class: Class, under_way: usize) -> Option<usize> {
        let share = self.share(class, under_way);
        match self.sharing {
            Sharing::Whole => {
                let most = share.min(MOST_FOR_A_CALLER);
                (class.waiting <= most).then_some(class.waiting)
            }
            // With its own request it takes the oldest, so that callers who come again and again pass nobody over.
            Sharing::Threads { lanes, .. } => {
                let most = class.work.most_of_a_thread(lanes).min(self.max_batch);
                Some(share.max(class.waiting.min(2)).min(most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(sharing: Sharing) -> Policy {
        Policy {
            capacity: 1000,
            min_batch: 1,
            max_batch: 100,
            max_wait: Duration::from_millis(1),
            sharing,
        }
    }

    /// Of requests with keys of so many bits.
    fn class(bits: u32, waiting: usize, classes: usize) -> Class {
        let work = Work::of_request(bits, true);
        Class {
            work,
            waiting,
            classes,
        }
    }

    #[test]
    fn threads_share_out_what_waits() {
        let policy = policy(Sharing::Threads { count: 4, lanes: 2 });
        let share = |class, under_way| policy.share(class, under_way);
        let alone = |waiting, under_way| share(class(2048, waiting, 1), under_way);
        assert_eq!([1, 4, 5, 12, 1000].map(|n| alone(n, 0)), [1, 1, 2, 3, 64]);
        // The last fills its lanes.
        assert_eq!([1, 4, 5, 12, 1000].map(|n| alone(n, 3)), [2, 2, 2, 3, 64]);
        // Each of two classes has two threads, each of many has one.
        assert_eq!(share(class(2048, 12, 2), 0), 6);
        assert_eq!(share(class(2048, 12, 9), 0), 12);
        // No longer than 64 requests of RSA-2048 take, or than the lanes.
        assert_eq!(share(class(4096, 1000, 1), 0), 8);
        assert_eq!(share(class(8192, 1000, 1), 0), 2);
        let whole = self::policy(Sharing::Whole);
        assert_eq!(whole.share(class(8192, 1000, 1), 1), 100);
    }

    #[test]
    fn callers_pass_nobody_over() {
        let one_lane = policy(Sharing::Threads { count: 4, lanes: 1 });
        let share = |class| one_lane.caller_share(class, 0);
        assert_eq!(share(class(2048, 1, 1)), Some(1));
        // Its own and the oldest.
        assert_eq!(share(class(2048, 2, 1)), Some(2));
        assert_eq!(share(class(2048, 40, 1)), Some(10));
        // Where there may be only one, it has to be the oldest: the caller of this looks.
        assert_eq!(share(class(8192, 40, 1)), Some(1));
        let whole = policy(Sharing::Whole);
        let all = [1, 8, 9].map(|waiting| whole.caller_share(class(2048, waiting, 1), 0));
        assert_eq!(all, [Some(1), Some(8), None]);
    }
}
