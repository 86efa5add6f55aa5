//! Computation of a batch on several threads, and on all cores with the best engine.

mod batch;
mod powers;
mod workers;

use core::fmt;
use core::num::NonZeroUsize;

use batch_modexp_core::Error;

pub use self::workers::Workers;
use crate::engine::AnyEngine;

/// Computes a batch on several threads, each with its share of the instances, through `B`.
///
/// The calling thread is one of them. The others belong to this value and end when it is dropped.
/// Several callers at a time share them; none waits for the batch of another one.
///
/// Shares depend only on the batch length, the widths and the number of threads. They minimise the
/// time until the last thread ends, or nearly so with less work, by the
/// [`relative_time`](batch_modexp_core::BatchModExp::relative_time) of `B`. A batch that is not worth
/// splitting is computed on the calling thread: waking another one takes some tens of microseconds.
///
/// A forked child process has only the thread that called `fork`. A `Parallel` made before the fork
/// works there, but on the calling thread only. To use several threads, make another `Parallel` in
/// the child. The process id tells the child from its parent.
///
/// A child can have threads only if no other thread of the parent was starting or ending during the
/// fork. Rust's standard library holds locks at that time, and they stay locked in the child. The
/// threads of a `Parallel` have started when it has been made; they end shortly after it is
/// dropped.
pub struct Parallel<B> {
    inner: B,
    workers: Workers,
}

impl<B> Parallel<B> {
    /// Starts one thread for each core that the process may use, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new(inner: B) -> Result<Self, Error> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self::with_threads(inner, threads)
    }

    /// Starts `threads` threads, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_threads(inner: B, threads: NonZeroUsize) -> Result<Self, Error> {
        let workers = Workers::start(threads)?;
        Ok(Self { inner, workers })
    }

    /// The number of threads, the calling one included; 1 in a child process that was forked later.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.count() + 1
    }

    /// The threads beside the calling one.
    #[doc(hidden)]
    #[must_use]
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    #[doc(hidden)]
    #[must_use]
    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// The number of `len` items that a thread takes at a time, given the `time` for a number of
    /// items on one thread.
    ///
    /// It minimises the time until the last thread ends, or ends up to an eighth later with less
    /// work. It is at most `most`, the size for long batches.
    ///
    /// The margin is an eighth because a second thread must be woken, and may share its core with
    /// the first.
    #[doc(hidden)]
    pub fn share(&self, len: usize, most: usize, time: impl Fn(usize) -> u64) -> usize {
        // Asked once: it asks the operating system for the process id.
        let threads = self.threads();
        // With several of these for each thread, a batch is balanced enough.
        if len.div_ceil(most) >= 4 * threads {
            return most;
        }
        let end = |share: usize| {
            let shares = len.div_ceil(share);
            shares.div_ceil(threads) as u64 * time(share.min(len))
        };
        let work = |share: usize| len.div_ceil(share) as u64 * time(share);
        let shares = 1..=most.min(len).max(1);
        let soonest = shares.clone().map(end).min().unwrap_or(0);
        shares
            .rev()
            .filter(|&share| end(share) <= soonest + soonest / 8)
            .min_by_key(|&share| (work(share), end(share)))
            .expect("what ends soonest")
    }
}

impl<B: fmt::Debug> fmt::Debug for Parallel<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallel")
            .field("inner", &self.inner)
            .field("threads", &self.threads())
            .finish()
    }
}

/// Computes a batch on several threads with the best instructions of this processor: `Ifma`, else
/// `Fma`, else `Serial`. Moduli have at most 16,384 bits.
///
/// [`Serial`](batch_modexp_core::Serial) computes instances that would leave most lanes of a vector
/// empty, where that is faster. The choice depends only on the number of instances and their
/// widths.
///
/// A batch that is not worth splitting is computed on the calling thread.
///
/// In a forked child it computes on the calling thread, like [`Parallel`].
///
/// ```
/// # use batch_modexp_cpu::facade as batch_modexp;
/// use batch_modexp::backend::Cpu;
///
/// let cpu = Cpu::new()?;
/// println!("{} on {} threads", cpu.name(), cpu.threads());
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Debug)]
pub struct Cpu(Parallel<AnyEngine>);

impl Cpu {
    /// Starts one thread for each core that the process may use, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new() -> Result<Self, Error> {
        Self::with_threads(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Starts `threads` threads, the calling thread included.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_threads(threads: NonZeroUsize) -> Result<Self, Error> {
        Self::with_engine(AnyEngine::fastest(), threads)
    }

    #[doc(hidden)]
    pub fn with_engine(engine: AnyEngine, threads: NonZeroUsize) -> Result<Self, Error> {
        Parallel::with_threads(engine, threads).map(Self)
    }

    /// The backend that spreads batches over threads.
    #[doc(hidden)]
    #[must_use]
    pub fn parallel(&self) -> &Parallel<AnyEngine> {
        &self.0
    }

    /// The engine of the threads: `"ifma"`, `"fma"` or `"serial"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.inner().name()
    }

    /// The number of threads; 1 in a child process that was forked later.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.0.threads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_modexp_core::{BatchModExp, Serial};

    fn threads(count: usize) -> Parallel<Serial> {
        Parallel::with_threads(Serial, count.try_into().unwrap()).unwrap()
    }

    #[test]
    fn the_caller_is_one_of_the_threads() {
        for count in [1, 2, 3, 8] {
            let parallel = threads(count);
            assert_eq!(parallel.threads(), count);
            assert_eq!(parallel.workers().count(), count - 1);
        }
    }

    /// Groups of eight, and pairs for a rest of up to four.
    fn time(count: usize) -> u64 {
        let left_over = match count % 8 {
            few @ 0..=4 => 460 * few.div_ceil(2),
            _ => 1000,
        };
        (1000 * (count / 8) + left_over) as u64
    }

    #[test]
    fn few_are_spread_and_many_are_not() {
        for (len, count, most, expected) in [
            (1, 2, 8, 1),
            (4, 2, 8, 2),
            // Two pairs on each thread end a little before one group, with twice the work.
            (8, 2, 8, 8),
            (12, 2, 8, 8),
            (16, 2, 8, 8),
            (16, 16, 8, 2),
            // As soon as one by one, with half of the work.
            (8, 16, 8, 2),
            (17, 2, 16, 10),
            (4096, 2, 512, 512),
        ] {
            assert_eq!(
                threads(count).share(len, most, time),
                expected,
                "{len} on {count}"
            );
        }
    }

    #[test]
    fn the_last_share_ends_hardly_later_than_with_long_ones() {
        for count in [1, 2, 3, 7] {
            let parallel = threads(count);
            for len in 0usize..200 {
                for most in [8, 16, 40] {
                    let end = |share: usize| {
                        len.div_ceil(share).div_ceil(count) as u64 * time(share.min(len))
                    };
                    let share = parallel.share(len, most, time);
                    assert!((1..=most).contains(&share));
                    let latest = end(most) + end(most) / 8;
                    assert!(end(share) <= latest, "{len} on {count}, at most {most}");
                }
            }
        }
    }

    #[test]
    fn time_on_threads() {
        let time = |len| BatchModExp::<crypto_bigint::U64>::relative_time(&threads(3), 64, len);
        assert_eq!([0, 1, 3, 4, 7, 300].map(time), [0, 1, 1, 2, 3, 100]);
    }
}
