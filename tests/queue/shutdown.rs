//! The end of a queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Wake, Waker};
use std::thread;

use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueError, Shutdown, Signing};

use super::backends::{Gate, Memory};
use super::policy::{key, patient, requests, wait_all};
use super::signatures::PKCS1V15;

#[test]
fn draining_signs_what_waits() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).max_batch(4).build().unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 11));
    thread::scope(|scope| {
        let shutdown = scope.spawn(|| queue.shutdown(Shutdown::Drain));
        while queue.try_sign(&key, PKCS1V15, b"m").is_ok() {}
        gate.open();
        shutdown.join().unwrap();
        let stats = queue.stats();
        assert_eq!((stats.waiting, stats.under_way, stats.signed), (0, 0, 12));
    });
    wait_all(all);
    let refused = queue.try_sign(&key, PKCS1V15, b"m").unwrap_err();
    assert_eq!(refused, QueueError::ShutDown);
    // A second call does no harm.
    queue.shutdown(Shutdown::Cancel);
}

#[test]
fn cancelling_answers_what_waits() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(5).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let waiting = requests(&queue, &key, 5);
    let mut context = Context::from_waker(Waker::noop());
    let mut outside = requests(&queue, &key, 2);
    assert!(Pin::new(&mut outside[0]).poll(&mut context).is_pending());
    let answers = thread::scope(|scope| {
        scope.spawn(|| queue.shutdown(Shutdown::Cancel));
        let answers = waiting.into_iter().chain(outside).map(Signing::wait);
        let answers: Vec<_> = answers.collect();
        // A batch under way is completed.
        gate.open();
        wait_all(first);
        answers
    });
    assert_eq!(answers, vec![Err(QueueError::ShutDown); 7]);
    assert_eq!(gate.items(), 1);
    let stats = queue.stats();
    assert_eq!(
        (stats.accepted, stats.signed, stats.cancelled),
        (6, 1, 5),
        "{stats:?}"
    );
}

#[test]
fn cancelling_after_draining_hurries_it() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let waiting = queue.sign(&key, PKCS1V15, b"m");
    let answer = thread::scope(|scope| {
        scope.spawn(|| queue.shutdown(Shutdown::Drain));
        while queue.try_sign(&key, PKCS1V15, b"m").is_ok() {}
        scope.spawn(|| queue.shutdown(Shutdown::Cancel));
        let answer = waiting.wait();
        gate.open();
        answer
    });
    assert_eq!(answer, Err(QueueError::ShutDown));
    wait_all(first);
}

#[test]
fn the_last_handle_drains_and_does_not_wait() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let clone = queue.clone();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    drop(queue);
    all.extend(requests(&clone, &key, 4));
    drop(clone);
    gate.open();
    wait_all(all);
}

/// A request during shutdown gets a signature or an error, and the counts agree.
#[test]
fn requests_may_come_meanwhile() {
    let key = key();
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        for _ in 0..20 {
            let queue = BatchQueue::builder(Memory::default(), getrandom::SysRng)
                .blinding(false)
                .max_batch(3)
                .capacity(5)
                .build()
                .unwrap();
            let signed = AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        loop {
                            match queue.sign_blocking(&key, PKCS1V15, b"m") {
                                Ok(_) => signed.fetch_add(1, SeqCst),
                                Err(error) => break assert_eq!(error, QueueError::ShutDown),
                            };
                        }
                    });
                }
                while signed.load(SeqCst) < 20 {
                    thread::yield_now();
                }
                queue.shutdown(how);
                // Nothing is left when it returns.
                let stats = queue.stats();
                assert_eq!((stats.waiting, stats.under_way), (0, 0));
            });
            let stats = queue.stats();
            assert_eq!(stats.signed, signed.load(SeqCst));
            assert_eq!(stats.accepted, stats.signed + stats.cancelled);
        }
    }
}

/// When woken on the thread of a worker, shuts the queue down and drops the last handle.
struct ShutsDown(std::sync::Mutex<Option<BatchQueue>>, Sender<()>);

impl Wake for ShutsDown {
    fn wake(self: Arc<Self>) {
        if let Some(queue) = self.0.lock().unwrap().take() {
            queue.shutdown(Shutdown::Drain);
            drop(queue);
            self.1.send(()).unwrap();
        }
    }
}

#[test]
fn a_waker_may_end_the_queue() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let mut signing = queue.sign(&key, PKCS1V15, b"m");
    let (sender, done) = channel();
    let shuts_down = ShutsDown(Some(queue).into(), sender);
    let waker = Waker::from(Arc::new(shuts_down));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut signing).poll(&mut context).is_pending());
    gate.open();
    done.recv().unwrap();
    signing.wait().unwrap();
}

/// A waker that panics affects no other request.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("as asked"));
    }
}

#[test]
fn a_waker_may_panic() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    let mut all = requests(&queue, &key, 3);
    assert!(Pin::new(&mut all[0]).poll(&mut context).is_pending());
    gate.open();
    wait_all(all);
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    // A queue ends even if its backend has panicked.
    let queue = patient(Serial).build().unwrap();
    queue.shutdown(Shutdown::Cancel);
}
