//! Spreads a batch over threads.

use core::fmt;
use core::num::NonZeroUsize;

use crypto_bigint::Unsigned;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::clear;
use crate::{BatchModExp, Error, ModExp};

/// Runs a batch on several threads, each with its share of the instances, through `B`.
///
/// The threads belong to this value and end when it is dropped. How a batch is cut depends on its
/// length and the number of threads alone.
pub struct Parallel<B> {
    inner: B,
    pool: ThreadPool,
}

impl<B> Parallel<B> {
    /// Runs `inner` on as many threads as the process may use cores.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn new(inner: B) -> Result<Self, Error> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self::with_threads(inner, threads)
    }

    /// Runs `inner` on `threads` threads.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn with_threads(inner: B, threads: NonZeroUsize) -> Result<Self, Error> {
        let threads = threads.get();
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| alloc::format!("batch-modexp-{i}"))
            .build()
            .map_err(|_| Error::ThreadPool { threads })?;
        Ok(Self { inner, pool })
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool().current_num_threads()
    }

    /// The threads, for other work than exponentiations.
    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    pub(crate) fn inner(&self) -> &B {
        &self.inner
    }

    /// How many instances of a batch of `len` a thread takes at a time: a quarter of its fair share, so
    /// that a thread that is interrupted holds up the others by little, but whole multiples of what the
    /// backend computes at the same time.
    fn share(&self, len: usize, granularity: usize) -> usize {
        len.div_ceil(4 * self.threads())
            .max(1)
            .next_multiple_of(granularity)
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

impl<U, B> BatchModExp<U> for Parallel<B>
where
    U: Unsigned + Sync,
    B: BatchModExp<U, Error = Error> + Sync,
{
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        assert_eq!(
            batch.len(),
            out.len(),
            "a batch and its output must have the same length"
        );
        let share = self.share(batch.len(), self.inner.granularity());
        let result = self.pool().install(|| {
            batch
                .par_chunks(share)
                .zip(out.par_chunks_mut(share))
                .enumerate()
                .try_for_each(|(chunk, (batch, out))| {
                    self.inner
                        .batch_mod_exp(batch, exponent_bits, out)
                        .map_err(|error| error.in_batch_at(chunk * share))
                })
        });
        result.inspect_err(|_| clear(out))
    }

    fn granularity(&self) -> usize {
        self.threads() * self.inner.granularity()
    }
}
