//! Batches of generated RSA keys, with random probable primes by FIPS 186-5, appendix A.1.3.
//!
//! Candidates are drawn and divided by small primes ([`candidates`]); the rest are tested in
//! batches ([`primality`]). Two primes make a key ([`numbers`]), which is imported with all checks
//! of [`KeyHandle::from_components`].

pub(in crate::rsa) mod candidates;
mod export;
mod gcd;
pub(in crate::rsa) mod numbers;
pub(in crate::rsa) mod primality;
mod trial_division;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "std")]
use std::{panic::resume_unwind, thread};

use batch_modexp_core::engine::{Engine, SecretPowers};
use batch_modexp_core::secret::Secret;
use crypto_bigint::BoxedUint;
use rand_core::TryCryptoRng;

use self::candidates::Candidates;
pub use self::export::GeneratedKey;
use self::primality::Testers;
use self::trial_division::odd_primes;
use super::backend::{PerThread, RsaBackend};
use super::random::{Randomness, Streams};
use crate::rsa::{Error, MAX_BITS, MIN_BITS};

/// Lengths of keys are multiples of this, so that primes have whole limbs.
const STEP: u32 = 128;

/// Generates batches of RSA keys with two primes of equal length (FIPS 186-5, appendix A.1.3).
///
/// * Primes p and q are drawn independently and uniformly from the odd numbers from `sqrt(2)
///   2^(bits / 2 - 1)` to `2^(bits / 2)` that are 3 modulo 4. This is A.1.3 with a and b drawn from
///   3 and 7. The modulus n has exactly `bits` bits.
/// * A composite passes as a prime with a probability below 2^-128. The number of random bases in
///   the Miller-Rabin test follows the bound of Damgård, Landrock and Pomerance (1993). It is 6 for
///   primes of 1024 bits, 4 of 1536, 3 of 2048, and one more for safe primes.
/// * The primes satisfy `|p - q| > 2^(bits / 2 - 100)`, and p - 1 and q - 1 have no factor in
///   common with e. The private exponent `d = 1/e mod lcm(p - 1, q - 1)` is above `2^(bits / 2)`.
///
/// It becomes public which candidates are rejected, and by which test; they are independent of the
/// accepted ones. Nothing else about the primes does: tests are constant-time. Every buffer is wiped,
/// but crypto-bigint frees Montgomery parameters unwiped; see SECURITY.md, "Freed Montgomery
/// parameters".
///
/// Keys are divided among the threads of the processor ([`RsaBackend::per_host_thread`]); a backend
/// without any computes on the calling thread. If a backend has devices, these run the rounds of
/// the tests, and the processor repeats one for each prime in case a device has failed.
///
/// ```
/// use batch_modexp::backend::Auto;
/// use batch_modexp::rsa::KeyGenerator;
///
/// let generator = KeyGenerator::new(Auto::new()?, 1024)?;
/// for key in generator.generate(&mut getrandom::SysRng, 2)? {
///     assert_eq!(key.key().bits(), 1024);
///     assert!(key.to_pkcs8_pem().starts_with("-----BEGIN PRIVATE KEY-----"));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyGenerator<B> {
    backend: B,
    exponent: u32,
    candidates: Candidates,
    stop: Arc<AtomicBool>,
}

impl<B: RsaBackend + Sync> KeyGenerator<B> {
    /// Creates a generator of keys with moduli of `bits` bits and the public exponent 65537.
    /// `backend` may be a reference.
    ///
    /// # Errors
    ///
    /// [`Error::GeneratedKeySize`] unless `bits` is a multiple of 128 from 1024 to 8192. New keys
    /// should have at least 2048.
    pub fn new(backend: B, bits: u32) -> Result<Self, Error> {
        if !(MIN_BITS..=MAX_BITS).contains(&bits) || !bits.is_multiple_of(STEP) {
            return Err(Error::GeneratedKeySize { bits });
        }
        let exponent = 65_537;
        Ok(Self {
            candidates: candidates(bits / 2, exponent, false, &backend),
            backend,
            exponent,
            stop: Arc::default(),
        })
    }

    /// Sets another public exponent.
    ///
    /// # Errors
    ///
    /// [`Error::GeneratedExponent`] unless it is odd and above 2^16 (FIPS 186-5, section 5.4, step
    /// e).
    pub fn public_exponent(mut self, e: u32) -> Result<Self, Error> {
        if e.is_multiple_of(2) || e <= 1 << 16 {
            return Err(Error::GeneratedExponent { e });
        }
        self.exponent = e;
        let is_safe = self.candidates.is_safe;
        Ok(self.with_candidates(is_safe))
    }

    /// Makes p and q safe primes: `(p - 1) / 2` and `(q - 1) / 2` are primes too, and p and q are 7
    /// modulo 8. So n suits protocols such as threshold ECDSA and ring-Pedersen commitments: the
    /// squares modulo n form a cyclic group.
    ///
    /// RSA itself gains nothing by it. It takes much longer, the more so the longer the key is
    /// (`docs/keygen.md`).
    #[must_use]
    pub fn safe_primes(self) -> Self {
        self.with_candidates(true)
    }

    /// Lets other threads end [`generate`](Self::generate): soon after `stop` is true, it returns the
    /// keys that are complete. Threads finish the candidates that they are testing, up to 256 each,
    /// or 8,192 with GPUs. As long as `stop` is true, later calls return no keys.
    #[must_use]
    pub fn stop_on(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    fn with_candidates(mut self, is_safe: bool) -> Self {
        let bits = self.candidates.bits;
        self.candidates = candidates(bits, self.exponent, is_safe, &self.backend);
        self
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Generates `count` keys, derived from 256 bits of `rng` by ChaCha20 (RFC 8439). Returns fewer
    /// only if it is [stopped](Self::stop_on).
    ///
    /// # Errors
    ///
    /// [`Error::Rng`] if the generator fails or returns 32 equal octets, or if too many candidates
    /// are rejected for it to be random.
    ///
    /// [`Error::Backend`] if GPUs fail that were asked for by name, for instance for lack of memory. A
    /// lost one is replaced by the others, the last one by the processor.
    pub fn generate<R>(&self, rng: &mut R, count: usize) -> Result<Vec<GeneratedKey>, Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let streams = Streams::seeded(rng)?;
        #[cfg(feature = "std")]
        if let Some(host) = self.backend.per_host_thread() {
            return self.on_threads(host, &streams, count);
        }
        self.on_thread(self.backend.engine().0, &mut streams.next(), count)
    }

    /// The number of keys that keeps all threads and GPUs busy. To show progress, call
    /// [`generate`](Self::generate) for this many at a time.
    pub fn granularity(&self) -> usize {
        let host = self.backend.per_host_thread();
        let threads = host.map_or(1, |host| self.threads(host));
        let has_devices = has_devices(&self.backend);
        let primes = primality::primes_at_a_time(&self.candidates, has_devices);
        // The last tests of a call are few, and take a device as long as many.
        let batches = if has_devices { 4 } else { 1 };
        batches * threads * primes.div_ceil(2)
    }

    /// The number of threads that generate keys. With devices two for each of the processor: one
    /// draws candidates while the other waits for a device.
    fn threads(&self, host: PerThread<'_>) -> usize {
        let threads = host.threads.get();
        if has_devices(&self.backend) {
            2 * threads
        } else {
            threads
        }
    }

    /// Generates a share of the keys on each thread.
    #[cfg(feature = "std")]
    fn on_threads(
        &self,
        host: PerThread<'_>,
        streams: &Streams,
        count: usize,
    ) -> Result<Vec<GeneratedKey>, Error> {
        let threads = self.threads(host).min(count).max(1);
        let engine = host.backend.engine().0;
        let generate = |count: usize| self.on_thread(engine, &mut streams.next(), count);
        let mut shares = (0..threads).map(|thread| (count + thread) / threads);
        let mut own = shares.next().unwrap_or(0);
        thread::scope(|scope| {
            let mut others = Vec::with_capacity(threads);
            for count in shares {
                let start = thread::Builder::new().spawn_scoped(scope, move || generate(count));
                match start {
                    Ok(other) => others.push(other),
                    // The operating system refused the thread.
                    Err(_) => own += count,
                }
            }
            let mut keys = generate(own)?;
            for other in others {
                keys.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok(keys)
        })
    }

    /// Generates keys on the calling thread.
    fn on_thread(
        &self,
        engine: &dyn Engine,
        randomness: &mut Randomness,
        count: usize,
    ) -> Result<Vec<GeneratedKey>, Error> {
        let on_devices = |powers: SecretPowers<'_>| self.backend.exponentiate(powers);
        let testers = Testers {
            engine,
            devices: has_devices(&self.backend).then_some(&on_devices),
            stop: &self.stop,
        };
        let mut keys = Vec::new();
        let mut primes: Vec<Secret<BoxedUint>> = Vec::new();
        while keys.len() < count && !self.stop.load(Ordering::Relaxed) {
            let missing = (count - keys.len()).saturating_mul(2);
            let missing = missing.saturating_sub(primes.len());
            primes.extend(primality::primes(
                testers,
                &self.candidates,
                randomness,
                missing,
            )?);
            let stops = || self.stop.load(Ordering::Relaxed);
            while keys.len() < count && primes.len() >= 2 && !stops() {
                // Two primes that do not fit together are both discarded.
                let pair = <[_; 2]>::try_from(primes.split_off(primes.len() - 2));
                let pair = pair.unwrap_or_else(|_| unreachable!("these are two"));
                keys.extend(numbers::key(self.exponent, pair)?);
            }
        }
        Ok(keys)
    }
}

/// Whether a backend has devices beside the processor.
fn has_devices<B: RsaBackend>(backend: &B) -> bool {
    backend.per_thread().is_none() && backend.per_host_thread().is_some()
}

/// Candidates of `bits` bits are divided by all odd primes below this. More would take longer than
/// the primality tests they save, by estimates for 1024 bits.
///
/// The time of a test is proportional to the cube of the length, that of a division to the length,
/// and a prime p divides one candidate in p. The best bound is therefore proportional to the square
/// of the length.
fn small_primes_below<B: RsaBackend>(bits: u32, backend: &B) -> u32 {
    let for_1024_bits = match has_devices(backend) {
        true => 1 << 10,
        false => u64::from(backend.engine().0.trial_division_bound()),
    };
    let square = u64::from(bits).pow(2);
    ((for_1024_bits * square) >> 20).clamp(1 << 10, 1 << 16) as u32
}

/// Candidates of `bits` bits for primes of a key with the exponent `e`.
fn candidates<B: RsaBackend>(bits: u32, e: u32, is_safe: bool, backend: &B) -> Candidates {
    let below = small_primes_below(bits, backend);
    Candidates::new(bits, &factors(e), below, is_safe)
}

/// The prime factors of `e` below 2^16. A candidate less 1 is so rarely a multiple of a larger one that
/// [`numbers::key`] may reject the prime.
fn factors(e: u32) -> Vec<u32> {
    let mut factors = odd_primes(1 << 16);
    factors.retain(|prime| e.is_multiple_of(*prime));
    factors
}

impl<B: fmt::Debug> fmt::Debug for KeyGenerator<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyGenerator")
            .field("backend", &self.backend)
            .field("bits", &(2 * self.candidates.bits))
            .field("public_exponent", &self.exponent)
            .field("safe_primes", &self.candidates.is_safe)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_exponents() {
        assert_eq!(factors(65_537), []);
        assert_eq!(factors(3 * 3 * 7 * 65_521), [3, 7, 65_521]);
        assert_eq!(factors(65_539 * 65_521), [65_521]);
        assert_eq!(factors(u32::MAX), [3, 5, 17, 257]);
    }

    #[test]
    fn public_exponents() {
        use batch_modexp_core::Serial;
        for (e, is_valid) in [
            (0, false),
            (1, false),
            (3, false),
            (65_535, false),
            (65_536, false),
            (65_537, true),
            (65_538, false),
            (65_539, true),
        ] {
            let generator = KeyGenerator::new(Serial, 1024).unwrap().public_exponent(e);
            assert_eq!(
                generator.err(),
                (!is_valid).then_some(Error::GeneratedExponent { e })
            );
        }
    }
}
