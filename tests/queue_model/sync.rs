//! The replacement for `src/queue/sync.rs`: the primitives of shuttle, and a clock of the model.

use core::time::Duration;
pub(super) use std::sync::Arc;
use std::sync::LazyLock;
pub(super) use std::sync::PoisonError;
pub(super) use std::sync::atomic::Ordering::SeqCst;
pub(super) use std::time::Instant;

use shuttle::sync;
pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
pub(super) use shuttle::sync::{Mutex, MutexGuard};
pub(super) use shuttle::thread::yield_now;

pub(super) struct Condvar(Arc<sync::Condvar>);

impl Condvar {
    pub(super) fn new() -> Self {
        Self(Arc::new(sync::Condvar::new()))
    }

    pub(super) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(super) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// The model's clock; it advances when a thread waits for it.
static MICROSECONDS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(super) fn now() -> Instant {
    *START + Duration::from_micros(MICROSECONDS.load(SeqCst))
}

/// The limit of a wait that only a notification ends.
pub(super) const FOR_EVER: Duration = Duration::MAX;

/// Waits; another thread ends the wait, sooner or later.
pub(super) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    let sleepers = condvar.0.clone();
    if limit < FOR_EVER / 2 {
        shuttle::thread::spawn(move || {
            MICROSECONDS.fetch_add(limit.as_micros() as u64, SeqCst);
            sleepers.notify_all();
        });
    }
    condvar
        .0
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}
