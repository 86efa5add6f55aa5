//! Keys of different cost: requests with fast keys do not wait for all those with slow keys.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use batch_modexp::Error;
use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueBuilder, Signing};
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::backend::{Items, RsaBackend, SecretPowers};

use super::backends::{Gate, Threads};
use super::keys;
use super::policy::{patient, requests, wait_all};
use super::signatures::PKCS1V15;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Records its calls, waits at a gate, and computes no item: all requests return a fault.
struct Script {
    gate: Arc<Gate>,
    /// The key length and the number of requests of each call.
    calls: Mutex<Vec<(u32, usize)>>,
}

impl Script {
    fn shut() -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::shut(),
            calls: Mutex::default(),
        })
    }

    fn calls(&self) -> Vec<(u32, usize)> {
        self.calls.lock().unwrap().clone()
    }

    fn wait_for_calls(&self, count: usize) {
        while self.calls().len() < count {
            thread::yield_now();
        }
    }
}

impl RsaBackend for Script {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        let exponentiations = items.exponentiations() as u32;
        let bits = exponentiations * items.exponentiation_bits();
        let call = (bits, items.len());
        self.calls.lock().unwrap().push(call);
        self.gate.pass();
        Ok(())
    }
}

/// The script on two threads, with a batch each.
fn two_threads(script: &Arc<Script>) -> Threads<Arc<Script>> {
    Threads {
        backend: script.clone(),
        count: TWO,
    }
}

/// Keys of 8192, 2048 and 1024 bits.
fn slow_and_fast() -> [KeyHandle; 3] {
    let slow = keys::all_sizes().remove(8);
    [slow, keys::rsa2048(), keys::rsa1024()].map(|key| KeyHandle::new(&key).unwrap())
}

/// Waits for requests that the script does not compute.
fn wait_all_faults(requests: Vec<Signing>) {
    for request in requests {
        assert_eq!(
            request.wait(),
            Err(batch_modexp::rsa::Error::Fault { index: 0 }.into())
        );
    }
}

/// The work of calls, in units of a request with a key of 2048 bits.
fn work(calls: &[(u32, usize)]) -> u64 {
    let work = calls
        .iter()
        .map(|&(bits, count)| u64::from(bits / 64).pow(3) * count as u64);
    work.sum::<u64>() / 32768
}

/// The calls before the first one with keys of this length, after the first `under_way` calls.
fn ahead_of(bits: u32, calls: &[(u32, usize)], under_way: usize) -> &[(u32, usize)] {
    let calls = &calls[under_way..];
    let place = calls.iter().position(|call| call.0 == bits).unwrap();
    &calls[..place]
}

fn builder<B: RsaBackend + Send + Sync + 'static>(backend: B) -> QueueBuilder {
    BatchQueue::builder(backend, getrandom::SysRng).max_wait(Duration::from_secs(3600))
}

/// A fast request behind a thousand slow ones waits for one batch of them, or for two if both
/// threads start at the same time. Each batch is as much work as 64 requests with keys of 2048
/// bits.
#[test]
fn a_slow_key_does_not_starve_a_fast_one() {
    let [slow, fast, faster] = slow_and_fast();
    let script = Script::shut();
    let queue = builder(two_threads(&script)).build().unwrap();
    let mut all = requests(&queue, &slow, 1);
    script.wait_for_calls(1);
    all.extend(requests(&queue, &slow, 1));
    script.wait_for_calls(2);
    all.extend(requests(&queue, &slow, 1000));
    all.extend(requests(&queue, &fast, 1));
    all.extend(requests(&queue, &faster, 1));
    assert_eq!(queue.stats().waiting, 1002);
    script.gate.open();
    wait_all_faults(all);
    let calls = script.calls();
    for bits in [2048, 1024] {
        let ahead = ahead_of(bits, &calls, 2);
        assert!(work(ahead) <= 2 * 64 + 1, "{bits} bits after {ahead:?}");
    }
    assert!(calls.iter().all(|&call| work(&[call]) <= 64), "{calls:?}");
}

/// Many fast requests do not starve a slow one: it follows one batch of each of the other two
/// classes of keys.
#[test]
fn fast_keys_do_not_starve_a_slow_one() {
    let [slow, fast, faster] = slow_and_fast();
    let script = Script::shut();
    let threads = Threads {
        backend: script.clone(),
        count: NonZeroUsize::MIN,
    };
    let queue = builder(threads).build().unwrap();
    let mut all = requests(&queue, &fast, 1);
    script.wait_for_calls(1);
    for _ in 0..500 {
        all.extend(requests(&queue, &fast, 1));
        all.extend(requests(&queue, &faster, 1));
    }
    all.extend(requests(&queue, &slow, 1));
    script.gate.open();
    wait_all_faults(all);
    let calls = script.calls();
    let ahead = ahead_of(8192, &calls, 1);
    assert!(ahead.len() <= 2, "{ahead:?}");
}

/// Classes also take turns if each batch has the whole backend.
#[test]
fn batches_for_the_whole_backend_take_turns() {
    let [slow, fast, faster] = slow_and_fast();
    let script = Script::shut();
    let queue = patient(script.clone()).max_batch(16).build().unwrap();
    let mut all = requests(&queue, &slow, 1);
    script.wait_for_calls(1);
    all.extend(requests(&queue, &slow, 100));
    all.extend(requests(&queue, &fast, 20));
    all.extend(requests(&queue, &faster, 1));
    script.gate.open();
    wait_all_faults(all);
    let in_turn = [(1024, 1), (2048, 16), (8192, 16), (2048, 4), (8192, 16)];
    assert_eq!(script.calls()[1..6], in_turn);
}

/// With a backend that computes, the fast request is answered before half of the slow ones.
#[test]
fn a_fast_key_is_answered_before_slow_ones() {
    let [_, slow, fast] = slow_and_fast();
    let gate = Gate::shut();
    let threads = Threads {
        backend: gate.clone(),
        count: NonZeroUsize::MIN,
    };
    let queue = builder(threads).build().unwrap();
    let mut all = requests(&queue, &slow, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &slow, 600));
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            queue.sign_blocking(&fast, PKCS1V15, b"m").unwrap();
            queue.stats().signed
        });
        while queue.stats().waiting < 601 {
            thread::yield_now();
        }
        gate.open();
        let signed = blocked.join().unwrap();
        assert!(signed < 300, "{signed} were answered before");
    });
    wait_all(all);
}
