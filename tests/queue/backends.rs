//! Instrumented backends.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

use batch_modexp::Error;
use batch_modexp::backend::Serial;
use batch_modexp::rsa::backend::{Items, PerThread, RsaBackend, SecretPowers};
use crypto_bigint::Limb;

/// Computes with `Serial` once it is opened. Counts the calls and instances that arrive.
#[derive(Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    calls: AtomicUsize,
    items: AtomicUsize,
}

impl Gate {
    pub fn shut() -> Arc<Self> {
        Arc::default()
    }

    pub fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub fn close(&self) {
        *self.is_open.lock().unwrap() = false;
    }

    /// Waits until it is open.
    pub fn pass(&self) {
        let shut = |is_open: &mut bool| !*is_open;
        drop(self.changed.wait_while(self.is_open.lock().unwrap(), shut));
    }

    /// The number of calls so far, waiting ones included.
    pub fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }

    /// The number of instances so far.
    pub fn items(&self) -> usize {
        self.items.load(SeqCst)
    }

    /// Waits until there have been `count` calls.
    pub fn wait_for_calls(&self, count: usize) {
        while self.calls() < count {
            std::thread::yield_now();
        }
    }
}

impl RsaBackend for Gate {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        self.items.fetch_add(items.len(), SeqCst);
        self.calls.fetch_add(1, SeqCst);
        self.pass();
        Serial.compute(items)
    }
}

/// A backend that computes on its calling threads, of which there should be at most `count`.
pub struct Threads<B> {
    pub backend: B,
    pub count: NonZeroUsize,
}

impl<B: RsaBackend + Sync> RsaBackend for Threads<B> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, _: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        unreachable!("a batch for all threads at once")
    }

    fn per_thread(&self) -> Option<PerThread<'_>> {
        Some(PerThread {
            backend: &self.backend,
            threads: self.count,
            granularity: 1,
        })
    }
}

/// The behaviour of a failing backend.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    WithAnError,
    WithAPanic,
    /// Returns without computing any item.
    Silently,
    /// Fails every third call with an error, and every fifth with a panic.
    AtTimes,
}

/// Fails, or computes with another backend.
pub struct Failing<B> {
    pub how: Fails,
    pub backend: B,
    calls: AtomicUsize,
    failures: AtomicUsize,
}

impl<B> Failing<B> {
    pub fn new(how: Fails, backend: B) -> Self {
        Self {
            how,
            backend,
            calls: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
        }
    }

    pub fn failures(&self) -> usize {
        self.failures.load(SeqCst)
    }
}

impl<B: RsaBackend> RsaBackend for Failing<B> {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        let number = self.calls.fetch_add(1, SeqCst) + 1;
        let how = match self.how {
            Fails::AtTimes if number.is_multiple_of(3) => Fails::WithAnError,
            Fails::AtTimes if number.is_multiple_of(5) => Fails::WithAPanic,
            Fails::AtTimes => return self.backend.compute(items),
            how => how,
        };
        self.failures.fetch_add(1, SeqCst);
        match how {
            Fails::WithAnError => Err(Error::ThreadPool { threads: 7 }.into()),
            // Does not print a message for each panic.
            Fails::WithAPanic => std::panic::resume_unwind(Box::new("as asked")),
            Fails::Silently | Fails::AtTimes => Ok(()),
        }
    }
}

/// Computes each exponentiation once and caches it, which makes repeated unblinded items cheap.
/// They are checked like all others.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<[Vec<Limb>; 3], Vec<Limb>>>);

impl RsaBackend for Memory {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        let mut known = self.0.lock().unwrap();
        let limbs = powers.limbs();
        let numbers = powers.bases.chunks_exact(limbs).zip(powers.exponents);
        let places = powers.out.chunks_exact_mut(limbs);
        for ((modulus, (base, exponent)), out) in powers.moduli.iter().zip(numbers).zip(places) {
            let name = [base, exponent, modulus.limbs].map(<[Limb]>::to_vec);
            let power = known.entry(name).or_insert_with(|| {
                let mut power = vec![Limb::ZERO; limbs];
                let one = SecretPowers {
                    moduli: &[*modulus],
                    exponents: &[*exponent],
                    exponent_bits: powers.exponent_bits,
                    bases: base,
                    out: &mut power,
                };
                Serial.exponentiate(one).unwrap();
                power
            });
            out.copy_from_slice(power);
        }
        Ok(())
    }
}
