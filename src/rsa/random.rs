//! Randomness for many threads from the caller's generator.

use core::sync::atomic::{AtomicU32, Ordering};

use batch_modexp_core::secret::{Secret, reveal};
use chacha20::ChaCha20Rng;
use crypto_bigint::CtEq;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};

use crate::rsa::Error;

/// Independent streams of random octets: ChaCha20 (RFC 8439) with one key of 256 bits from the
/// caller's generator, and another nonce for each stream.
///
/// The caller's generator is asked once for each batch, so neither its speed nor a lock around it
/// matters. The streams are as strong as a cryptographic generator seeded with those 256 bits.
pub(in crate::rsa) struct Streams {
    seed: Option<Secret<[u8; 32]>>,
    next: AtomicU32,
}

impl Streams {
    /// Seeds the streams with 32 octets from `rng`. Fails with [`Error::Rng`] if `rng` fails, or if
    /// all octets are equal.
    pub(in crate::rsa) fn seeded<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Self, Error> {
        let mut seed = Secret::new([0; 32]);
        rng.try_fill_bytes(&mut *seed).map_err(|_| Error::Rng)?;
        // A stuck generator repeats one octet; a sound one does so once in 2^248 times.
        let difference = seed.iter().fold(0, |bits, octet| bits | (octet ^ seed[0]));
        if reveal(!difference.ct_eq(&0)) {
            Ok(Self::of(seed))
        } else {
            Err(Error::Rng)
        }
    }

    fn of(seed: Secret<[u8; 32]>) -> Self {
        Self {
            seed: Some(seed),
            next: AtomicU32::new(0),
        }
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
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Each part of a batch uses one stream and has at least one item, so batches have fewer
        // parts.
        assert!(number < u32::MAX, "the streams are used up");
        Randomness(self.seed.as_ref().map(|seed| {
            let mut stream = ChaCha20Rng::from_seed(**seed);
            stream.set_stream(number.into());
            stream
        }))
    }
}

/// One of the [`Streams`], or none: then it fails with [`Error::Rng`].
pub(in crate::rsa) struct Randomness(Option<ChaCha20Rng>);

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of ascending octets.
    struct Counter(u8);

    impl TryRng for Counter {
        type Error = Error;

        fn try_next_u32(&mut self) -> Result<u32, Error> {
            Err(Error::Rng)
        }

        fn try_next_u64(&mut self) -> Result<u64, Error> {
            Err(Error::Rng)
        }

        fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Error> {
            octets.fill_with(|| {
                self.0 += 1;
                self.0
            });
            Ok(())
        }
    }

    impl TryCryptoRng for Counter {}

    fn first_octets(streams: &Streams) -> [u8; 40] {
        let mut octets = [0; 40];
        streams.next().try_fill_bytes(&mut octets).unwrap();
        octets
    }

    #[test]
    fn streams_differ_and_follow_from_the_seed() {
        let streams = Streams::seeded(&mut Counter(0)).unwrap();
        let (first, second) = (first_octets(&streams), first_octets(&streams));
        assert_ne!(first, second);
        let again = Streams::seeded(&mut Counter(0)).unwrap();
        assert_eq!(
            [first_octets(&again), first_octets(&again)],
            [first, second]
        );
        let other = Streams::seeded(&mut Counter(1)).unwrap();
        assert_ne!(first_octets(&other), first);
    }

    #[test]
    fn without_a_seed_there_is_none() {
        let mut randomness = Streams::none().next();
        assert!(randomness.try_fill_bytes(&mut [0; 4]).is_err());
        assert!(randomness.try_next_u32().is_err() && randomness.try_next_u64().is_err());
    }
}
