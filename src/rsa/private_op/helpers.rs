//! Threads for what is done once for a whole batch, before its lanes are shared out or while the first are computed.

#[cfg(feature = "cuda")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "cuda")]
use rayon::prelude::*;

#[cfg(feature = "cuda")]
use crate::backend::cuda::runtime::later::Later;

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

    /// Whether there are threads to make so many places while lanes are computed.
    pub(super) fn can_make_beside(self, count: usize) -> bool {
        #[cfg(feature = "cuda")]
        return self.pool_for(count).is_some();
        #[cfg(not(feature = "cuda"))]
        return {
            let _ = count;
            false
        };
    }

    /// `f` of all numbers below `count`, in order.
    pub(super) fn map<T: Send>(self, count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
        #[cfg(feature = "cuda")]
        if let Some(pool) = self.pool_for(count) {
            let numbers = (0..count).into_par_iter().with_min_len(AT_A_TIME);
            return pool.install(|| numbers.map(&f).collect());
        }
        (0..count).map(f).collect()
    }
}

#[cfg(feature = "cuda")]
impl<'a> Helpers<'a> {
    /// The threads, if there is enough for several to do.
    fn pool_for(self, count: usize) -> Option<&'a rayon::ThreadPool> {
        self.pool.filter(|_| count >= MANY)
    }

    /// Does something with `count` places that some threads make meanwhile.
    pub(super) fn make_beside<'p, P: Send, R>(
        self,
        places: &'p mut Vec<P>,
        count: usize,
        make: &(dyn Fn(usize) -> P + Sync),
        run: impl FnOnce(Arc<Later<'p, P>>) -> R,
    ) -> R {
        let later = Arc::new(Later::new());
        let Some(pool) = self.pool else {
            places.extend((0..count).map(make));
            later.making().give(places);
            return run(later);
        };
        let makers = pool.current_num_threads().div_ceil(OTHERS_FOR_A_MAKER);
        let numbers = (0..count)
            .into_par_iter()
            .with_min_len(count.div_ceil(makers).max(1));
        pool.in_place_scope(|scope| {
            let making = &later;
            scope.spawn(move |_| {
                let making = making.making();
                numbers.map(make).collect_into_vec(places);
                making.give(places);
            });
            run(later.clone())
        })
    }
}

/// One of so many threads makes places: more have the operating system's locks to wait for, which gives them new memory, and the
/// others open lanes.
#[cfg(feature = "cuda")]
const OTHERS_FOR_A_MAKER: usize = 4;

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
    fn places_are_there_when_they_are_taken() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(9).build();
        let pool = pool.unwrap();
        for helpers in [Helpers::default(), Helpers::of(Some(&pool))] {
            for count in [2, 3, 1000, MANY + 1] {
                let mut places = Vec::new();
                let taken = helpers.make_beside(&mut places, count, &|i| 2 * i, |later| {
                    let middle = count / 2;
                    for range in [middle..count, 0..middle] {
                        let first = range.start;
                        let taken = later.take(&range).iter_mut().zip(first..);
                        taken.for_each(|(place, i)| {
                            assert_eq!(*place, 2 * i);
                            *place += 1;
                        });
                    }
                    count
                });
                assert_eq!(taken, count);
                assert!(places.into_iter().eq((0..count).map(|i| 2 * i + 1)));
            }
        }
    }

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
