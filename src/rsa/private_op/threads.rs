//! Threads of the host, lent by a backend.

#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::marker::PhantomData;

#[cfg(feature = "std")]
use rayon::ThreadPool;
#[cfg(feature = "std")]
use rayon::prelude::*;

/// Threads of the host that a backend lends for work around its exponentiations. A backend that wraps another
/// passes on what that one returns.
#[derive(Clone, Copy, Debug)]
pub struct HostThreads<'a> {
    #[cfg(feature = "std")]
    pool: Option<&'a ThreadPool>,
    lender: PhantomData<&'a ()>,
}

impl<'a> HostThreads<'a> {
    /// The thread that calls.
    #[must_use]
    pub const fn calling_thread() -> Self {
        Self {
            #[cfg(feature = "std")]
            pool: None,
            lender: PhantomData,
        }
    }

    /// The threads of a pool, or else the one that calls.
    #[cfg(feature = "std")]
    pub(super) const fn of(pool: Option<&'a ThreadPool>) -> Self {
        Self {
            pool,
            lender: PhantomData,
        }
    }

    /// Runs `f` on shares of `items`, each on one of the threads, and returns the results in order. A share is
    /// a multiple of `granularity` long, but for the last one.
    ///
    /// The shares are larger than those of an exponentiation, because lanes of one key in one share have
    /// one inversion between them; but not so large that their intermediate values would fill the memory.
    #[cfg(feature = "std")]
    pub(super) fn map_shares<T: Sync, R: Send, E: Send>(
        self,
        items: &[T],
        granularity: usize,
        f: impl Fn(&[T]) -> Result<R, E> + Send + Sync,
    ) -> Result<Vec<R>, E> {
        let share = self.share(items.len(), granularity);
        #[cfg(feature = "std")]
        if let Some(pool) = self.pool {
            return pool.install(|| items.par_chunks(share).map(f).collect());
        }
        items.chunks(share).map(f).collect()
    }

    /// Runs `f` on shares of `items` and the `results` that stand at the same places.
    pub(super) fn for_each_share<T: Sync, R: Send, E: Send>(
        self,
        items: &[T],
        results: &mut [R],
        granularity: usize,
        f: impl Fn(&[T], &mut [R]) -> Result<(), E> + Send + Sync,
    ) -> Result<(), E> {
        let share = self.share(items.len(), granularity);
        #[cfg(feature = "std")]
        if let Some(pool) = self.pool {
            return pool.install(|| {
                let shares = items.par_chunks(share).zip(results.par_chunks_mut(share));
                shares.map(|(items, results)| f(items, results)).collect()
            });
        }
        let mut shares = items.chunks(share).zip(results.chunks_mut(share));
        shares.try_for_each(|(items, results)| f(items, results))
    }

    fn share(self, len: usize, granularity: usize) -> usize {
        const LARGEST: usize = 1024;
        let share = len.div_ceil(self.count()).clamp(1, LARGEST);
        share.next_multiple_of(granularity)
    }

    fn count(self) -> usize {
        #[cfg(feature = "std")]
        if let Some(pool) = self.pool {
            return pool.current_num_threads();
        }
        1
    }
}
