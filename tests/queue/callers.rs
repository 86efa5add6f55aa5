//! Callers that compute a batch on their own threads.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use batch_modexp::queue::{BatchQueue, QueueError, QueueStats, Shutdown};
use batch_modexp::rsa::{KeyHandle, RsaPrivateOp};
use batch_modexp::{BatchModExp, Error, ModExp, backend::Serial};
use crypto_bigint::BoxedUint;

use super::backends::{Failing, Fails, Gate};
use super::keys;
use super::policy::{key, patient, requests, wait_all};
use super::signatures::{PKCS1V15, verify};

/// Computes on no thread but those of this name.
struct OnlyOn(&'static str);

impl BatchModExp<BoxedUint> for OnlyOn {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        match thread::current().name() {
            Some(name) if name.contains(self.0) => Serial.batch_mod_exp(batch, exponent_bits, out),
            _ => Err(Error::ThreadPool { threads: 3 }),
        }
    }
}

impl RsaPrivateOp for OnlyOn {}

/// Batches, and those that callers computed.
fn batches(stats: &QueueStats) -> (u64, u64) {
    (stats.batches, stats.led)
}

#[test]
fn who_blocks_computes_and_others_do_not() {
    let rsa = keys::rsa1024();
    let key = KeyHandle::new(&rsa).unwrap();
    let queue = patient(OnlyOn("callers::")).no_fallback().build().unwrap();
    for _ in 0..3 {
        let signature = queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
        verify(&rsa, PKCS1V15, b"m", &signature);
    }
    queue
        .sign_prehash_blocking(&key, PKCS1V15, &[7; 32])
        .unwrap();
    assert_eq!(batches(&queue.stats()), (4, 4));

    let queue = patient(OnlyOn("queue")).no_fallback().build().unwrap();
    queue.sign(&key, PKCS1V15, b"m").wait().unwrap();
    let limit = Duration::from_secs(3600);
    let signing = queue.sign(&key, PKCS1V15, b"m");
    signing.wait_timeout(limit).unwrap();
    assert_eq!(batches(&queue.stats()), (2, 0));

    let builder = patient(OnlyOn("queue")).no_fallback();
    let queue = builder.callers_compute(false).build().unwrap();
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    assert_eq!(batches(&queue.stats()), (1, 0));
}

/// While a batch is under way that has the whole backend, and while there are too few for one.
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
        gate.open();
        blocked.join().unwrap().unwrap();
    });
    wait_all(first);
    assert_eq!(batches(&queue.stats()), (2, 0));

    let queue = patient(Serial).min_batch(2).build().unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m"));
        while queue.stats().waiting == 0 {
            thread::yield_now();
        }
        // With this one there are enough.
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
        let queue = patient(Failing::new(how, Serial)).build().unwrap();
        let signature = queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
        verify(&rsa, PKCS1V15, b"m", &signature);
        let stats = queue.stats();
        assert_eq!((stats.led, stats.fallbacks), (1, 1));
        let failing = patient(Failing::new(how, Serial)).no_fallback();
        let queue = failing.build().unwrap();
        assert!(queue.sign_blocking(&key, PKCS1V15, b"m").is_err());
        assert_eq!(queue.stats().led, 1);
    }
}

#[test]
fn a_shutdown_waits_for_them() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let caller = scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m"));
        gate.wait_for_calls(1);
        scope.spawn(|| {
            queue.shutdown(Shutdown::Cancel);
            is_over.store(true, SeqCst);
            assert_eq!(queue.stats().signed, 1);
        });
        while queue.try_sign(&key, PKCS1V15, b"m").err() != Some(QueueError::ShutDown) {}
        assert_eq!(queue.stats().led, 1);
        // The batch is under way until the gate opens.
        assert!(!is_over.load(SeqCst));
        gate.open();
        caller.join().unwrap().unwrap();
    });
    assert!(is_over.load(SeqCst));
}

/// Ends the queue, and then panics.
struct Ends(BatchQueue);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.0.shutdown(Shutdown::Drain);
        std::panic::resume_unwind(Box::new("as asked"));
    }
}

/// A task is woken on the thread of a caller that has computed its request; there, too, it may do as it likes.
#[test]
fn wakers_on_their_threads() {
    let (gate, key) = (Gate::shut(), key());
    // All threads are taken; this request waits for the first that is free.
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
    // The second request makes the batch, which has both.
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    task.wait().unwrap();
    assert_eq!(batches(&queue.stats()), (1, 1));
    let refused = queue.try_sign(&key, PKCS1V15, b"m").unwrap_err();
    assert_eq!(refused, QueueError::ShutDown);
}
