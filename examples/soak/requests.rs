//! Requests to queues: answered, cancelled, timed out and refused.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use batch_modexp::queue::{BatchQueue, QueueError, Shutdown, Signing};
use batch_modexp::rsa::{AnyScheme, KeyHandle, Signature};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;

use crate::keys::{self, Key};
use crate::signing::{expected_error, hash, scheme, verify};
use crate::work::{Done, Outcome, Place, below, expect, pick};

/// The most requests of one call. Several threads wait at once.
const LARGEST: usize = 32;

/// A digest to sign.
struct Digest<'a> {
    key: &'a Key,
    scheme: AnyScheme,
    octets: Vec<u8>,
}

impl<'a> Digest<'a> {
    fn random(place: &'a Place, rng: &mut ChaCha20Rng) -> Self {
        let (key, scheme) = (pick(rng, &place.keys), scheme(rng));
        let mut octets = vec![0; hash(scheme).digest_len()];
        rng.fill_bytes(&mut octets);
        Self {
            key,
            scheme,
            octets,
        }
    }

    /// Checks and counts an answer, or returns its fault.
    fn look_at(
        &self,
        answer: Result<Signature, QueueError>,
        done: &mut Done,
    ) -> Result<(), String> {
        match (
            answer,
            expected_error(0, self.key, self.scheme, &self.octets),
        ) {
            (Ok(signature), None) => {
                done.checked += 1;
                verify(self.key, self.scheme, &self.octets, &signature)
            }
            (Err(QueueError::TimedOut), _) => {
                done.cancelled += 1;
                Ok(())
            }
            (Err(QueueError::Full), _) => {
                done.errors += 1;
                Ok(())
            }
            (Err(QueueError::Sign(error)), Some(expected)) if error == expected => {
                done.errors += 1;
                Ok(())
            }
            (answer, _) => Err(format!("a queue answered {answer:?}")),
        }
    }
}

/// Sends requests to the queue that all threads share. Some are dropped, some get a short time
/// limit.
pub(crate) fn requests(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let mut done = Done::default();
    let digests: Vec<_> = (0..place.size(rng).min(LARGEST))
        .map(|_| Digest::random(place, rng))
        .collect();
    let mut asked = Vec::new();
    for digest in &digests {
        done.items += 1;
        let (handle, octets) = (&digest.key.handle, &digest.octets);
        match below(rng, 8) {
            0 => {
                drop(place.queue.sign_prehash(handle, digest.scheme, octets));
                done.cancelled += 1;
            }
            1 => match place.queue.try_sign_prehash(handle, digest.scheme, octets) {
                Ok(signing) => asked.push((digest, signing)),
                Err(error) => digest.look_at(Err(error), &mut done)?,
            },
            _ => asked.push((
                digest,
                place.queue.sign_prehash(handle, digest.scheme, octets),
            )),
        }
    }
    for (digest, signing) in asked {
        let answer = match below(rng, 4) {
            0 => signing.wait_timeout(Duration::from_micros(below(rng, 20_000) as u64)),
            _ => signing.wait(),
        };
        digest.look_at(answer, &mut done)?;
    }
    Ok(done)
}

/// A queue and an imported key that are dropped with requests in flight. Accepted requests are
/// signed, or answered that the queue was shut down.
pub(crate) fn short_lives(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let backend = Arc::clone(pick(rng, &place.backends));
    let queue = BatchQueue::builder(backend, getrandom::SysRng)
        .max_batch(4)
        .workers(NonZeroUsize::MIN)
        .no_fallback()
        .build()
        .map_err(|error| format!("a queue: {error}"))?;
    let mut done = Done::default();
    let key = pick(rng, &place.keys);
    let handle: KeyHandle =
        keys::import(key.pem).map_err(|error| format!("a queue's key: {error}"))?;
    let asked: Vec<(Digest<'_>, Signing)> = (0..1 + below(rng, 8))
        .map(|_| {
            let digest = Digest {
                key,
                ..Digest::random(place, rng)
            };
            let signing = queue.sign_prehash(&handle, digest.scheme, &digest.octets);
            (digest, signing)
        })
        .collect();
    drop(handle);
    let is_cancelled = below(rng, 2) == 0;
    match is_cancelled {
        true => queue.shutdown(Shutdown::Cancel),
        false => drop(queue),
    }
    for (digest, signing) in asked {
        done.items += 1;
        match signing.wait() {
            Err(QueueError::ShutDown) => {
                expect(is_cancelled, || {
                    "a queue that was drained gave a request up".into()
                })?;
                done.cancelled += 1;
            }
            answer => digest.look_at(answer, &mut done)?,
        }
    }
    Ok(done)
}
