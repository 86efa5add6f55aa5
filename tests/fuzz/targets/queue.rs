//! Programs of actions of callers, backends and owners of a queue, in any order. Every request gets
//! an answer, and every answer is one that the program allows.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use batch_modexp::Error;
use batch_modexp::backend::Serial;
use batch_modexp::queue::{BatchQueue, QueueError, QueueStats, Shutdown, Signing};
use batch_modexp::rsa::backend::{Items, RsaBackend, SecretPowers};
use batch_modexp::rsa::{AnyScheme, Hash, KeyHandle, Restriction, Signature};
use rsa::pkcs1v15::SigningKey;
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};

use super::input::Input;
use super::keys::keys;
use backends::Memory;

#[allow(dead_code)]
#[path = "../../queue/backends.rs"]
mod backends;

const PKCS1V15: AnyScheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };
const MESSAGES: [&[u8]; 3] = [b"", b"one", b"two"];
const FAILURE: Error = Error::ThreadPool { threads: 7 };

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut program = Program::new(&mut input);
    for _ in 0..100 {
        if input.is_empty() {
            break;
        }
        program.step(input.octet());
    }
    program.end();
}

/// The behaviour of the backend for a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Computes,
    Fails,
    Panics,
    /// Returns no error and no results.
    DoesNothing,
}

/// A backend with a gate and a mode, which can change during a batch.
struct Controlled {
    state: Mutex<(bool, Mode)>,
    changed: Condvar,
}

impl Controlled {
    fn set(&self, change: impl FnOnce(&mut (bool, Mode))) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }
}

/// A cache of the results of all programs. There are few messages and no blinding, so only the
/// first programs compute much.
fn memory() -> Arc<Memory> {
    static MEMORY: LazyLock<Arc<Memory>> = LazyLock::new(Arc::default);
    MEMORY.clone()
}

impl RsaBackend for Controlled {
    fn exponentiate(&self, powers: SecretPowers<'_>) -> Result<(), Error> {
        Serial.exponentiate(powers)
    }

    fn compute(&self, items: Items<'_>) -> Result<(), batch_modexp::rsa::Error> {
        let is_shut = |state: &mut (bool, Mode)| !state.0;
        let state = self.changed.wait_while(self.state.lock().unwrap(), is_shut);
        let mode = state.unwrap().1;
        match mode {
            Mode::Computes => memory().compute(items),
            Mode::Fails => Err(FAILURE.into()),
            Mode::Panics => std::panic::resume_unwind(Box::new("as asked")),
            Mode::DoesNothing => Ok(()),
        }
    }
}

/// The expected answer to a request if nothing intervenes.
enum Expected {
    Signature(&'static [u8]),
    Error(QueueError),
}

struct Program {
    backend: Arc<Controlled>,
    queue: BatchQueue,
    capacity: usize,
    requests: Vec<(Signing, Expected)>,
    /// The modes so far.
    modes: Vec<Mode>,
    has_fallback: bool,
    is_closed: bool,
    /// Counts requests made and signatures received.
    made: u64,
    signatures: u64,
}

impl Program {
    fn new(input: &mut Input<'_>) -> Self {
        let backend = Arc::new(Controlled {
            state: Mutex::new((true, Mode::Computes)),
            changed: Condvar::new(),
        });
        let capacity = 1 + input.below(6);
        let waits = [
            Duration::ZERO,
            Duration::from_micros(300),
            Duration::from_secs(3600),
        ];
        let wait = waits[input.below(3)];
        let shape = input.octet();
        let builder = BatchQueue::builder(backend.clone(), getrandom::SysRng)
            .blinding(false)
            .capacity(capacity)
            .max_batch(usize::from(shape & 3))
            .min_batch(usize::from(shape >> 2 & 3))
            .workers(NonZeroUsize::MIN.saturating_add(usize::from(shape >> 4 & 1)))
            .max_wait(wait);
        let has_fallback = shape & 0x20 != 0;
        let builder = match has_fallback {
            true => builder.fallback(memory()),
            false => builder.no_fallback(),
        };
        Self {
            backend,
            queue: builder.build().unwrap(),
            capacity,
            requests: Vec::new(),
            modes: vec![Mode::Computes],
            has_fallback,
            is_closed: false,
            made: 0,
            signatures: 0,
        }
    }

    fn step(&mut self, octet: u8) {
        let argument = usize::from(octet >> 4);
        match octet & 15 {
            0 | 1 => {
                let (key, message, expected) = known(argument);
                let signing = self.queue.sign(key, PKCS1V15, message);
                self.made += 1;
                self.requests.push((signing, Expected::Signature(expected)));
            }
            2 => {
                let (key, message, expected) = known(argument);
                self.made += 1;
                match self.queue.try_sign(key, PKCS1V15, message) {
                    Ok(signing) => self.requests.push((signing, Expected::Signature(expected))),
                    Err(QueueError::Full) => {}
                    Err(error) => assert!(self.is_closed && error == QueueError::ShutDown),
                }
            }
            3 => {
                let digest = &[0; 40][..argument];
                let signing = self.queue.sign_prehash(known(0).0, PKCS1V15, digest);
                let error = batch_modexp::rsa::Error::DigestLength {
                    index: 0,
                    len: argument,
                    expected: 32,
                };
                self.requests.push((signing, Expected::Error(error.into())));
            }
            4 => {
                let signing = self.queue.sign(restricted(), PKCS1V15, b"");
                let error = batch_modexp::rsa::Error::KeyRestricted {
                    index: 0,
                    restriction: Restriction::Pss,
                };
                self.requests.push((signing, Expected::Error(error.into())));
            }
            5 | 6 if !self.requests.is_empty() => {
                let place = argument % self.requests.len();
                let mut context = Context::from_waker(Waker::noop());
                let poll = Pin::new(&mut self.requests[place].0).poll(&mut context);
                if let Poll::Ready(answer) = poll {
                    let (_, expected) = self.requests.remove(place);
                    self.check(answer, expected);
                }
            }
            7 if !self.requests.is_empty() => {
                let place = argument % self.requests.len();
                drop(self.requests.swap_remove(place));
            }
            8 if !self.requests.is_empty() => {
                let place = argument % self.requests.len();
                let (signing, expected) = self.requests.remove(place);
                let answer = signing.wait_timeout(Duration::from_micros(argument as u64));
                if answer != Err(QueueError::TimedOut) {
                    self.check(answer, expected);
                }
            }
            9 => self.backend.set(|state| state.0 = argument & 1 == 0),
            10 => {
                let modes = [Mode::Computes, Mode::Fails, Mode::Panics, Mode::DoesNothing];
                let mode = modes[argument % 4];
                self.modes.push(mode);
                self.backend.set(|state| state.1 = mode);
            }
            11 if argument == 0 => self.shut_down(Shutdown::Cancel),
            11 if argument == 1 => self.shut_down(Shutdown::Drain),
            12 => {
                // Dropping the last handle would shut the queue down; this is not the last.
                let clone = self.queue.clone();
                drop(std::mem::replace(&mut self.queue, clone));
            }
            13 => self.check_stats(&self.queue.stats()),
            14 => std::thread::yield_now(),
            _ => {}
        }
    }

    fn shut_down(&mut self, how: Shutdown) {
        // Batches under way are waited for.
        self.backend.set(|state| state.0 = true);
        self.queue.shutdown(how);
        self.is_closed = true;
    }

    fn end(mut self) {
        self.shut_down(Shutdown::Drain);
        for (signing, expected) in std::mem::take(&mut self.requests) {
            let answer = signing.wait();
            self.check(answer, expected);
        }
        let stats = self.queue.stats();
        self.check_stats(&stats);
        assert_eq!((stats.waiting, stats.under_way), (0, 0));
        assert_eq!(
            stats.accepted,
            stats.signed + stats.failed + stats.cancelled
        );
        assert!(
            self.signatures <= stats.signed && stats.accepted <= self.made,
            "{stats:?}"
        );
    }

    fn check(&mut self, answer: Result<Signature, QueueError>, expected: Expected) {
        let error = match (answer, expected) {
            (Ok(signature), Expected::Signature(expected)) => {
                assert_eq!(signature.as_ref(), expected);
                self.signatures += 1;
                return;
            }
            (Ok(_), Expected::Error(error)) => panic!("a signature instead of {error}"),
            (Err(error), Expected::Error(expected)) => return assert_eq!(error, expected),
            (Err(error), Expected::Signature(_)) => error,
        };
        let mode = match &error {
            QueueError::ShutDown => return assert!(self.is_closed),
            QueueError::Panicked => Mode::Panics,
            QueueError::Sign(error) if *error == FAILURE.into() => Mode::Fails,
            QueueError::Sign(batch_modexp::rsa::Error::Fault { index: 0 }) => Mode::DoesNothing,
            other => panic!("{other}"),
        };
        // A backend that does nothing has not failed as a whole.
        let takes_over = self.has_fallback && mode != Mode::DoesNothing;
        assert!(self.modes.contains(&mode) && !takes_over, "{error}");
    }

    fn check_stats(&self, stats: &QueueStats) {
        assert!(stats.waiting <= self.capacity, "{stats:?}");
        assert!(self.has_fallback || stats.fallbacks == 0, "{stats:?}");
    }
}

type Known = (&'static KeyHandle, &'static [u8], &'static [u8]);

/// A key and a message with their signature by the `rsa` crate.
fn known(number: usize) -> Known {
    static SIGNATURES: LazyLock<Vec<Box<[u8]>>> = LazyLock::new(|| {
        let signer = |key: usize| SigningKey::<Sha256>::new(keys()[key].rsa.clone());
        [0, 1]
            .map(signer)
            .iter()
            .flat_map(|signer| MESSAGES.map(|message| signer.sign(message).to_bytes()))
            .collect()
    });
    let number = number % SIGNATURES.len();
    let key = &keys()[number / MESSAGES.len()].handle;
    (key, MESSAGES[number % MESSAGES.len()], &SIGNATURES[number])
}

/// A key for RSASSA-PSS alone.
fn restricted() -> &'static KeyHandle {
    static KEY: LazyLock<KeyHandle> =
        LazyLock::new(|| KeyHandle::from_pkcs8_pem(include_str!("../../keys/pss.pem")).unwrap());
    &KEY
}
