//! When a batch begins and how large it is.

use core::time::Duration;

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

/// The estimated work of a request, in relative units. It is public, like the length of the key.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Work(u64);

impl Work {
    /// The work of 64 requests of RSA-2048. Longer batches hardly raise a thread's rate, and their
    /// requests wait for the whole batch.
    const OF_A_BATCH: Self = Self(64 * Self::of_request(2048, true).0);

    /// The work of a signature with a key of `bits` bits. An exponentiation takes time in the third
    /// power of its length. One modulo n takes four times as long as two modulo primes of half the
    /// length.
    pub(super) const fn of_request(bits: u32, has_primes: bool) -> Self {
        let limbs = bits.div_ceil(64) as u64;
        let work = limbs.saturating_pow(3);
        Self(if has_primes {
            work
        } else {
            work.saturating_mul(4)
        })
    }

    /// The most requests of this work that a thread takes in a batch. At most 64 and no more work
    /// than 64 of RSA-2048, but as many as fill its `lanes`.
    pub(super) fn most_of_a_thread(self, lanes: usize) -> usize {
        let lanes = lanes.max(1);
        let count = (Self::OF_A_BATCH.0 / self.0.max(1)).min(64) as usize;
        // Empty lanes take as long as full ones.
        (count - count % lanes).max(lanes).min(64)
    }
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
    const RSA: [Work; 4] = [
        Work::of_request(1024, true),
        Work::of_request(2048, true),
        Work::of_request(3072, true),
        Work::of_request(8192, true),
    ];

    #[test]
    fn work_is_the_third_power_of_the_length() {
        let units = |bits| Work::of_request(bits, true).0;
        assert_eq!([2048, 4096, 8192].map(units), [32768, 262_144, 2_097_152]);
        // Rounded up to the next limb.
        assert_eq!(units(1025), units(1088));
        assert_eq!(Work::of_request(2048, false).0, 4 * units(2048));
        assert_eq!(units(u32::MAX), u64::MAX);
    }

    #[test]
    fn a_thread_takes_as_much_work_of_any_class() {
        let most = |lanes| RSA.map(|work| work.most_of_a_thread(lanes));
        assert_eq!(most(1), [64, 64, 18, 1]);
        // Full lanes.
        assert_eq!(most(4), [64, 64, 16, 4]);
        assert_eq!(most(0), most(1));
        assert_eq!(most(1000), [64; 4]);
        let without_primes = Work::of_request(2048, false);
        assert_eq!(without_primes.most_of_a_thread(4), 16);
        assert_eq!(Work::of_request(0, true).most_of_a_thread(1), 64);
        assert_eq!(Work::of_request(u32::MAX, false).most_of_a_thread(1), 1);
    }
}
