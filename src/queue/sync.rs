//! The means by which waiting requests and answers synchronise. `tests/queue_model` builds both with other ones, whose
//! scheduler tries interleavings and whose clock it moves.

pub(super) use alloc::sync::Arc;
pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::thread::yield_now;
pub(super) use std::time::Instant;

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
