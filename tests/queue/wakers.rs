//! Code of callers that the queue calls: wakers, backends and generators. It must not block in the
//! queue, and may panic.

use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use batch_modexp::Error;
use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueError, Shutdown, Signing};
use batch_modexp::rsa::backend::{Items, PerThread, RsaBackend, SecretPowers};
use batch_modexp::rsa::{KeyHandle, Signature};

use super::backends::{Gate, Threads};
use super::policy::{key, patient, requests, wait_all};
use super::signatures::PKCS1V15;

/// How long a test waits for an event that should come at once. If the queue stalls, the event
/// never comes.
const LONG: Duration = Duration::from_secs(60);

/// Calls a function once, when woken.
struct Calls<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        let function = self.0.lock().unwrap().take();
        if let Some(function) = function {
            function();
        }
    }
}

/// Polls a request, which must not be answered yet, with a waker that calls `function`.
fn when_woken(signing: &mut Signing, function: impl FnOnce() + Send + 'static) {
    let waker = Waker::from(Arc::new(Calls(Mutex::new(Some(function)))));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(signing).poll(&mut context).is_pending());
}

/// The results of all ways to block.
fn block(queue: &BatchQueue, key: &KeyHandle) -> [Result<Signature, QueueError>; 4] {
    [
        queue.sign_blocking(key, PKCS1V15, b"m"),
        queue.sign_prehash_blocking(key, PKCS1V15, &[7; 32]),
        queue.sign(key, PKCS1V15, b"m").wait(),
        queue.sign(key, PKCS1V15, b"m").wait_timeout(LONG),
    ]
}

fn assert_refused(results: &Receiver<[Result<Signature, QueueError>; 4]>) {
    let results = results.recv_timeout(LONG);
    let results = results.expect("a call blocks in a waker, and the queue with it");
    assert_eq!(results, [0; 4].map(|_| Err(QueueError::WouldDeadlock)));
}

/// All threads of the backend, and all workers, would be in wakers that wait for each other.
#[test]
fn a_waker_may_not_block() {
    let (gate, key) = (Gate::shut(), key());
    let threads = Threads {
        backend: gate.clone(),
        count: NonZeroUsize::MIN,
    };
    for queue in [patient(gate.clone()), patient(threads)] {
        let queue = queue.build().unwrap();
        let (sender, results) = channel();
        let mut task = queue.sign(&key, PKCS1V15, b"m");
        let (of_waker, key) = (queue.clone(), key.clone());
        when_woken(&mut task, move || {
            sender.send(block(&of_waker, &key)).unwrap();
        });
        gate.open();
        assert_refused(&results);
        task.wait().unwrap();
        gate.close();
    }
    gate.open();
}

/// Nor may it block on a caller's own thread, where a cancelled request frees a place for it.
#[test]
fn a_waker_may_not_block_anywhere() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(1).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let inside = requests(&queue, &key, 1);
    let mut outside = queue.sign(&key, PKCS1V15, b"m");
    let (sender, results) = channel();
    let (of_waker, of_thread) = (queue.clone(), key.clone());
    when_woken(&mut outside, move || {
        sender.send(block(&of_waker, &of_thread)).unwrap();
    });
    let leaving = std::thread::spawn(move || drop(inside));
    assert_refused(&results);
    leaving.join().unwrap();
    gate.open();
    wait_all(first);
    outside.wait().unwrap();
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
}

/// A backend that asks a queue for a signature instead of computing one.
struct Asks {
    queue: Mutex<Option<BatchQueue>>,
    key: KeyHandle,
    results: Mutex<Sender<[Result<Signature, QueueError>; 4]>>,
}

impl RsaBackend for Asks {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        let queue = self.queue.lock().unwrap().take();
        if let Some(queue) = queue {
            let results = block(&queue, &self.key);
            self.results.lock().unwrap().send(results).unwrap();
        }
        Serial.compute(items)
    }
}

#[test]
fn a_backend_may_not_block_in_its_queue() {
    let (sender, results) = channel();
    let backend = Arc::new(Asks {
        queue: Mutex::new(None),
        key: key(),
        results: Mutex::new(sender),
    });
    let queue = patient(backend.clone()).build().unwrap();
    for blocks in [false, true] {
        *backend.queue.lock().unwrap() = Some(queue.clone());
        let signing = queue.sign(&key(), PKCS1V15, b"m");
        match blocks {
            true => drop(queue.sign_blocking(&key(), PKCS1V15, b"m").unwrap()),
            false => drop(signing.wait_timeout(LONG).unwrap()),
        }
        assert_refused(&results);
    }
}

/// Answers that exist can be taken.
#[test]
fn a_waker_may_take_answers() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).min_batch(2).build().unwrap();
    let mut task = queue.sign(&key, PKCS1V15, b"m");
    let other = Arc::new(Mutex::new(None::<Signing>));
    let (of_waker, (sender, result)) = (other.clone(), channel());
    when_woken(&mut task, move || {
        let other = of_waker.lock().unwrap().take().unwrap();
        sender.send(other.wait()).unwrap();
    });
    // Of the same batch, and answered before any waker of it is called.
    *other.lock().unwrap() = Some(queue.sign(&key, PKCS1V15, b"m"));
    gate.open();
    result.recv_timeout(LONG).unwrap().unwrap();
    task.wait().unwrap();
}

/// A panic payload that panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        resume_unwind(Box::new("as asked"));
    }
}

fn panic_with_payload() {
    resume_unwind(Box::new(PanicsOnDrop));
}

/// All other tasks are woken, on the threads of workers and where places are passed on.
#[test]
fn a_waker_that_panics_leaves_nobody_asleep() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(4).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let woken = Arc::new(AtomicUsize::new(0));
    let mut tasks = requests(&queue, &key, 8);
    for (number, task) in tasks.iter_mut().enumerate() {
        let woken = woken.clone();
        when_woken(task, move || {
            woken.fetch_add(1, SeqCst);
            if number % 4 == 0 {
                panic_with_payload();
            }
        });
    }
    gate.open();
    wait_all(first);
    // Before the next poll, which would replace the waker.
    let deadline = Instant::now() + LONG;
    while woken.load(SeqCst) < 8 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(woken.load(SeqCst), 8);
    for task in tasks {
        task.wait_timeout(LONG).unwrap();
    }
    queue.shutdown(Shutdown::Drain);
    assert_eq!(queue.stats().signed, 9);
    assert_eq!(queue.stats().under_way, 0);
}

/// Panics on every call, once its queue has been made.
struct AlwaysPanics {
    backend: Serial,
    calls: AtomicUsize,
}

impl RsaBackend for AlwaysPanics {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        panic_with_payload();
        self.backend.compute(items)
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        if self.calls.fetch_add(1, SeqCst) > 0 {
            resume_unwind(Box::new("as asked"));
        }
        Some(PerThread {
            backend: &self.backend,
            threads: NonZeroUsize::MIN,
            granularity: 1,
        })
    }
}

/// The requests of its batch report the panic, and the next batch is computed normally.
#[test]
fn a_backend_may_panic_with_anything() {
    let key = key();
    // At the first call, which asks for a per-thread backend; or only when a batch has the whole
    // backend.
    for calls in [0, 1] {
        let always_panics = || {
            Arc::new(AlwaysPanics {
                backend: Serial,
                calls: AtomicUsize::new(0),
            })
        };
        let whole = Whole(always_panics());
        let queue = match calls {
            0 => patient(always_panics()).no_fallback().build(),
            _ => patient(whole).no_fallback().build(),
        };
        let queue = queue.unwrap();
        for _ in 0..3 {
            for signing in requests(&queue, &key, 2) {
                let answer = signing.wait_timeout(LONG);
                assert_eq!(answer, Err(QueueError::Panicked));
            }
            let answer = queue.sign_blocking(&key, PKCS1V15, b"m");
            assert_eq!(answer, Err(QueueError::Panicked));
        }
        queue.shutdown(Shutdown::Drain);
        let stats = queue.stats();
        assert_eq!((stats.accepted, stats.failed, stats.under_way), (9, 9, 0));
    }
    let queue = patient(Whole(Arc::new(AlwaysPanics {
        backend: Serial,
        calls: AtomicUsize::new(0),
    })));
    let queue = queue.fallback(Serial).build().unwrap();
    wait_all(requests(&queue, &key, 3));
}

/// Computes batches as a whole.
struct Whole(Arc<AlwaysPanics>);

impl RsaBackend for Whole {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        self.0.compute(items)
    }
}
