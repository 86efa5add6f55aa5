//! Many threads, keys and schemes, with cancellations and failures, all at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use batch_modexp::queue::{BatchQueue, QueueBuilder, QueueError, Shutdown};
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::{PrivateKey, pkcs1v15};

use super::backends::{Failing, Fails, Memory, Threads};
use super::keys;
use super::signatures::{PKCS1V15, block_on, verify};

const THREADS: u64 = 64;
const CAPACITY: usize = 100;
const MAX_BATCH: usize = 37;
const MESSAGES: u8 = 8;

/// The total number of requests: a number in the environment, or a small default.
fn request_count() -> u64 {
    match std::env::var("BATCH_MODEXP_QUEUE_REQUESTS") {
        Ok(number) => number
            .parse()
            .expect("BATCH_MODEXP_QUEUE_REQUESTS is a number"),
        Err(_) => 30_000,
    }
}

struct Customers {
    queue: BatchQueue,
    keys: Vec<(PrivateKey, KeyHandle)>,
    /// Expected signatures of the rsa crate, by key number and message.
    expected: HashMap<(usize, u8), Vec<u8>>,
    signed: AtomicU64,
    gave_up: AtomicU64,
    full: AtomicU64,
}

impl Customers {
    /// Makes one request, in one of the possible ways, and checks the answer or cancels it.
    fn call(&self, rng: &mut ChaCha20Rng) {
        let number = rng.next_u32() as usize % self.keys.len();
        let (rsa, handle) = &self.keys[number];
        let message = [rng.next_u32() as u8 % MESSAGES];
        // PSS is computed in full, because its salt always differs.
        let scheme = match rng.next_u32() % 100 {
            0 => AnyScheme::Pss {
                hash: Hash::Sha256,
                salt_len: 32,
            },
            _ => PKCS1V15,
        };
        let sign = || self.queue.sign(handle, scheme, &message);
        let outcome = match rng.next_u32() % 10 {
            0 | 1 => block_on(sign()),
            2 => {
                drop(sign());
                Err(QueueError::TimedOut)
            }
            3 => sign().wait_timeout(Duration::from_micros(u64::from(rng.next_u32() % 3000))),
            4 | 5 => self
                .queue
                .try_sign(handle, scheme, &message)
                .and_then(|signing| signing.wait()),
            6 => sign().wait(),
            _ => self.queue.sign_blocking(handle, scheme, &message),
        };
        match outcome {
            Ok(signature) => {
                self.signed.fetch_add(1, SeqCst);
                match scheme {
                    AnyScheme::Pkcs1v15 { .. } => {
                        let expected = &self.expected[&(number, message[0])];
                        assert_eq!(signature.as_ref(), expected);
                    }
                    AnyScheme::Pss { .. } => verify(rsa, scheme, &message, &signature),
                }
            }
            Err(QueueError::TimedOut) => {
                self.gave_up.fetch_add(1, SeqCst);
            }
            Err(QueueError::Full) => {
                self.full.fetch_add(1, SeqCst);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn every_request_is_answered_once() {
    // A caller may compute a batch beside three of the workers.
    run(4, |backend| BatchQueue::builder(backend, getrandom::SysRng));
}

#[test]
fn every_request_is_answered_once_on_threads() {
    run(3, |backend| {
        let threads = Threads {
            backend,
            count: 3.try_into().unwrap(),
        };
        BatchQueue::builder(threads, getrandom::SysRng)
    });
}

/// Runs a queue of at most `most` batches at the same time, with a backend that fails at times.
fn run(most: usize, builder: impl Fn(Arc<Failing<Arc<Memory>>>) -> QueueBuilder) {
    let rsa: Vec<_> = keys::all_sizes()
        .drain(..2)
        .chain([keys::rsa2048()])
        .collect();
    let mut expected = HashMap::new();
    for (number, key) in rsa.iter().enumerate() {
        let signer = pkcs1v15::SigningKey::<Sha256>::new(key.clone());
        for message in 0..MESSAGES {
            expected.insert((number, message), signer.sign(&[message]).to_vec());
        }
    }
    let with_handle = |key: PrivateKey| {
        let handle = KeyHandle::new(&key).unwrap();
        (key, handle)
    };
    let memory = Arc::new(Memory::default());
    let failing = Arc::new(Failing::new(Fails::AtTimes, memory.clone()));
    let queue = builder(failing.clone())
        .fallback(memory)
        .blinding(false)
        .capacity(CAPACITY)
        .max_batch(MAX_BATCH)
        .max_wait(Duration::from_micros(200))
        .workers(3.try_into().unwrap())
        .build()
        .unwrap();
    let customers = Customers {
        queue,
        keys: rsa.into_iter().map(with_handle).collect(),
        expected,
        signed: AtomicU64::new(0),
        gave_up: AtomicU64::new(0),
        full: AtomicU64::new(0),
    };

    let (count, is_over) = (request_count(), AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let customers = &customers;
                scope.spawn(move || {
                    let mut rng = ChaCha20Rng::seed_from_u64(thread);
                    for _ in 0..count / THREADS {
                        customers.call(&mut rng);
                    }
                })
            })
            .collect();
        let bounds = scope.spawn(|| {
            while !is_over.load(SeqCst) {
                let stats = customers.queue.stats();
                assert!(stats.waiting <= CAPACITY && stats.under_way <= most);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, SeqCst);
        bounds.join().unwrap();
        results.into_iter().for_each(Result::unwrap);
    });
    customers.queue.shutdown(Shutdown::Drain);

    let stats = customers.queue.stats();
    let [signed, gave_up, full] =
        [&customers.signed, &customers.gave_up, &customers.full].map(|number| number.load(SeqCst));
    assert_eq!(signed + gave_up + full, count / THREADS * THREADS);
    assert_eq!((stats.waiting, stats.under_way, stats.failed), (0, 0, 0));
    assert_eq!(stats.full, full);
    assert_eq!(stats.accepted, stats.signed + stats.cancelled, "{stats:?}");
    assert_eq!(stats.latency_us.count(), stats.signed);
    assert_eq!(stats.batch_sizes.sum(), stats.signed);
    // A batch is one call for each class of keys, and each call may fail.
    assert!(stats.fallbacks > 0 && stats.fallbacks <= failing.failures() as u64);
    // Some were cancelled too late, and their signatures were dropped.
    assert!(stats.signed >= signed && stats.cancelled > 0, "{stats:?}");
    assert!(stats.led > 0 && stats.led < stats.batches, "{stats:?}");
    let largest = stats.batch_sizes.buckets().filter(|(_, count)| *count > 0);
    assert!(largest.last().unwrap().0 <= MAX_BATCH.next_power_of_two() as u64);
}
