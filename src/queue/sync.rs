//! Synchronisation primitives of the queue. `tests/queue_model` replaces them with its own, whose
//! scheduler tries interleavings and whose clock it sets.

pub(super) use alloc::sync::Arc;
pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::thread::yield_now;
pub(super) use std::time::Instant;

pub(super) fn now() -> Instant {
    Instant::now()
}

/// Waits for a notification, at most for `limit`; may return early.
pub(super) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    let result = condvar.wait_timeout(guard, limit);
    result.unwrap_or_else(PoisonError::into_inner).0
}
