//! Collects single signing requests into batches, for callers with one message at a time.
//!
//! A [`BatchQueue`] collects requests from many threads or tasks while the backend computes, and
//! passes them to the backend in batches. A batch may mix schemes and keys, as long as each
//! signature is the same amount of work; keys of different length take turns. An idle queue
//! computes a request at once: on the thread of a caller that blocks, else at the cost of two thread
//! switches. [`QueueBuilder`] states the
//! policy, `docs/queue.md` its consequences for a service.
//!
//! ```
//! use batch_modexp::backend::Auto;
//! use batch_modexp::queue::BatchQueue;
//! use batch_modexp::rsa::{KeyHandle, Pss, sha2::Sha256};
//!
//! let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
//! let key = KeyHandle::from_pkcs8_pem(&pem)?;
//! let queue = BatchQueue::new(Auto::new()?, getrandom::SysRng)?;
//!
//! std::thread::scope(|scope| {
//!     for message in ["one", "two", "three"] {
//!         scope.spawn(|| {
//!             let signature = queue.sign_blocking(&key, Pss::<Sha256>::new(), message.as_bytes());
//!             println!("{:x}", signature.unwrap());
//!         });
//!     }
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`sign`](BatchQueue::sign) returns a future that needs no particular runtime;
//!   [`sign_blocking`](BatchQueue::sign_blocking) returns the signature. Both wait for space in a
//!   full queue, where [`try_sign`](BatchQueue::try_sign) fails.
//! * Dropping a future cancels its request. A batch that has begun is still computed.
//! * If a backend fails as a whole, by an error or a panic, another one computes the batch.
//!   [`QueueStats::fallbacks`] counts these batches. Every result is checked.
//! * A waker must not block in a queue: `sign_blocking` and `wait` return
//!   [`QueueError::WouldDeadlock`] there.
//! * Messages are hashed on the caller's thread. The caller's random number generator seeds each
//!   batch.

mod builder;
mod error;
mod generator;
#[cfg(feature = "signature")]
mod key;
mod policy;
mod reply;
mod requests;
mod shared;
mod signing;
mod stats;
mod sync;
mod waiting;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::num::NonZeroUsize;
use core::panic::AssertUnwindSafe;
use core::task::Waker;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rand_core::TryCryptoRng;

pub use self::builder::QueueBuilder;
pub use self::error::QueueError;
#[cfg(feature = "signature")]
#[cfg_attr(docsrs, doc(cfg(feature = "signature")))]
pub use self::key::{AsyncQueueKey, QueueKey};
use self::reply::reply;
use self::shared::{Request, Shared};
pub use self::signing::Signing;
pub use self::stats::{Histogram, QueueStats};
use crate::rsa::backend::RsaBackend;
use crate::rsa::{AnyDigest, AnyScheme, KeyHandle, Signature, check_prehash};

/// A bounded queue of single requests in front of a backend; see [the module](self).
///
/// Clones are handles of one queue. Dropping the last one shuts the queue down as
/// [`Shutdown::Drain`] does, but does not wait: accepted requests are signed in the background.
#[derive(Clone)]
pub struct BatchQueue(Arc<Handle>);

/// Treatment of waiting requests when a queue is shut down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shutdown {
    /// They are signed.
    Drain,
    /// They are answered with [`QueueError::ShutDown`]. Batches under way are still completed.
    Cancel,
}

std::thread_local! {
    /// Whether this thread works for any queue: computes a batch, hands out answers or calls a
    /// waker. Workers always do. Such a thread must not wait for a queue, which may wait for it.
    static IS_WORKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread may compute a batch itself before it has its answer.
#[derive(Clone, Copy)]
struct MayCompute(bool);

struct Handle {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl BatchQueue {
    /// Starts a queue with the default settings of [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`](batch_modexp_core::Error::ThreadPool) if the operating system cannot
    /// start the threads.
    pub fn new<B, R>(backend: B, rng: R) -> Result<Self, batch_modexp_core::Error>
    where
        B: RsaBackend + Send + Sync + 'static,
        R: TryCryptoRng + Send + 'static,
    {
        Self::builder(backend, rng).build()
    }

    /// Returns a builder for a queue in front of `backend`, which may be an `Arc`.
    ///
    /// `rng` gives 32 octets for each batch, from which blinding factors and PSS salts are derived.
    /// The operating system's generator is a good choice.
    pub fn builder<B, R>(backend: B, rng: R) -> QueueBuilder
    where
        B: RsaBackend + Send + Sync + 'static,
        R: TryCryptoRng + Send + 'static,
    {
        QueueBuilder::new(backend, rng)
    }

    fn start(shared: Arc<Shared>, workers: NonZeroUsize) -> Result<Self, batch_modexp_core::Error> {
        // On an error, dropping this ends the workers that have started.
        let queue = Self(Arc::new(Handle {
            shared,
            workers: Mutex::default(),
        }));
        for number in 0..workers.get() {
            let shared = queue.0.shared.clone();
            let work = move || {
                IS_WORKING.set(true);
                // A panic must not leave other requests waiting for ever.
                while contain(|| shared.work()).is_none() {}
            };
            let worker = std::thread::Builder::new()
                .name(alloc::format!("batch-modexp-queue-{number}"))
                .spawn(work)
                .map_err(|_| batch_modexp_core::Error::ThreadPool {
                    threads: workers.get(),
                })?;
            queue.workers().push(worker);
        }
        Ok(queue)
    }

    /// Hashes `message` on the calling thread and submits it.
    ///
    /// If the queue is full, the request enters it when the future is polled and there is space.
    pub fn sign(&self, key: &KeyHandle, scheme: impl Into<AnyScheme>, message: &[u8]) -> Signing {
        let scheme = scheme.into();
        self.sign_prehash(key, scheme, scheme.hash().digest(message).as_ref())
    }

    /// Submits a digest made by the scheme's hash function; otherwise as [`sign`](Self::sign).
    pub fn sign_prehash(
        &self,
        key: &KeyHandle,
        scheme: impl Into<AnyScheme>,
        digest: &[u8],
    ) -> Signing {
        self.submit(key, scheme.into(), digest, MayCompute(false))
    }

    /// Submits a message as [`sign`](Self::sign) does, but fails if the queue is full.
    ///
    /// The returned future still waits for the signature.
    ///
    /// # Errors
    ///
    /// [`QueueError::Full`], [`QueueError::ShutDown`], or the fault of the request.
    pub fn try_sign(
        &self,
        key: &KeyHandle,
        scheme: impl Into<AnyScheme>,
        message: &[u8],
    ) -> Result<Signing, QueueError> {
        // Avoids hashing in vain.
        if !self.0.shared.is_forked() && self.0.shared.waiting.is_full() {
            self.0.shared.stats().full += 1;
            return Err(QueueError::Full);
        }
        self.if_queued(self.sign(key, scheme, message))
    }

    /// Submits a digest as [`sign_prehash`](Self::sign_prehash) does, but fails if the queue is
    /// full.
    ///
    /// # Errors
    ///
    /// Those of [`try_sign`](Self::try_sign), and [`Error::DigestLength`](crate::rsa::Error::DigestLength).
    pub fn try_sign_prehash(
        &self,
        key: &KeyHandle,
        scheme: impl Into<AnyScheme>,
        digest: &[u8],
    ) -> Result<Signing, QueueError> {
        self.if_queued(self.sign_prehash(key, scheme, digest))
    }

    /// Hashes and signs a message, and blocks until the signature is there.
    ///
    /// While the queue is full, it waits for space. For a time limit use
    /// `queue.sign(..).wait_timeout(limit)`. If a batch may begin at once, the calling thread
    /// computes it, with waiting requests of others, and saves the thread switches
    /// ([`QueueBuilder::callers_compute`]).
    ///
    /// # Errors
    ///
    /// Those of [`Signing::wait`]. A call from a waker, a backend or a generator always returns
    /// [`QueueError::WouldDeadlock`].
    pub fn sign_blocking(
        &self,
        key: &KeyHandle,
        scheme: impl Into<AnyScheme>,
        message: &[u8],
    ) -> Result<Signature, QueueError> {
        let scheme = scheme.into();
        self.sign_prehash_blocking(key, scheme, scheme.hash().digest(message).as_ref())
    }

    /// Signs a digest made by the scheme's hash function; otherwise as
    /// [`sign_blocking`](Self::sign_blocking).
    ///
    /// # Errors
    ///
    /// Those of [`sign_blocking`](Self::sign_blocking), and [`Error::DigestLength`](crate::rsa::Error::DigestLength).
    pub fn sign_prehash_blocking(
        &self,
        key: &KeyHandle,
        scheme: impl Into<AnyScheme>,
        digest: &[u8],
    ) -> Result<Signature, QueueError> {
        if IS_WORKING.get() && !self.0.shared.is_forked() {
            return Err(QueueError::WouldDeadlock);
        }
        let signing = self.submit(key, scheme.into(), digest, MayCompute(true));
        signing.wait()
    }

    /// Statistics since the queue was started; zeros in a forked child, which has no workers.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let shared = &self.0.shared;
        if shared.is_forked() {
            return QueueStats::default();
        }
        let (waiting, under_way) = shared.waiting.occupancy();
        QueueStats {
            accepted: shared.waiting.accepted(),
            waiting,
            under_way,
            ..shared.stats().clone()
        }
    }

    /// Stops accepting requests on all handles, and waits until the accepted ones are done.
    ///
    /// It waits for workers and for callers that compute. It may be called more than once: `Cancel`
    /// after `Drain` cancels what is left. It does not wait when called from a waker, a backend or
    /// a generator that a queue has called. In a forked child it does nothing.
    pub fn shutdown(&self, how: Shutdown) {
        if self.0.shared.is_forked() {
            return;
        }
        self.0.shared.close(how == Shutdown::Cancel);
        if IS_WORKING.get() {
            return;
        }
        // Under the lock, so that a concurrent call of `shutdown` waits too.
        for worker in self.workers().drain(..) {
            // Workers catch panics.
            let _ = worker.join();
        }
        self.0.shared.waiting.wait_until_idle();
    }

    fn submit(
        &self,
        key: &KeyHandle,
        scheme: AnyScheme,
        digest: &[u8],
        may_compute: MayCompute,
    ) -> Signing {
        let shared = &self.0.shared;
        if shared.is_forked() {
            return Signing::failed(shared, QueueError::Forked);
        }
        if let Err(error) = check_prehash(key, scheme, digest) {
            return Signing::failed(shared, error.into());
        }
        let (reply, answer) = reply();
        let request = Request {
            key: key.clone(),
            scheme,
            digest: AnyDigest::new(digest),
            reply,
        };
        Signing::submit(shared, request, answer, may_compute)
    }

    fn if_queued(&self, signing: Signing) -> Result<Signing, QueueError> {
        let result = signing.if_queued();
        if let Err(QueueError::Full) = result {
            self.0.shared.stats().full += 1;
        }
        result
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        let workers = self.0.workers.lock();
        workers.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.shared.close(false);
        }
    }
}

impl fmt::Debug for BatchQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("BatchQueue");
        if !self.0.shared.is_forked() {
            let (waiting, under_way) = self.0.shared.waiting.occupancy();
            queue.field("waiting", &waiting);
            queue.field("under_way", &under_way);
        }
        queue.finish_non_exhaustive()
    }
}

/// Wakes a task. A waker is foreign code: its panic must not end a worker or leave other tasks
/// asleep, and it must not block.
fn wake(waker: Waker) {
    let outer = IS_WORKING.replace(true);
    contain(|| waker.wake());
    IS_WORKING.set(outer);
}

/// Calls code that may panic, even with a payload that panics when dropped; `None` if it did.
fn contain<T>(f: impl FnOnce() -> T) -> Option<T> {
    let payload = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(payload);
    }
    None
}

/// The programs in `docs/queue.md`, run as doc tests.
#[cfg(all(doctest, feature = "rsa-compat", feature = "signature"))]
#[doc = include_str!("../docs/queue.md")]
struct Guide;
