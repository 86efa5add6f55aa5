//! Statistics of a queue.

use core::fmt;
use core::time::Duration;

/// Statistics of a queue since its start: [`BatchQueue::stats`](super::BatchQueue::stats).
///
/// The numbers are read one after another while the queue works, so they may not match exactly. At
/// rest `accepted` is `signed` + `failed` + `cancelled`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Requests that entered the queue.
    pub accepted: u64,
    /// Requests that were signed, including those whose caller had stopped waiting.
    pub signed: u64,
    /// Requests answered with the signer's error, or with that of a panic.
    pub failed: u64,
    /// Requests cancelled before their batch began: the future was dropped, the time limit passed,
    /// or the queue was shut down.
    pub cancelled: u64,
    /// Calls of [`try_sign`](super::BatchQueue::try_sign) and
    /// [`try_sign_prehash`](super::BatchQueue::try_sign_prehash) that found the queue full.
    pub full: u64,
    /// Batches passed to the backend.
    pub batches: u64,
    /// Batches that callers of [`sign_blocking`](super::BatchQueue::sign_blocking) computed on
    /// their own threads; also counted in `batches`.
    pub led: u64,
    /// Batches that failed as a whole on the backend and were passed to the fallback.
    pub fallbacks: u64,
    /// Waiting requests.
    pub waiting: usize,
    /// Batches under way.
    pub under_way: usize,
    /// Sizes of batches, in requests.
    pub batch_sizes: Histogram,
    /// Times from acceptance of a request to its answer, in microseconds.
    pub latency_us: Histogram,
}

impl QueueStats {
    /// Counts a batch that is passed to a backend.
    pub(super) fn batch(&mut self, size: usize) {
        self.batches += 1;
        self.batch_sizes.add(size as u64);
    }

    /// Counts an answered request.
    pub(super) fn answered(&mut self, is_signed: bool, latency: Duration) {
        match is_signed {
            true => self.signed += 1,
            false => self.failed += 1,
        }
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latency_us.add(microseconds);
    }
}

/// Values counted in buckets. The bucket with bound 2^i counts the values above 2^(i-1) and up to
/// 2^i. The first bucket counts 0 and 1, the last everything above the second-last bound.
#[derive(Clone, Eq, PartialEq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum: u64,
}

/// The last bound is 2^35, more than nine hours in microseconds.
const BUCKETS: usize = 36;

impl Histogram {
    fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.sum = self.sum.wrapping_add(value);
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Upper bound (inclusive) and number of values of each bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let bounds = (0..).map(|power| 1 << power);
        bounds.zip(self.counts)
    }

    /// Upper bound of the bucket that contains the quantile `q`, such as 0.5 for the median.
    ///
    /// `None` if there are no values. A `q` below 0 counts as 0, one above 1 as 1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (self.count() as f64 * q.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut values = 0;
        self.buckets().find_map(|(bound, count)| {
            values += count;
            (values >= rank).then_some(bound)
        })
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            sum: 0,
        }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.buckets().filter(|(_, count)| *count > 0);
        f.debug_map().entries(used).finish()
    }
}

/// Index of the first bucket whose bound is at least `value`.
fn bucket(value: u64) -> usize {
    let power = u64::BITS - value.saturating_sub(1).leading_zeros();
    (power as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        let places = [0, 1, 2, 3, 4, 5, 8, 9, 1 << 34, (1 << 34) + 1, u64::MAX].map(bucket);
        assert_eq!(places, [0, 0, 1, 2, 2, 3, 3, 4, 34, 35, 35]);
    }

    #[test]
    fn quantiles_are_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for value in 1..=100 {
            histogram.add(value);
        }
        assert_eq!((histogram.count(), histogram.sum()), (100, 5050));
        let quantiles = [-1.0, 0.0, 0.5, 0.65, 1.0, 2.0].map(|q| histogram.quantile(q).unwrap());
        assert_eq!(quantiles, [1, 1, 64, 128, 128, 128]);
    }
}
