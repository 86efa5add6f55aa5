//! Clients of a queue, which saturate it or send requests at a given rate.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use batch_modexp::queue::{BatchQueue, QueueError, Signing};
use batch_modexp::rsa::{AnyScheme, KeyHandle};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

pub(crate) struct Customers<'a> {
    pub(crate) queue: &'a BatchQueue,
    pub(crate) key: &'a KeyHandle,
    pub(crate) scheme: AnyScheme,
}

impl Customers<'_> {
    /// Keeps `in_flight` requests in the queue, and returns signatures a second. Measures from the
    /// end of one batch to that of another, at least `span` later.
    pub(crate) fn saturate(
        &self,
        threads: NonZeroUsize,
        in_flight: usize,
        span: Duration,
    ) -> Result<f64, QueueError> {
        let each = in_flight.div_ceil(threads.get());
        let is_over = AtomicBool::new(false);
        let keep = || -> Result<(), QueueError> {
            let mut asked = VecDeque::new();
            while !is_over.load(Relaxed) {
                while asked.len() < each {
                    asked.push_back(self.queue.sign(self.key, self.scheme, b"m"));
                }
                if let Some(Err(error)) = asked.pop_front().map(Signing::wait) {
                    is_over.store(true, Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.get()).map(|_| scope.spawn(keep)).collect();
            // Skips the first batches, which find the queue empty.
            for _ in 0..4 {
                self.next_batch(&is_over);
            }
            let (started, first) = self.next_batch(&is_over);
            let (mut ended, mut last) = self.next_batch(&is_over);
            while ended < started + span && !is_over.load(Relaxed) {
                (ended, last) = self.next_batch(&is_over);
            }
            is_over.store(true, Relaxed);
            for thread in threads {
                thread.join().unwrap_or(Err(QueueError::Panicked))?;
            }
            Ok((last - first) as f64 / (ended - started).as_secs_f64())
        })
    }

    /// Waits for the end of a batch; returns the time, and the number of requests answered so far.
    fn next_batch(&self, is_over: &AtomicBool) -> (Instant, u64) {
        let answered = || {
            let stats = self.queue.stats();
            stats.signed + stats.failed
        };
        let before = answered();
        while answered() == before && !is_over.load(Relaxed) {
            thread::sleep(Duration::from_micros(200));
        }
        // A batch is counted while its answers are handed out.
        (Instant::now(), answered())
    }

    /// Sends `rate` requests a second at random times (a Poisson process). A latency counts from
    /// the time at which a request should arrive to its signature.
    pub(crate) fn arrive(&self, rate: f64, span: Duration) -> Result<Latencies, QueueError> {
        let (sender, receiver) = channel::<(Instant, Signing)>();
        let mut latencies = thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                // In the order of the requests, which is that of batches.
                let latency = |(due, signing): (Instant, Signing)| {
                    signing.wait()?;
                    Ok(Instant::now().saturating_duration_since(due))
                };
                receiver.into_iter().map(latency).collect()
            });
            let mut rng = ChaCha20Rng::seed_from_u64(0);
            let started = Instant::now();
            let mut due = started;
            while due < started + span {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let signing = self.queue.sign(self.key, self.scheme, b"m");
                if sender.send((due, signing)).is_err() {
                    break;
                }
                due += exponential(&mut rng, rate);
            }
            drop(sender);
            let latencies: Result<Vec<_>, _> = waiting.join().unwrap_or(Err(QueueError::Panicked));
            latencies
        })?;
        latencies.sort();
        Ok(Latencies(latencies))
    }
}

/// Time to the next arrival, with a mean of `1 / rate` seconds, at most an hour.
fn exponential(rng: &mut ChaCha20Rng, rate: f64) -> Duration {
    // Above 0 and at most 1.
    let uniform = (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0);
    let hour = Duration::from_secs(3600);
    Duration::try_from_secs_f64(-uniform.ln() / rate).map_or(hour, |time| time.min(hour))
}

/// Latencies in ascending order.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// The number of answered requests.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The latency at this quantile in milliseconds; 0 if there are none.
    pub(crate) fn milliseconds(&self, share: f64) -> f64 {
        let index = (self.0.len() as f64 * share) as usize;
        let latency = self.0.get(index.min(self.0.len().saturating_sub(1)));
        latency.map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}
