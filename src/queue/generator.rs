//! The caller's random number generator, for workers on several threads.

use alloc::boxed::Box;
use std::sync::{Mutex, PoisonError};

use rand_core::utils::next_word_via_fill;
use rand_core::{TryCryptoRng, TryRng};

use super::contain;
use crate::rsa::Error;

/// The caller's generator behind a lock. A batch draws once, to seed its streams, so the lock is
/// held briefly.
pub(super) struct Generator(Mutex<Box<Fill>>);

/// Fills octets, by a generator of any type. Callers only see [`Error::Rng`], so its own error is
/// dropped.
type Fill = dyn FnMut(&mut [u8]) -> Result<(), Error> + Send;

impl Generator {
    pub(super) fn new<R: TryCryptoRng + Send + 'static>(mut rng: R) -> Self {
        let fill = move |octets: &mut [u8]| rng.try_fill_bytes(octets).map_err(|_| Error::Rng);
        Self(Mutex::new(Box::new(fill)))
    }
}

impl TryRng for &Generator {
    type Error = Error;

    fn try_next_u32(&mut self) -> Result<u32, Error> {
        next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Error> {
        next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Error> {
        let mut fill = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // After a panic the generator is asked again for the next batch: a failure is per batch.
        contain(|| fill(octets)).unwrap_or(Err(Error::Rng))
    }
}

impl TryCryptoRng for &Generator {}
