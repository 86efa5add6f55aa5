//! Stores that bypass the caches (non-temporal stores: Intel SDM, volume 1, 10.4.6.2).
//!
//! The host writes the inputs of a chunk once, and only the device reads them, from memory. An
//! ordinary store first loads the line into a cache, and evicts other data. The device waits for
//! its first chunks while they are being written (docs/log/performance-gpu-log.md, "Past the caches").
#![allow(unsafe_code)]

use core::marker::PhantomData;

use crypto_bigint::Limb;

use super::write_limbs;

/// Writes numbers with non-temporal stores. It borrows their places, so that nothing reads them
/// before they are in memory.
///
/// It is not `Send`, because a fence only orders the stores of its own thread. The pointer ensures
/// that.
pub(crate) struct NonTemporal<'w>(PhantomData<(&'w mut [u64], *mut ())>);

impl<'w> NonTemporal<'w> {
    /// Runs `write`, which writes numbers. All stores are complete when this returns.
    pub(crate) fn with<R>(write: impl FnOnce(&mut Self) -> R) -> R {
        // Dropped, with its fence, even if `write` panics.
        let mut stores = Self(PhantomData);
        write(&mut stores)
    }

    /// Copies `limbs` to `words`, with zeros above.
    pub(crate) fn copy_in(&mut self, limbs: &[Limb], words: &'w mut [u64]) {
        write_limbs(limbs, words, store);
    }
}

impl Drop for NonTemporal<'_> {
    /// Orders the stores before later ones, such as those that announce the numbers to other
    /// threads and the device.
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: all processors of this architecture have SSE.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn store(place: &mut u64, word: u64) {
    // SAFETY: the place is that of a word, and all processors of this architecture have SSE2. A
    // fence precedes every other access: the place is borrowed until this thread drops the
    // `NonTemporal`, which executes one.
    unsafe { core::arch::x86_64::_mm_stream_si64(core::ptr::from_mut(place).cast(), word as i64) };
}

#[cfg(not(target_arch = "x86_64"))]
fn store(place: &mut u64, word: u64) {
    *place = word;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::words::copy_in;
    use alloc::vec;

    #[test]
    fn numbers_are_as_by_ordinary_stores() {
        let limbs = [1, 2, 3, 4, 5].map(|i| Limb(Limb::MAX.0 - i));
        for len in [0, 1, 5, 8] {
            let [mut expected, mut words] = [7; 2].map(|word| vec![word; len]);
            copy_in(&limbs, &mut expected);
            NonTemporal::with(|stores| stores.copy_in(&limbs, &mut words));
            assert_eq!(words, expected);
        }
    }
}
