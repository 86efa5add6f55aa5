//! Callers that compute a batch on their own threads.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use batch_modexp::queue::{BatchQueue, QueueError, QueueStats, Shutdown};
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::{RsaBackend, SecretPowers};
use batch_modexp::{Error, backend::Serial};

use super::backends::{Failing, Fails, Gate};
use super::keys;
use super::policy::{key, patient, requests, wait_all};
use super::signatures::{PKCS1V15, verify};

/// Computes only on threads of callers, or only on those of queues.
#[derive(Clone, Copy, PartialEq)]
enum OnlyOn {
    Callers,
    Workers,
}

impl RsaBackend for OnlyOn {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        let is_worker = |name: &str| name.starts_with("batch-modexp-queue");
        let this = match thread::current().name().is_some_and(is_worker) {
            true => Self::Workers,
            false => Self::Callers,
        };
        match this == *self {
            true => Serial.exponentiate(powers),
            false => Err(Error::ThreadPool { threads: 3 }),
        }
    }
}

/// The number of batches, and of those that callers computed.
fn batches(stats: &QueueStats) -> (u64, u64) {
    (stats.batches, stats.led)
}

/// The first result of `attempt` for which a caller computed. A worker computes instead if it looks
/// for work just when a request has arrived. After the start of a queue, or after an answer, a
/// caller cannot tell whether the worker sleeps.
fn until_led<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let led = (0..1000).find_map(|_| attempt());
    led.expect("workers were quicker a thousand times")
}

#[test]
fn who_blocks_computes_and_others_do_not() {
    let rsa = keys::rsa1024();
    let key = KeyHandle::new(&rsa).unwrap();
    let queue = patient(OnlyOn::Callers).no_fallback().build().unwrap();
    // Batches that a worker computes are refused.
    let by_caller = |result| match result {
        Err(QueueError::Sign(batch_modexp::rsa::Error::Backend(Error::ThreadPool {
            threads: 3,
        }))) => None,
        result => Some(result.unwrap()),
    };
    let signature = until_led(|| by_caller(queue.sign_blocking(&key, PKCS1V15, b"m")));
    verify(&rsa, PKCS1V15, b"m", &signature);
    until_led(|| by_caller(queue.sign_prehash_blocking(&key, PKCS1V15, &[7; 32])));
    let stats = queue.stats();
    assert_eq!((stats.led, stats.signed), (2, 2));

    let queue = patient(OnlyOn::Workers).no_fallback().build().unwrap();
    queue.sign(&key, PKCS1V15, b"m").wait().unwrap();
    let limit = Duration::from_secs(3600);
    let signing = queue.sign(&key, PKCS1V15, b"m");
    signing.wait_timeout(limit).unwrap();
    assert_eq!(batches(&queue.stats()), (2, 0));

    let builder = patient(OnlyOn::Workers).no_fallback();
    let queue = builder.callers_compute(false).build().unwrap();
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    assert_eq!(batches(&queue.stats()), (1, 0));
}

/// A caller waits while a batch has the whole backend, and while there are too few requests for a
/// batch.
#[test]
fn who_may_not_begin_waits() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m"));
        while queue.stats().waiting == 0 {
            thread::yield_now();
        }
        // The caller is counted; it may not have looked for a batch yet.
        thread::sleep(Duration::from_millis(10));
        assert_eq!(gate.calls(), 1);
        gate.open();
        blocked.join().unwrap().unwrap();
    });
    wait_all(first);
    assert_eq!(queue.stats().batches, 2);

    let queue = patient(Serial).min_batch(2).build().unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m"));
        while queue.stats().waiting == 0 {
            thread::yield_now();
        }
        // This request completes a batch.
        queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
        one.join().unwrap().unwrap();
    });
    assert_eq!(queue.stats().batch_sizes.sum(), 2);
}

#[test]
fn a_backend_that_fails_is_replaced() {
    let rsa = keys::rsa1024();
    let key = KeyHandle::new(&rsa).unwrap();
    for how in [Fails::WithAnError, Fails::WithAPanic] {
        let stats = until_led(|| {
            let queue = patient(Failing::new(how, Serial)).build().unwrap();
            let signature = queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
            verify(&rsa, PKCS1V15, b"m", &signature);
            let stats = queue.stats();
            (stats.led > 0).then_some(stats)
        });
        assert_eq!((stats.led, stats.fallbacks), (1, 1));
        let stats = until_led(|| {
            let failing = patient(Failing::new(how, Serial)).no_fallback();
            let queue = failing.build().unwrap();
            assert!(queue.sign_blocking(&key, PKCS1V15, b"m").is_err());
            let stats = queue.stats();
            (stats.led > 0).then_some(stats)
        });
        assert_eq!((stats.led, stats.fallbacks), (1, 0));
    }
}

/// Uses separate threads: those of a scope would wait at the gate for ever if the test failed.
#[test]
fn a_shutdown_waits_for_them() {
    let key = key();
    let (gate, queue, caller) = until_led(|| {
        let gate = Gate::shut();
        // Requests must not fill a batch, which would begin before the shutdown.
        let queue = patient(gate.clone()).max_batch(1 << 30).build().unwrap();
        let (of_caller, key) = (queue.clone(), key.clone());
        let caller = thread::spawn(move || of_caller.sign_blocking(&key, PKCS1V15, b"m"));
        gate.wait_for_calls(1);
        if queue.stats().led > 0 {
            return Some((gate, queue, caller));
        }
        gate.open();
        caller.join().unwrap().unwrap();
        None
    });
    let of_another = queue.clone();
    let shutdown = thread::spawn(move || {
        of_another.shutdown(Shutdown::Cancel);
        of_another.stats().signed
    });
    // The last of these may enter while the queue closes, and is signed then.
    let others: Vec<_> = std::iter::from_fn(|| match queue.try_sign(&key, PKCS1V15, b"m") {
        Err(QueueError::ShutDown) => None,
        result => Some(result),
    })
    .collect();
    // The batch is under way until the gate opens.
    thread::sleep(Duration::from_millis(10));
    assert!(!shutdown.is_finished());
    gate.open();
    caller.join().unwrap().unwrap();
    let results = others.into_iter().map(|other| other?.wait());
    let signed = results.filter(Result::is_ok).count() as u64;
    assert!(signed <= 1);
    assert_eq!(shutdown.join().unwrap(), 1 + signed);
    assert_eq!(queue.stats().led, 1);
}

/// Shuts the queue down, then panics.
struct Ends(BatchQueue);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.0.shutdown(Shutdown::Drain);
        std::panic::resume_unwind(Box::new("as asked"));
    }
}

/// A task is woken on the thread of the caller that computed its request. Its waker has no
/// restrictions there either.
#[test]
fn wakers_on_their_threads() {
    let key = key();
    let (queue, stats) = until_led(|| {
        let gate = Gate::shut();
        // All threads are taken; this request waits for the first free one.
        let builder = patient(super::backends::Threads {
            backend: gate.clone(),
            count: NonZeroUsize::MIN,
        });
        let queue = builder.min_batch(2).build().unwrap();
        let mut task = queue.sign(&key, PKCS1V15, b"m");
        let waker = Waker::from(Arc::new(Ends(queue.clone())));
        let polled = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        gate.open();
        // The second request starts a batch of both.
        queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
        task.wait().unwrap();
        let stats = queue.stats();
        (stats.led > 0).then_some((queue, stats))
    });
    assert_eq!(batches(&stats), (1, 1));
    let refused = queue.try_sign(&key, PKCS1V15, b"m").unwrap_err();
    assert_eq!(refused, QueueError::ShutDown);
}
