//! Backends whose threads compute a batch each.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use batch_modexp::backend::{Auto, Cpu};
use batch_modexp::queue::{BatchQueue, QueueBuilder};
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::RsaBackend;

use super::backends::{Gate, Threads};
use super::keys;
use super::policy::{key, requests, wait_all};
use super::signatures::{PKCS1V15, verify};

const THREE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// A builder with a time limit that is too long to start a batch.
fn builder<B: RsaBackend + Send + Sync + 'static>(backend: B) -> QueueBuilder {
    BatchQueue::builder(backend, getrandom::SysRng).max_wait(Duration::from_secs(3600))
}

fn gated(gate: &Arc<Gate>) -> Threads<Arc<Gate>> {
    Threads {
        backend: gate.clone(),
        count: THREE,
    }
}

#[test]
fn each_thread_has_a_batch_and_the_rest_waits() {
    let (gate, key) = (Gate::shut(), key());
    let queue = builder(gated(&gate)).build().unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 1));
    gate.wait_for_calls(2);
    all.extend(requests(&queue, &key, 1));
    gate.wait_for_calls(3);
    // No request is taken before a thread is free, not even if there are enough for a batch, or the
    // queue is full.
    all.extend(requests(&queue, &key, 2000));
    let stats = queue.stats();
    assert_eq!((stats.waiting, stats.under_way), (2000, 3));
    assert_eq!(gate.calls(), 3);
    gate.open();
    wait_all(all);
    // At most 64 at a time.
    let stats = queue.stats();
    assert!(stats.batches >= 3 + 2000 / 64, "{stats:?}");
    assert_eq!((stats.signed, gate.items()), (2003, 2003));
    queue.shutdown(batch_modexp::queue::Shutdown::Drain);
    assert_eq!(queue.stats().under_way, 0);
}

/// The first free thread takes a third of the requests, and leaves the rest to the others.
#[test]
fn what_waits_is_shared_out() {
    let (gate, key) = (Gate::shut(), key());
    let queue = builder(gated(&gate)).build().unwrap();
    let mut all = vec![];
    for calls in 1..=3 {
        all.extend(requests(&queue, &key, 1));
        gate.wait_for_calls(calls);
    }
    all.extend(requests(&queue, &key, 12));
    gate.open();
    wait_all(all);
    assert!(queue.stats().batches >= 5, "{:?}", queue.stats());
}

/// A thread takes as many requests as it has waited for: the rest would have to wait again.
#[test]
fn a_batch_is_as_large_as_asked() {
    let (gate, key) = (Gate::shut(), key());
    let queue = builder(gated(&gate)).min_batch(12).build().unwrap();
    let all = requests(&queue, &key, 13);
    gate.wait_for_calls(1);
    let stats = queue.stats();
    assert_eq!((stats.waiting, stats.under_way, gate.items()), (1, 1, 12));
    gate.open();
    queue.shutdown(batch_modexp::queue::Shutdown::Drain);
    wait_all(all);
}

/// With fewer workers than threads, each batch uses all threads.
#[test]
fn fewer_workers_share_the_backend() {
    let rsa = keys::rsa1024();
    let key = KeyHandle::new(&rsa).unwrap();
    let cpu = || Cpu::with_threads(THREE).unwrap();
    assert_eq!(cpu().per_thread().unwrap().threads, THREE);
    for (workers, most) in [(1, 100), (3, 40)] {
        let workers = NonZeroUsize::new(workers).unwrap();
        let queue = builder(cpu()).workers(workers).min_batch(100);
        let queue = queue.build().unwrap();
        let all = requests(&queue, &key, 100);
        queue.shutdown(batch_modexp::queue::Shutdown::Drain);
        for signing in all {
            verify(&rsa, PKCS1V15, b"m", &signing.wait().unwrap());
        }
        let sizes = queue.stats().batch_sizes;
        let largest = sizes.buckets().filter(|(_, count)| *count > 0).last();
        let (bound, _) = largest.unwrap();
        assert_eq!(bound > 64, most > 64, "{workers} workers: {sizes:?}");
    }
}

#[test]
fn backends_say_so_through_their_handles() {
    let cpu = Arc::new(Cpu::with_threads(THREE).unwrap());
    let boxed: Box<dyn RsaBackend> = Box::new(cpu.clone());
    assert_eq!(boxed.per_thread().unwrap().threads, THREE);
    let auto = Auto::with(Default::default(), Some(THREE)).unwrap();
    assert_eq!(auto.per_thread().unwrap().threads, THREE);
    assert!(batch_modexp::backend::Serial.per_thread().is_none());
}
