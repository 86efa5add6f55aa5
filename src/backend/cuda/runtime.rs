//! Runs chunks of work on GPUs: devices, buffers, kernels, words that stay there, and the pipeline over
//! all devices.
//!
//! This module contains no arithmetic. A [`Job`](pipeline::Job) describes the memory of a chunk in
//! whole words, makes the launches, and guarantees that they are sound. This module checks them
//! against the buffers.

pub(crate) mod buffers;
pub(crate) mod device;
pub(crate) mod launch;
pub(crate) mod pipeline;
pub(crate) mod probe;
pub(crate) mod resident;
pub(crate) mod slot;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a holder has panicked: everything here is consistent at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
