//! Turns of classes: a batch has requests of one class, and classes alternate so that slow keys do
//! not delay others. This is round robin; because all requests of a class are the same work, no
//! deficit counter is needed.

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

/// The class that had the last turn.
pub(super) struct Turns(Option<Work>);

impl Turns {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    /// The class that has the next turn, among those with waiting requests.
    pub(super) fn next(&self, classes: impl Iterator<Item = Work>) -> Option<Work> {
        // The class with the next larger work, or else the smallest.
        classes.min_by_key(|&class| (Some(class) <= self.0, class))
    }

    /// Records that a class has had its turn.
    pub(super) fn end(&mut self, class: Work) {
        self.0 = Some(class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A class waits for at most one turn of each other class.
    #[test]
    fn classes_take_turns() {
        let mut turns = Turns::new();
        assert_eq!(turns.next([].into_iter()), None);
        let mut turn = |classes: &[Work]| {
            let next = turns.next(classes.iter().copied()).unwrap();
            turns.end(next);
            RSA.iter().position(|&class| class == next).unwrap()
        };
        assert_eq!([0; 6].map(|_| turn(&RSA[1..])), [1, 2, 3, 1, 2, 3]);
        // Alone, it has every turn.
        assert_eq!([0; 3].map(|_| turn(&RSA[2..3])), [2, 2, 2]);
        // A class that appears before or after the last turn's.
        assert_eq!([0; 4].map(|_| turn(&RSA[..3])), [0, 1, 2, 0]);
        assert_eq!([0; 3].map(|_| turn(&RSA)), [1, 2, 3]);
    }
}
