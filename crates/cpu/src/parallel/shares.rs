//! Distribution of the shares of a batch over threads.

use core::hint::spin_loop;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::{Scope, ThreadPool};

/// Does `work` on all `shares`, on the calling thread and on those of `pool`. A thread that has
/// finished a share takes the next one.
///
/// The calling thread does not wait for another one to wake up: that takes some tens of
/// microseconds, and a small batch takes hundreds. Nor does it sleep at once when no share is left:
/// the others woke up later and are about to end.
///
/// # Errors
///
/// That of a share. Shares that have not begun by then are left out.
pub fn each_share<I, E>(
    pool: &ThreadPool,
    shares: I,
    work: impl Fn(I::Item) -> Result<(), E> + Sync,
) -> Result<(), E>
where
    I: ExactSizeIterator + Send,
    E: Send,
{
    let helpers = shares.len().saturating_sub(1);
    let helpers = helpers.min(pool.current_num_threads());
    let state = Mutex::new(State {
        left: Some(shares),
        result: Ok(()),
    });
    // Only the iterator can panic under the lock.
    let state = || state.lock().unwrap_or_else(PoisonError::into_inner);
    // The lock is released before the work begins.
    let next = || state().left.as_mut()?.next();
    let take_shares = || {
        while let Some(share) = next() {
            if let Err(error) = work(share) {
                *state() = State {
                    left: None,
                    result: Err(error),
                };
            }
        }
    };
    let at_work = AtomicUsize::new(helpers);
    let help = || {
        // On unwinding too; the scope reports it to the caller.
        let _leave = Leave(&at_work);
        take_shares();
    };
    pool.in_place_scope(|scope| {
        wake(scope, 0, helpers, &help);
        take_shares();
        wait_awake(WAKING_UP, || at_work.load(Ordering::Acquire) == 0);
    });
    mem::replace(&mut state().result, Ok(()))
}

/// Decrements the number of helpers at work.
struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The time that a thread takes to fall asleep and wake up.
const WAKING_UP: Duration = Duration::from_micros(50);

/// Spins until the others have ended, at most for this time.
fn wait_awake(at_most: Duration, have_ended: impl Fn() -> bool) {
    let start = Instant::now();
    while !have_ended() && start.elapsed() < at_most {
        spin_loop();
    }
}

struct State<I, E> {
    /// The shares that are not taken yet; `None` after an error.
    left: Option<I>,
    result: Result<(), E>,
}

/// The number of helpers that a thread wakes. One wake-up of a thread takes as long as another
/// needs to wake that many.
const WOKEN_BY_ONE: usize = 16;

/// Starts `work` on helpers of a tree of wake-ups. Thread `waker` wakes its helpers, and each of
/// them wakes its own. The caller is number 0; the helpers are 1 to `count`.
fn wake<'a>(scope: &Scope<'a>, waker: usize, count: usize, work: &'a (impl Fn() + Sync)) {
    let first = waker * WOKEN_BY_ONE + 1;
    for helper in (first..first + WOKEN_BY_ONE).take_while(|helper| *helper <= count) {
        scope.spawn(move |scope| {
            wake(scope, helper, count, work);
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use core::panic::AssertUnwindSafe;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::panic::catch_unwind;
    use std::sync::{Barrier, mpsc};

    use alloc::vec;

    use super::*;
    use batch_modexp_core::Error;

    fn pool(threads: usize) -> ThreadPool {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    }

    #[test]
    fn every_share_is_taken_once() {
        for threads in [1, 2, 5, 40] {
            let pool = pool(threads);
            for count in [0, 1, 2, 4, 5, 100] {
                let mut taken = vec![0; count];
                let shares = taken.iter_mut();
                each_share(&pool, shares, |share| {
                    *share += 1;
                    Ok::<(), Error>(())
                })
                .unwrap();
                assert_eq!(taken, vec![1; count]);
            }
        }
    }

    /// Each of them waits until all have a share.
    #[test]
    fn the_caller_and_all_threads_of_the_pool_are_at_work() {
        for threads in [1, 2, 7, 16, 17, 40] {
            let all = Barrier::new(threads + 1);
            let pool = pool(threads);
            let callers = AtomicUsize::new(0);
            each_share(&pool, 0..threads + 1, |_| {
                all.wait();
                let is_caller = pool.current_thread_index().is_none();
                callers.fetch_add(usize::from(is_caller), Ordering::Relaxed);
                Ok::<(), Error>(())
            })
            .unwrap();
            assert_eq!(callers.into_inner(), 1, "{threads} threads");
        }
    }

    #[test]
    fn after_an_error_no_share_is_begun_with() {
        let begun = AtomicUsize::new(0);
        // The other thread is busy until an error drops the remaining shares.
        let (shares_left, dropped) = mpsc::channel::<()>();
        let pool = pool(1);
        pool.spawn(move || assert!(dropped.recv().is_err()));
        let shares = (0..100).map(move |index| (index, &shares_left).0);
        let result = each_share(&pool, shares, |index| {
            begun.fetch_add(1, Ordering::Relaxed);
            match index {
                7 => Err(Error::ThreadPool { threads: index }),
                _ => Ok(()),
            }
        });
        assert!(matches!(result, Err(Error::ThreadPool { threads: 7 })));
        assert_eq!(begun.into_inner(), 8);
    }

    #[test]
    fn a_panic_of_any_thread_is_one_of_the_caller() {
        let pool = pool(1);
        for panics in [false, true] {
            let both = Barrier::new(2);
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                each_share(&pool, 0..2, |_| {
                    both.wait();
                    let is_caller = pool.current_thread_index().is_none();
                    assert!(is_caller != panics, "a panic by intention");
                    Ok::<(), Error>(())
                })
            }));
            assert!(unwound.is_err());
        }
    }
}
