//! The caller's random number generator, for workers on several threads.

use alloc::boxed::Box;
use core::fmt;
use std::sync::{Mutex, PoisonError};

use rand_core::{TryCryptoRng, TryRng};

use super::contain;

/// The caller's generator behind a lock. A batch draws once, to seed its streams, so the lock is
/// held briefly.
pub(super) struct Generator(Mutex<Box<dyn Octets + Send>>);

impl Generator {
    pub(super) fn new<R: TryCryptoRng + Send + 'static>(rng: R) -> Self {
        Self(Mutex::new(Box::new(rng)))
    }

    fn draw(&self, octets: &mut [u8]) -> Result<(), Failed> {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // After a panic the generator is asked again for the next batch: a failure is per batch.
        contain(|| rng.fill(octets)).unwrap_or(Err(Failed))
    }
}

/// A generator of any error type.
trait Octets {
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), Failed>;
}

impl<R: TryCryptoRng> Octets for R {
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), Failed> {
        self.try_fill_bytes(octets).map_err(|_| Failed)
    }
}

/// The generator failed, by an error or a panic. Callers only see
/// [`Error::Rng`](crate::rsa::Error::Rng), so its own error is dropped.
#[derive(Debug)]
pub(super) struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the random number generator failed")
    }
}

impl core::error::Error for Failed {}

impl TryRng for &Generator {
    type Error = Failed;

    fn try_next_u32(&mut self) -> Result<u32, Failed> {
        let mut octets = [0; 4];
        self.draw(&mut octets)?;
        Ok(u32::from_le_bytes(octets))
    }

    fn try_next_u64(&mut self) -> Result<u64, Failed> {
        let mut octets = [0; 8];
        self.draw(&mut octets)?;
        Ok(u64::from_le_bytes(octets))
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Failed> {
        self.draw(octets)
    }
}

impl TryCryptoRng for &Generator {}
