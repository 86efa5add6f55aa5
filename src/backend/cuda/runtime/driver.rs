//! The second of the two threads that drive a device.

use alloc::format;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::thread;

use batch_modexp_core::Error;
use batch_modexp_cpu::wait_awake;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The longest wait without sleeping for the other thread that drives the device. The two finish
/// within about this time of each other, and falling asleep and waking up takes longer.
const LAST_CHUNKS: Duration = Duration::from_micros(250);

/// A thread that drives a device beside the calling one.
///
/// It is started in advance. Starting it in a call would take nearly 0.1 ms, in which a device
/// computes hundreds of exponentiations.
pub(super) struct SecondDriver {
    /// A pool of one thread.
    pool: ThreadPool,
    /// Whether a call uses the thread. Other calls must not wait for it, and the thread must not
    /// begin their work while it waits for helpers.
    is_taken: AtomicBool,
}

impl SecondDriver {
    /// Starts the thread for the device of this number.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the thread.
    pub(super) fn start(ordinal: usize) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(move |_| format!("batch-modexp-gpu{ordinal}"))
            .build()
            .map_err(|_| Error::ThreadPool { threads: 1 })?;
        // Wait until the thread is ready for work: see `Parallel`.
        pool.broadcast(|_| ());
        Ok(Self {
            pool,
            is_taken: AtomicBool::new(false),
        })
    }

    /// Runs `first` on the calling thread and `second` on another one: on this thread, or on a new
    /// one if another call uses this.
    ///
    /// There is no result of `second` if the operating system refuses a new thread.
    ///
    /// # Panics
    ///
    /// If `first` or `second` panics, after both have ended.
    pub(super) fn run_both<A, B: Send>(
        &self,
        first: impl FnOnce() -> A,
        second: impl FnOnce() -> B + Send,
    ) -> (A, Option<B>) {
        match Taken::of(&self.is_taken) {
            Some(_taken) => self.run_both_here(first, second),
            None => run_both_with_another(first, second),
        }
    }

    fn run_both_here<A, B: Send>(
        &self,
        first: impl FnOnce() -> A,
        second: impl FnOnce() -> B + Send,
    ) -> (A, Option<B>) {
        let has_ended = AtomicBool::new(false);
        let mut of_second = None;
        let of_first = self.pool.in_place_scope(|scope| {
            let (of_second, has_ended) = (&mut of_second, &has_ended);
            scope.spawn(move |_| {
                *of_second = Some(second());
                has_ended.store(true, Ordering::Release);
            });
            let of_first = first();
            wait_awake(LAST_CHUNKS, || has_ended.load(Ordering::Acquire));
            of_first
        });
        (of_first, of_second)
    }
}

fn run_both_with_another<A, B: Send>(
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, Option<B>) {
    thread::scope(|scope| {
        let second = thread::Builder::new().spawn_scoped(scope, second);
        let of_first = first();
        let of_second = second
            .ok()
            .map(|second| second.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (of_first, of_second)
    })
}

/// A guard that marks a resource as used by a call.
struct Taken<'a>(&'a AtomicBool);

impl<'a> Taken<'a> {
    /// Takes the resource. `None` if another call has it.
    fn of(is_taken: &'a AtomicBool) -> Option<Self> {
        (!is_taken.swap(true, Ordering::Acquire)).then(|| Self(is_taken))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;
    use std::sync::Barrier;

    use super::*;

    fn name() -> Option<String> {
        thread::current().name().map(String::from)
    }

    /// Each call waits until the others run.
    #[test]
    fn calls_at_the_same_time_have_a_second_thread_each() {
        let driver = SecondDriver::start(7).unwrap();
        let all = Barrier::new(3);
        let at_work = || {
            all.wait();
            (thread::current().id(), name())
        };
        let ((inner, of_inner), of_outer) =
            driver.run_both(|| driver.run_both(at_work, at_work), at_work);
        let of_outer = of_outer.unwrap();
        assert_eq!(inner.0, thread::current().id());
        assert_eq!(of_outer.1.as_deref(), Some("batch-modexp-gpu7"));
        let of_inner = of_inner.unwrap();
        assert_eq!(of_inner.1, None);
        assert!(![inner.0, of_outer.0].contains(&of_inner.0));
        // The thread is free.
        let (_, second) = driver.run_both(|| (), name);
        assert_eq!(second.unwrap().as_deref(), Some("batch-modexp-gpu7"));
    }

    #[test]
    fn a_panic_of_either_is_one_of_the_caller_when_both_have_ended() {
        let driver = SecondDriver::start(0).unwrap();
        for is_taken in [false, true] {
            let _taken = is_taken.then(|| Taken::of(&driver.is_taken));
            for panics in [0, 1] {
                let ended = AtomicBool::new(false);
                let both = Barrier::new(2);
                let work = |number| {
                    both.wait();
                    assert!(number != panics, "a panic by intention");
                    ended.store(true, Ordering::Relaxed);
                };
                let unwound = catch_unwind(AssertUnwindSafe(|| {
                    driver.run_both(|| work(0), || work(1));
                }));
                let panic = unwound.unwrap_err();
                assert!(panic.downcast_ref::<&str>().unwrap().contains("intention"));
                assert!(ended.into_inner());
            }
        }
        assert!(driver.run_both(|| (), || ()).1.is_some());
    }
}
