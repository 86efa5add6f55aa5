//! How a queue is set up.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::OnceLock;

use batch_modexp_core::{BatchModExp, Error};
use crypto_bigint::BoxedUint;
use rand_core::TryCryptoRng;

use super::BatchQueue;
use super::counters::Counters;
use super::generator::Generator;
use super::policy::{Policy, Sharing};
use super::shared::{Backend, Fallback, Shared};
use super::waiting::Waiting;
use crate::rsa::backend::{PerThread, RsaBackend};

/// Settings of a [`BatchQueue`]: what it computes with, and when a batch begins.
///
/// # When a batch begins
///
/// Requests are in classes: those of a class have keys of the same length (in limbs of 64 bits), all with primes or all without.
/// A batch has requests of one class, the oldest first. Classes with requests that wait take turns.
///
/// On a **processor** ([`RsaBackend::per_thread`]) each batch is computed by one thread: that of a worker, or of a caller
/// that blocks. A batch begins whenever fewer are under way than the backend has threads, and [`min_batch`](Self::min_batch)
/// requests wait (by default 1) or the oldest has waited for [`max_wait`](Self::max_wait). The threads are divided among the
/// classes that wait, and the requests of a class among its threads. A batch has at most 64 requests and at most
/// [`max_batch`](Self::max_batch), and no more work than 64 of RSA-2048 unless that leaves lanes empty. With fewer
/// [`workers`](Self::workers) than threads, all threads compute a batch together, as below.
///
/// On **other backends**, GPUs above all, a batch has the whole backend. A free worker takes at most `max_batch` requests as
/// soon as one of these holds:
///
/// 1. No batch is under way, and `min_batch` requests wait: an idle backend never waits.
/// 2. A batch is under way, and `max_batch` requests wait.
/// 3. The oldest request has waited for `max_wait`.
/// 4. The queue is full, or shut down.
///
/// Either way requests collect while all are busy. `docs/queue.md` states when an answer comes at the latest.
pub struct QueueBuilder {
    backend: Backend,
    generator: Generator,
    fallback: Fallback,
    blinding: bool,
    callers_compute: bool,
    policy: Policy,
    capacity: Option<usize>,
    workers: Option<NonZeroUsize>,
}

impl QueueBuilder {
    pub(super) fn new<B, R>(backend: B, rng: R) -> Self
    where
        B: RsaBackend + Send + Sync + 'static,
        R: TryCryptoRng + Send + 'static,
    {
        Self {
            backend: Box::new(backend),
            generator: Generator::new(rng),
            fallback: Fallback::Cpu(OnceLock::new()),
            blinding: true,
            callers_compute: true,
            policy: Policy {
                capacity: 0,
                min_batch: 1,
                max_batch: 1024,
                max_wait: Duration::from_millis(1),
                sharing: Sharing::Whole,
            },
            capacity: None,
            workers: None,
        }
    }

    /// The most requests of a batch, 1,024 at first. 0 counts as 1.
    ///
    /// Where a batch has the whole backend, the time of one with the longest keys is what others wait for.
    ///
    /// Processors reach their rate with some hundred; GPUs want tens of thousands
    /// (`docs/performance.md` and `docs/performance-gpu.md` have rates and times by the size of a batch).
    #[must_use]
    pub fn max_batch(mut self, requests: usize) -> Self {
        self.policy.max_batch = requests.max(1);
        self
    }

    /// How many requests an idle backend waits for, though no longer than [`max_wait`](Self::max_wait). 1 at first: it never
    /// waits. More than `max_batch` counts as `max_batch`.
    ///
    /// More makes single requests later and a busy processor more efficient: lanes of a SIMD backend that have nothing to
    /// compute take as long as the others. It is of no use with `Auto`, which computes small batches on the processor,
    /// unless the processor has other things to do: then
    /// `Auto::rsa_break_even` is the number from which on the GPUs compute.
    #[must_use]
    pub fn min_batch(mut self, requests: usize) -> Self {
        self.policy.min_batch = requests;
        self
    }

    /// How long the oldest request waits for others: while there are fewer than [`min_batch`](Self::min_batch), and on backends that
    /// batches have as a whole while one is under way. 1 ms at first.
    #[must_use]
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.policy.max_wait = time;
        self
    }

    /// The most requests that wait; beyond it calls wait for space, and `try_sign` fails. Eight times
    /// [`max_batch`](Self::max_batch) at first. 0 counts as 1.
    ///
    /// A waiting request takes some hundred bytes. Besides those, the queue holds `workers` batches.
    #[must_use]
    pub fn capacity(mut self, requests: usize) -> Self {
        self.capacity = Some(requests.max(1));
        self
    }

    /// The number of threads that give batches to the backend.
    ///
    /// At first as many as the backend has threads on the processor; each computes by itself. With fewer than those, and on
    /// other backends, where it is 2 at first, a batch has the whole backend: one worker prepares a batch, or hands out answers,
    /// while the backend computes that of another. `Cuda` computes up to sixteen batches beside each other: where one does not
    /// fill the device, more workers are worth their while.
    #[must_use]
    pub fn workers(mut self, threads: NonZeroUsize) -> Self {
        self.workers = Some(threads);
        self
    }

    /// Whether callers of [`sign_blocking`](BatchQueue::sign_blocking), who can do nothing else meanwhile, compute a batch on their own threads if
    /// one may begin when they come; they do at first. A request alone then costs no change of threads, which takes some tens of microseconds
    /// in all. A caller computes one batch, with its own request in it, and so few others that it ends soon.
    ///
    /// Without it, all is computed on the queue's threads and the backend's: where callers' threads have little stack, a low
    /// priority or no time.
    #[must_use]
    pub fn callers_compute(mut self, on: bool) -> Self {
        self.callers_compute = on;
        self
    }

    /// Whether bases are blinded, as in [`BatchSigner::blinding`](crate::rsa::BatchSigner::blinding); they are at first.
    #[must_use]
    pub fn blinding(mut self, on: bool) -> Self {
        self.blinding = on;
        self
    }

    /// The backend that computes a batch with which the first one fails as a whole, by an error or a panic. At first
    /// [`Cpu`](batch_modexp_cpu::Cpu), whose threads are started when they are needed.
    #[must_use]
    pub fn fallback<B>(mut self, backend: B) -> Self
    where
        B: RsaBackend + Send + Sync + 'static,
    {
        self.fallback = Fallback::Given(Box::new(backend));
        self
    }

    /// Requests of a batch with which the backend fails as a whole get its error.
    #[must_use]
    pub fn no_fallback(mut self) -> Self {
        self.fallback = Fallback::None;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system refuses the threads.
    pub fn build(self) -> Result<BatchQueue, Error> {
        let mut policy = self.policy;
        let most = policy.max_batch.saturating_mul(8);
        policy.capacity = self.capacity.unwrap_or(most);
        let per_thread = self.backend.per_thread();
        let enough =
            |one: &PerThread<'_>| self.workers.is_none_or(|workers| workers >= one.threads);
        let (sharing, workers) = match per_thread.filter(enough) {
            Some(one) => {
                // Two exponentiations for a signature.
                let lanes = BatchModExp::<BoxedUint>::granularity(one.backend).div_ceil(2);
                let count = one.threads.get();
                (Sharing::Threads { count, lanes }, one.threads)
            }
            None => (Sharing::Whole, NonZeroUsize::MIN.saturating_add(1)),
        };
        policy.sharing = sharing;
        let shared = Arc::new(Shared {
            waiting: Waiting::new(policy),
            counters: Counters::default(),
            backend: self.backend,
            fallback: self.fallback,
            generator: self.generator,
            blinding: self.blinding,
            callers_compute: self.callers_compute,
            sharing,
            process: std::process::id(),
        });
        BatchQueue::start(shared, self.workers.unwrap_or(workers))
    }
}

impl fmt::Debug for QueueBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("policy", &self.policy)
            .field("capacity", &self.capacity)
            .field("workers", &self.workers)
            .field("blinding", &self.blinding)
            .field("callers_compute", &self.callers_compute)
            .finish_non_exhaustive()
    }
}
