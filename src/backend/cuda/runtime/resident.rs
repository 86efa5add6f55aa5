//! Words that stay on devices between calls, such as the table of a fixed base.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use std::process;
use std::sync::{Mutex, PoisonError};

use batch_modexp_core::secret::Secret;
use cudarc::driver::{CudaContext, DriverError, result};

use super::buffers::{DeviceWords, PinnedWords, settle};
use super::lock;

/// Secret words of one owner, which each device copies at its first use of them. Dropping them wipes
/// the copies.
pub(crate) struct Resident {
    words: Secret<Vec<u64>>,
    copies: Mutex<Vec<Arc<DeviceWords>>>,
    /// The process that has the devices: see [`Devices`](super::device::Devices).
    process: u32,
}

impl Resident {
    pub(crate) fn new(words: Secret<Vec<u64>>) -> Self {
        Self {
            words,
            copies: Mutex::default(),
            process: process::id(),
        }
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The words on the device of this context, where they stay while the result is held, too.
    pub(super) fn on(&self, context: &Arc<CudaContext>) -> Result<Arc<DeviceWords>, DriverError> {
        let mut copies = lock(&self.copies);
        if let Some(copy) = copies.iter().find(|copy| copy.is_in(context)) {
            return Ok(copy.clone());
        }
        let copy = DeviceWords::zeroed(context, self.len())?;
        // The driver copies other memory to buffers of its own, which it does not wipe.
        let mut pinned = PinnedWords::zeroed(context, self.len())?;
        pinned.as_mut_slice().copy_from_slice(&self.words);
        // SAFETY: `zeroed` has bound the context. Both are equally long, and stay until `settle` has
        // waited for the copy.
        unsafe { result::memcpy_htod_sync(copy.address(), pinned.as_mut_slice())? };
        settle(context)?;
        let copy = Arc::new(copy);
        copies.push(copy.clone());
        Ok(copy)
    }
}

/// Leaves the copies to the parent in a forked child: the driver must not be called there.
impl Drop for Resident {
    fn drop(&mut self) {
        if self.process != process::id() {
            let copies = self
                .copies
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            mem::forget(mem::take(copies));
        }
    }
}

#[cfg(test)]
mod tests;
