//! Backends that fail as a whole, and backends that only seem to work.

use std::sync::Arc;

use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueError};
use batch_modexp::rsa::Error;
use batch_modexp::rsa::KeyHandle;
use rand_core::{TryCryptoRng, TryRng};

use super::backends::{Failing, Fails};
use super::keys;
use super::policy::{key, patient, requests, wait_all};
use super::signatures::{PKCS1V15, verify};

#[test]
fn another_backend_takes_over() {
    let rsa = keys::rsa1024();
    let key = KeyHandle::new(&rsa).unwrap();
    for how in [Fails::WithAnError, Fails::WithAPanic] {
        // With `Serial`, unless another backend is given.
        let failing = || Failing::new(how, Serial);
        for builder in [patient(failing()), patient(failing()).fallback(Serial)] {
            let queue = builder.build().unwrap();
            for count in 1..=3 {
                let signature = queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
                verify(&rsa, PKCS1V15, b"m", &signature);
                assert_eq!(queue.stats().fallbacks, count);
            }
        }
    }
}

#[test]
fn without_another_everyone_gets_the_error() {
    let key = key();
    let failing = |how| Failing::new(how, Serial);
    let error = QueueError::Sign(batch_modexp::Error::ThreadPool { threads: 7 }.into());
    for (how, error) in [
        (Fails::WithAnError, &error),
        (Fails::WithAPanic, &QueueError::Panicked),
    ] {
        let builders = [
            patient(failing(how)).no_fallback(),
            // The failure of the fallback is reported.
            patient(failing(Fails::WithAnError)).fallback(failing(how)),
        ];
        for (fallbacks, builder) in builders.into_iter().enumerate() {
            let queue = builder.min_batch(4).build().unwrap();
            for signing in requests(&queue, &key, 4) {
                assert_eq!(signing.wait().as_ref(), Err(error));
            }
            let stats = queue.stats();
            assert_eq!((stats.batches, stats.failed, stats.signed), (1, 4, 0));
            assert_eq!(stats.fallbacks, fallbacks as u64);
        }
    }
}

/// An item that fails its check gets an error, without a position.
#[test]
fn what_is_not_delivered_is_a_fault() {
    let key = key();
    let failing = Failing::new(Fails::Silently, Serial);
    let queue = patient(failing).min_batch(3).build().unwrap();
    for signing in requests(&queue, &key, 3) {
        let fault = Error::Fault { index: 0 };
        assert_eq!(signing.wait(), Err(QueueError::Sign(fault)));
    }
    assert_eq!(queue.stats().fallbacks, 0);
}

#[test]
fn failures_now_and_then_are_not_seen() {
    let key = key();
    let failing = Arc::new(Failing::new(Fails::AtTimes, Serial));
    let queue = patient(failing.clone()).build().unwrap();
    for _ in 0..10 {
        wait_all(requests(&queue, &key, 3));
    }
    let stats = queue.stats();
    assert!(stats.fallbacks > 0);
    assert_eq!(stats.fallbacks, failing.failures() as u64);
    assert_eq!((stats.signed, stats.failed), (30, 0));
}

/// Fails, or panics, every other time.
struct Unreliable {
    calls: u32,
    panics: bool,
}

impl TryRng for Unreliable {
    type Error = getrandom::Error;

    fn try_next_u32(&mut self) -> Result<u32, getrandom::Error> {
        getrandom::u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, getrandom::Error> {
        getrandom::u64()
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), getrandom::Error> {
        self.calls += 1;
        match (self.calls % 2, self.panics) {
            (0, _) => getrandom::fill(octets),
            (_, false) => Err(getrandom::Error::UNSUPPORTED),
            (_, true) => std::panic::resume_unwind(Box::new("as asked")),
        }
    }
}

impl TryCryptoRng for Unreliable {}

/// A failure of the generator is one of the batch. No fallback can help, but the next batch may
/// succeed.
#[test]
fn the_generator_may_fail() {
    let key = key();
    let error = QueueError::Sign(Error::Rng);
    for panics in [false, true] {
        let rng = Unreliable { calls: 0, panics };
        let queue = BatchQueue::builder(Serial, rng).no_fallback().build();
        let queue = queue.unwrap();
        for _ in 0..2 {
            let result = queue.sign_blocking(&key, PKCS1V15, b"m");
            assert_eq!(result.as_ref(), Err(&error));
            queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
        }
    }
    for panics in [false, true] {
        let rng = Unreliable { calls: 0, panics };
        let queue = BatchQueue::builder(Serial, rng).fallback(Serial).build();
        let queue = queue.unwrap();
        let result = queue.sign_blocking(&key, PKCS1V15, b"m");
        assert_eq!(result.as_ref(), Err(&error));
        assert_eq!(queue.stats().fallbacks, 0);
    }
}
