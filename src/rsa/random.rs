//! Randomness for many threads from the caller's generator, and random numbers below n.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use batch_modexp_core::limbs::is_below;
use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use chacha20::ChaCha20Rng;
use crypto_bigint::{CtEq, Limb};
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};

use super::limbs::octets_to_limbs;
use crate::rsa::Error;

/// Independent streams of random octets: ChaCha20 (RFC 8439) with one key of 256 bits from the
/// caller's generator, and another nonce for each stream.
///
/// The caller's generator is asked once for each batch, so neither its speed nor a lock around it
/// matters. The streams are as strong as a cryptographic generator seeded with those 256 bits.
pub(in crate::rsa) struct Streams {
    /// In the heap, because moving an array leaves a copy on the stack.
    seed: Option<Secret<Vec<u8>>>,
    next: AtomicU32,
}

impl Streams {
    /// Seeds the streams with 32 octets from `rng`. Fails with [`Error::Rng`] if `rng` fails, or if
    /// all octets are equal.
    pub(in crate::rsa) fn seeded<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Self, Error> {
        let mut seed = Secret::new(vec![0; 32]);
        rng.try_fill_bytes(&mut seed).map_err(|_| Error::Rng)?;
        // A stuck generator repeats one octet; a sound one does so once in 2^248 times.
        let difference = seed.iter().fold(0, |bits, octet| bits | (octet ^ seed[0]));
        if reveal(difference.ct_eq(&0)) {
            return Err(Error::Rng);
        }
        Ok(Self {
            seed: Some(seed),
            next: AtomicU32::new(0),
        })
    }

    /// Streams for batches that need no randomness: drawing from them is an error.
    pub(in crate::rsa) fn none() -> Self {
        Self {
            seed: None,
            next: AtomicU32::new(0),
        }
    }

    /// Returns an unused stream.
    pub(in crate::rsa) fn next(&self) -> Randomness {
        let next = |number: u32| number.checked_add(1);
        let number = self.next.fetch_update(Relaxed, Relaxed, next);
        // Each part of a batch uses one stream and has at least one item, so batches have fewer
        // parts.
        let number = number.expect("the streams are used up");
        let stream = |seed: &Secret<Vec<u8>>| {
            let mut key = [0; 32];
            key.copy_from_slice(seed);
            let mut stream = Box::new(ChaCha20Rng::from_seed(key));
            stream.set_stream(number.into());
            stream
        };
        Randomness(self.seed.as_ref().map(|seed| scrubbed(|| stream(seed))))
    }
}

/// One of the [`Streams`], or none: then it fails with [`Error::Rng`].
pub(in crate::rsa) struct Randomness(Option<Box<ChaCha20Rng>>);

impl TryRng for Randomness {
    type Error = Error;

    fn try_next_u32(&mut self) -> Result<u32, Error> {
        self.0.as_mut().map(Rng::next_u32).ok_or(Error::Rng)
    }

    fn try_next_u64(&mut self) -> Result<u64, Error> {
        self.0.as_mut().map(Rng::next_u64).ok_or(Error::Rng)
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Error> {
        let stream = self.0.as_mut().ok_or(Error::Rng)?;
        stream.fill_bytes(octets);
        Ok(())
    }
}

impl TryCryptoRng for Randomness {}

/// Draws a random number from 1 to n - 1, for an n of `n_bits` bits; `octets` is scratch memory as
/// long as n.
///
/// Rejection sampling among numbers as long as n, at least half of which are below it. The rejections
/// say nothing about the accepted number, and are public.
///
/// Fails with [`Error::Rng`] if the generator fails, or if none of 128 candidates is accepted
/// because it is stuck.
pub(in crate::rsa) fn draw_below<R: TryCryptoRng + ?Sized>(
    n: &[Limb],
    n_bits: u32,
    rng: &mut R,
    octets: &mut [u8],
    number: &mut [Limb],
) -> Result<(), Error> {
    const ATTEMPTS: u32 = 128;
    let excess_bits = 8 * octets.len() as u32 - n_bits;
    for _ in 0..ATTEMPTS {
        rng.try_fill_bytes(octets).map_err(|_| Error::Rng)?;
        octets[0] &= 0xff >> excess_bits;
        octets_to_limbs(octets, number);
        let bits = number.iter().fold(Limb::ZERO, |bits, limb| bits | *limb);
        if reveal(is_below(number, n) & !bits.ct_eq(&Limb::ZERO)) {
            return Ok(());
        }
    }
    Err(Error::Rng)
}

#[cfg(test)]
mod tests;
