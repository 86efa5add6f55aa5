//! When a batch begins and how large it is.

use core::time::Duration;

use super::turns::Work;

/// The policy that [`QueueBuilder`](super::QueueBuilder) describes.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The largest number of waiting requests.
    pub(super) capacity: usize,
    /// The number of requests for which an idle backend waits.
    pub(super) min_batch: usize,
    /// The largest number of requests in a batch.
    pub(super) max_batch: usize,
    /// How long the oldest request waits for others.
    pub(super) max_wait: Duration,
    /// How batches share the backend.
    pub(super) sharing: Sharing,
}

/// How batches share the backend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sharing {
    /// Each batch uses the whole backend. The backend counts as idle only without a batch.
    Whole,
    /// Each batch uses one of `count` threads; `lanes` requests fill the lanes of a thread.
    Threads { count: usize, lanes: usize },
}

/// A class of waiting requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// The work of each request.
    pub(super) work: Work,
    /// The number of its waiting requests.
    pub(super) waiting: usize,
    /// The number of waiting classes, this one included.
    pub(super) classes: usize,
}

/// The most requests a caller takes where each batch uses the whole backend. A caller should return
/// soon after its own answer, without waking hundreds of others.
const MOST_FOR_A_CALLER: usize = 8;

impl Policy {
    /// Time to wait for more than `waiting` requests, of which the oldest is `age` old, while
    /// `under_way` batches are computed. Zero: begin now. `None`: wait until one of those batches
    /// is done.
    pub(super) fn remaining_wait(
        &self,
        waiting: usize,
        age: Duration,
        under_way: usize,
    ) -> Option<Duration> {
        let enough = match self.sharing {
            _ if self.is_idle(under_way) => self.min_batch,
            Sharing::Whole => self.max_batch,
            // Another thread would take time from the others.
            Sharing::Threads { .. } => return None,
        };
        // At capacity no more requests can come.
        if waiting >= enough.min(self.max_batch).min(self.capacity) {
            return Some(Duration::ZERO);
        }
        Some(self.max_wait.saturating_sub(age))
    }

    /// Whether the backend, or one of its threads, is idle.
    pub(super) fn is_idle(&self, under_way: usize) -> bool {
        match self.sharing {
            Sharing::Whole => under_way == 0,
            Sharing::Threads { count, .. } => under_way < count,
        }
    }

    /// The number of requests that a worker takes from `class` while `under_way` batches are
    /// computed.
    pub(super) fn share(&self, class: Class, under_way: usize) -> usize {
        let share = match self.sharing {
            Sharing::Whole => usize::MAX,
            Sharing::Threads { count, lanes } => {
                // Each class has `threads` threads, which share its waiting requests.
                let threads = count.div_ceil(class.classes.max(1));
                // The last free thread fills its lanes: no other thread could compute some of them
                // sooner.
                let least = if under_way + 1 < count { 1 } else { lanes };
                // A smaller batch than was waited for would leave the rest to wait again.
                let least = least.max(self.min_batch);
                let share = class.waiting.div_ceil(threads).max(least);
                share.min(class.work.most_of_a_thread(lanes))
            }
        };
        share.min(self.max_batch)
    }

    /// Whether a caller may compute a batch itself, if `waiting` requests wait.
    pub(super) fn may_lead(&self, waiting: usize, under_way: usize) -> bool {
        self.is_idle(under_way) && waiting >= self.min_batch.min(self.capacity)
    }

    /// The number of requests that a computing caller takes, its own included. `None` if it must
    /// wait for a worker.
    pub(super) fn caller_share(&self, class: Class, under_way: usize) -> Option<usize> {
        let share = self.share(class, under_way);
        match self.sharing {
            Sharing::Whole => {
                let most = share.min(MOST_FOR_A_CALLER);
                (class.waiting <= most).then_some(class.waiting)
            }
            // The batch has the caller's request and the oldest one, so that frequent callers do
            // not starve others.
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

    /// A class with keys of `bits` bits.
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
        // Two classes have two threads each; of nine classes each has one.
        assert_eq!(share(class(2048, 12, 2), 0), 6);
        assert_eq!(share(class(2048, 12, 9), 0), 12);
        // At most as much work as 64 requests of RSA-2048, or one request a lane.
        assert_eq!(share(class(4096, 1000, 1), 0), 8);
        assert_eq!(share(class(8192, 1000, 1), 0), 2);
        // No less than it has waited for.
        let patient = Policy {
            min_batch: 6,
            ..policy.clone()
        };
        assert_eq!(patient.share(class(2048, 12, 1), 0), 6);
        assert_eq!(patient.share(class(8192, 12, 1), 0), 2);
        let whole = self::policy(Sharing::Whole);
        assert_eq!(whole.share(class(8192, 1000, 1), 1), 100);
    }

    #[test]
    fn callers_pass_nobody_over() {
        let one_lane = policy(Sharing::Threads { count: 4, lanes: 1 });
        let share = |class| one_lane.caller_share(class, 0);
        assert_eq!(share(class(2048, 1, 1)), Some(1));
        // Its own request and the oldest.
        assert_eq!(share(class(2048, 2, 1)), Some(2));
        assert_eq!(share(class(2048, 40, 1)), Some(10));
        // With a share of one, `Waiting::lead` checks that the caller's request is the oldest.
        assert_eq!(share(class(8192, 40, 1)), Some(1));
        let whole = policy(Sharing::Whole);
        let all = [1, 8, 9].map(|waiting| whole.caller_share(class(2048, waiting, 1), 0));
        assert_eq!(all, [Some(1), Some(8), None]);
    }
}
