//! What the waiting room and the answers synchronise with. `tests/queue_model` builds both with other ones, whose
//! scheduler tries interleavings and whose clock it moves.

pub(super) use alloc::sync::Arc;
pub(super) use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::time::Instant;

/// A number for the calling thread, always the same.
pub(super) fn door() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        static DOOR: usize = NEXT.fetch_add(1, SeqCst);
    }
    // A thread that ends has none any more.
    DOOR.try_with(|door| *door).unwrap_or(0)
}

pub(super) fn now() -> Instant {
    Instant::now()
}

/// Waits for a notification, but no longer than `limit`; may end early.
pub(super) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    let result = condvar.wait_timeout(guard, limit);
    result.unwrap_or_else(PoisonError::into_inner).0
}
