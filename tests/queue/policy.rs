//! When a batch starts, and how large it is. Waits of an hour stand for waits that must not happen.

use std::num::NonZeroUsize;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use std::{future::Future, pin::Pin};

use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueBuilder, QueueError, Signing};
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::RsaBackend;

use super::backends::Gate;
use super::keys;
use super::signatures::{PKCS1V15, block_on};

const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
const HOUR: Duration = Duration::from_secs(3600);

pub fn key() -> KeyHandle {
    KeyHandle::new(&keys::rsa1024()).unwrap()
}

/// A queue with one worker. Requests wait without limit while a batch is under way.
pub fn patient<B: RsaBackend + Send + Sync + 'static>(backend: B) -> QueueBuilder {
    BatchQueue::builder(backend, getrandom::SysRng)
        .max_wait(HOUR)
        .workers(NonZeroUsize::MIN)
}

pub fn requests(queue: &BatchQueue, key: &KeyHandle, count: usize) -> Vec<Signing> {
    (0..count)
        .map(|_| queue.sign(key, PKCS1V15, b"m"))
        .collect()
}

pub fn wait_all(requests: Vec<Signing>) {
    for request in requests {
        request.wait().unwrap();
    }
}

/// The sizes of batches so far, by the upper bounds of their buckets.
fn sizes(queue: &BatchQueue) -> Vec<(u64, u64)> {
    let sizes = queue.stats().batch_sizes;
    let used = sizes.buckets().filter(|(_, count)| *count > 0);
    used.collect()
}

#[test]
fn an_idle_backend_does_not_wait() {
    let queue = patient(Serial).build().unwrap();
    for _ in 0..3 {
        queue.sign_blocking(&key(), PKCS1V15, b"m").unwrap();
    }
    assert_eq!(sizes(&queue), [(1, 3)]);
}

#[test]
fn requests_collect_while_a_batch_is_under_way() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let others = requests(&queue, &key, 16);
    let stats = queue.stats();
    assert_eq!((stats.waiting, stats.under_way, gate.calls()), (16, 1, 1));
    gate.open();
    wait_all(first);
    wait_all(others);
    assert_eq!(sizes(&queue), [(1, 1), (16, 1)]);
    assert_eq!((gate.calls(), gate.items()), (2, 17));
}

#[test]
fn batches_have_a_largest_size() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).max_batch(4).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    // Batches of 4, 4 and 2: two of the twelve requests are cancelled.
    let mut others = requests(&queue, &key, 12);
    drop(others.remove(9));
    drop(others.remove(2));
    gate.open();
    wait_all(first);
    wait_all(others);
    assert_eq!(sizes(&queue), [(1, 1), (2, 1), (4, 2)]);
}

#[test]
fn an_idle_backend_waits_for_as_many_as_asked() {
    let key = key();
    let queue = patient(Serial).min_batch(4).build().unwrap();
    let mut all = requests(&queue, &key, 3);
    assert_eq!(queue.stats().waiting, 3);
    all.extend(requests(&queue, &key, 1));
    wait_all(all);
    assert_eq!(sizes(&queue), [(4, 1)]);
    // Waiting for more requests than fit into a batch, or into the queue, is refused.
    for builder in [
        patient(Serial).max_batch(2),
        patient(Serial).capacity(2),
        patient(Serial).max_batch(0),
        patient(Serial).capacity(0),
    ] {
        let queue = builder.min_batch(1000).build().unwrap();
        wait_all(requests(&queue, &key, 2));
    }
}

#[test]
fn a_full_batch_begins_beside_another() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone())
        .max_batch(4)
        .workers(TWO)
        .build()
        .unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 3));
    assert_eq!(queue.stats().waiting, 3);
    all.extend(requests(&queue, &key, 1));
    gate.wait_for_calls(2);
    assert_eq!(queue.stats().under_way, 2);
    // Both workers are busy.
    all.extend(requests(&queue, &key, 9));
    assert_eq!((queue.stats().waiting, gate.calls()), (9, 2));
    gate.open();
    wait_all(all);
}

#[test]
fn the_oldest_request_waits_for_so_long_and_no_longer() {
    let key = key();
    let moment = Duration::from_millis(2);
    // For other requests, which never arrive.
    let queue = patient(Serial)
        .min_batch(100)
        .max_wait(moment)
        .build()
        .unwrap();
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    // For the end of another batch.
    let gate = Gate::shut();
    let queue = patient(gate.clone())
        .max_wait(moment)
        .workers(TWO)
        .build()
        .unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 1));
    gate.wait_for_calls(2);
    gate.open();
    wait_all(all);
}

#[test]
fn a_full_queue_says_so_or_lets_wait() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(2).build().unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 2));
    let full = queue.try_sign(&key, PKCS1V15, b"m").unwrap_err();
    assert_eq!(full, QueueError::Full);
    let full = queue.try_sign_prehash(&key, PKCS1V15, &[0; 32]);
    assert_eq!(full.unwrap_err(), QueueError::Full);
    let mut outside = queue.sign(&key, PKCS1V15, b"m");
    assert_eq!(format!("{outside:?}"), "Signing(waits for space)");
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut outside).poll(&mut context).is_pending());
    let stats = queue.stats();
    assert_eq!((stats.full, stats.waiting, stats.accepted), (2, 2, 3));
    thread::scope(|scope| {
        let blocked = [0; 8].map(|_| scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m")));
        let awaited = [0; 8].map(|_| scope.spawn(|| block_on(queue.sign(&key, PKCS1V15, b"m"))));
        gate.open();
        for thread in blocked.into_iter().chain(awaited) {
            thread.join().unwrap().unwrap();
        }
    });
    wait_all(all);
    outside.wait().unwrap();
    assert_eq!(queue.stats().accepted, 20);
    assert!(queue.try_sign(&key, PKCS1V15, b"m").is_ok());
}

#[test]
fn statistics_add_up() {
    let key = key();
    let queue = patient(Serial).build().unwrap();
    wait_all(requests(&queue, &key, 20));
    let stats = queue.stats();
    assert_eq!((stats.accepted, stats.signed), (20, 20));
    assert_eq!((stats.failed, stats.cancelled, stats.fallbacks), (0, 0, 0));
    assert_eq!((stats.waiting, stats.batch_sizes.sum()), (0, 20));
    assert_eq!(stats.batch_sizes.count(), stats.batches);
    assert_eq!(stats.latency_us.count(), 20);
    assert!(stats.latency_us.sum() > 0);
    assert!(stats.latency_us.quantile(0.5) <= stats.latency_us.quantile(0.99));
}
