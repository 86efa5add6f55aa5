//! Threads that share the work of a batch.

use core::hint::spin_loop;
use core::mem;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use batch_modexp_core::Error;
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

/// Threads beside the calling one, and the process that they run in. A forked child has a copy of
/// this value, but no threads.
///
/// There are no more threads than work at the same time. When one finds work, rayon wakes others
/// that sleep. Threads without work and without a core of their own would delay those that compute.
pub struct Workers {
    /// `None` if the calling thread does all the work.
    pool: Option<ThreadPool>,
    /// The number of threads that do not work for a call.
    idle: AtomicUsize,
    process: u32,
}

impl Workers {
    /// Starts the threads: with the calling one there are `threads`.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses them.
    pub fn start(threads: NonZeroUsize) -> Result<Self, Error> {
        let threads = threads.get();
        // To rayon, zero would mean one for each core.
        let pool = match threads - 1 {
            0 => None,
            others => {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(others)
                    .thread_name(|i| alloc::format!("batch-modexp-{i}"))
                    .build()
                    .map_err(|_| Error::ThreadPool { threads })?;
                // Returns after each thread has started its first piece of work. A fork before that
                // would leave locks of the standard library locked in the child, and shared state
                // of rayon half initialised.
                pool.broadcast(|_| ());
                Some(pool)
            }
        };
        Ok(Self {
            pool,
            idle: AtomicUsize::new(threads - 1),
            process: process::id(),
        })
    }

    /// The number of threads in this process, without the calling one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pool().map_or(0, ThreadPool::current_num_threads)
    }

    /// The threads, if there are any in this process.
    fn pool(&self) -> Option<&ThreadPool> {
        let here = self.process == process::id();
        self.pool.as_ref().filter(|_| here)
    }

    /// Does `work` on all `shares`, on the calling thread and on idle ones. A thread that has
    /// finished a share takes the next one.
    ///
    /// The calling thread does not wait for the work of another call, unless it belongs to rayon. If
    /// all threads have work, it begins alone. Those that become idle join it when it takes its next
    /// share.
    ///
    /// Nor does it wait for a thread to wake up: that takes some tens of microseconds, and a small
    /// batch takes hundreds. It does not sleep at once when no share is left: the others woke up
    /// later and are about to end.
    ///
    /// # Errors
    ///
    /// That of a share. Shares that have not begun by then are left out.
    pub fn each_share<I, E>(
        &self,
        shares: I,
        work: impl Fn(I::Item) -> Result<(), E> + Sync,
    ) -> Result<(), E>
    where
        I: ExactSizeIterator + Send,
        E: Send,
    {
        let Some(pool) = self.pool().filter(|_| shares.len() > 1) else {
            let mut shares = shares;
            return shares.try_for_each(work);
        };
        let state = Mutex::new(State {
            left: Some(shares),
            result: Ok(()),
        });
        // Only the iterator can panic under the lock.
        let state = || state.lock().unwrap_or_else(PoisonError::into_inner);
        // A share and the number of those behind it. The lock is released before the work begins.
        let next = || {
            let mut state = state();
            let left = state.left.as_mut()?;
            Some((left.next()?, left.len()))
        };
        let run = |share| {
            if let Err(error) = work(share) {
                *state() = State {
                    left: None,
                    result: Err(error),
                };
            }
        };
        let at_work = AtomicUsize::new(0);
        let help = || {
            // On unwinding too; the scope reports it to the caller.
            let _leave = Leave(&at_work, &self.idle);
            while let Some((share, _)) = next() {
                run(share);
            }
        };
        pool.in_place_scope(|scope| {
            while let Some((share, left)) = next() {
                let helpers = self.reserve(left);
                at_work.fetch_add(helpers, Ordering::Relaxed);
                wake(scope, 0, helpers, &help);
                run(share);
            }
            wait_awake(WAKING_UP, || at_work.load(Ordering::Acquire) == 0);
        });
        mem::replace(&mut state().result, Ok(()))
    }

    /// Takes up to `most` of the idle threads.
    fn reserve(&self, most: usize) -> usize {
        let taken = |idle: usize| idle.min(most);
        let rest = |idle| Some(idle - taken(idle));
        let before = self
            .idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.map_or(0, taken)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Ending the threads takes locks. A lock that a thread held during the fork stays locked in
        // the child.
        if self.pool().is_none() {
            mem::forget(self.pool.take());
        }
    }
}

/// Counts a thread as idle, and no longer as a helper.
struct Leave<'a>(&'a AtomicUsize, &'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
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
    use std::thread;

    use alloc::vec;

    use super::*;

    /// This many threads beside the calling one.
    fn workers(count: usize) -> Workers {
        Workers::start(NonZeroUsize::MIN.saturating_add(count)).unwrap()
    }

    fn is_caller(workers: &Workers) -> bool {
        let index = workers.pool().and_then(ThreadPool::current_thread_index);
        index.is_none()
    }

    #[test]
    fn every_share_is_taken_once() {
        for threads in [1, 2, 5, 40] {
            let workers = workers(threads);
            for count in [0, 1, 2, 4, 5, 100] {
                let mut taken = vec![0; count];
                let shares = taken.iter_mut();
                workers
                    .each_share(shares, |share| {
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
            let workers = workers(threads);
            let callers = AtomicUsize::new(0);
            workers
                .each_share(0..threads + 1, |_| {
                    all.wait();
                    let is_caller = is_caller(&workers);
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
        let workers = workers(1);
        let pool = workers.pool().unwrap();
        pool.spawn(move || assert!(dropped.recv().is_err()));
        let shares = (0..100).map(move |index| (index, &shares_left).0);
        let result = workers.each_share(shares, |index| {
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
        let workers = workers(1);
        for panics in [false, true] {
            let both = Barrier::new(2);
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                workers.each_share(0..2, |_| {
                    both.wait();
                    let is_caller = is_caller(&workers);
                    assert!(is_caller != panics, "a panic by intention");
                    Ok::<(), Error>(())
                })
            }));
            assert!(unwound.is_err());
        }
    }

    /// A batch is computed while all threads work for another one, and gets them afterwards.
    #[test]
    fn no_call_waits_for_another() {
        let workers = workers(2);
        let both = Barrier::new(4);
        thread::scope(|scope| {
            // The shares of the first call wait, each on a thread of its own.
            let (first, second, third) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
            let channels = [first.1, second.1, third.1];
            let waiting = scope.spawn(|| {
                workers.each_share(channels.into_iter(), |channel: mpsc::Receiver<()>| {
                    both.wait();
                    assert!(channel.recv().is_err());
                    Ok::<(), Error>(())
                })
            });
            both.wait();
            let callers = AtomicUsize::new(0);
            let count = |_| {
                callers.fetch_add(usize::from(is_caller(&workers)), Ordering::Relaxed);
                Ok::<(), Error>(())
            };
            workers.each_share(0..10, count).unwrap();
            assert_eq!(callers.into_inner(), 10);
            drop([first.0, second.0, third.0]);
            waiting.join().unwrap().unwrap();
        });
        assert_eq!(workers.reserve(3), 2);
    }

    /// The stacks are longer than the address space. The length is read once for each process.
    #[cfg(target_os = "linux")]
    #[test]
    fn refused_threads_are_an_error() {
        let test = "parallel::workers::tests::start_refused_threads";
        let status = process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", test, "--test-threads=1"])
            .env("RUST_MIN_STACK", alloc::format!("{}", usize::MAX / 4))
            .env("BATCH_MODEXP_REFUSED", "1")
            .status();
        assert!(status.unwrap().success());
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[ignore = "run in a process that gets no threads by the test above"]
    fn start_refused_threads() {
        // Those who run all ignored tests do not refuse them.
        if std::env::var_os("BATCH_MODEXP_REFUSED").is_some() {
            let refused = Workers::start(NonZeroUsize::MIN.saturating_add(2));
            assert!(matches!(refused, Err(Error::ThreadPool { threads: 3 })));
            assert_eq!(Workers::start(NonZeroUsize::MIN).unwrap().count(), 0);
        }
    }
}
