//! Threads for what is done once for a whole batch, before its lanes are shared out.

use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "cuda")]
use rayon::prelude::*;

/// The threads of a backend's that have little else to do before lanes are shared out: those of a pool beside devices, or none.
#[doc(hidden)]
#[derive(Clone, Copy, Default)]
pub struct Helpers<'a> {
    #[cfg(feature = "cuda")]
    pool: Option<&'a rayon::ThreadPool>,
    #[cfg(not(feature = "cuda"))]
    none: core::marker::PhantomData<&'a ()>,
}

impl<'a> Helpers<'a> {
    /// The threads of a pool, if there is one.
    #[cfg(feature = "cuda")]
    pub(crate) fn of(pool: Option<&'a rayon::ThreadPool>) -> Self {
        Self { pool }
    }

    /// `f` of all numbers below `count`, in order.
    pub(super) fn map<T: Send>(self, count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
        #[cfg(feature = "cuda")]
        if let Some(pool) = self.pool.filter(|_| count >= MANY) {
            let numbers = (0..count).into_par_iter().with_min_len(AT_A_TIME);
            return pool.install(|| numbers.map(&f).collect());
        }
        (0..count).map(f).collect()
    }
}

/// From so many on threads are woken up: some microseconds for each, where it takes some nanoseconds to write a place.
#[cfg(feature = "cuda")]
const MANY: usize = 1 << 15;

/// So many are one thread's at least.
#[cfg(feature = "cuda")]
const AT_A_TIME: usize = 1 << 12;

impl fmt::Debug for Helpers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_order() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
        let pool = pool.unwrap();
        for helpers in [Helpers::default(), Helpers::of(Some(&pool))] {
            for count in [0, 1, MANY - 1, MANY, 3 * MANY + 1] {
                assert!(
                    helpers
                        .map(count, |i| 2 * i)
                        .into_iter()
                        .eq((0..count).map(|i| 2 * i))
                );
            }
        }
    }
}
