//! Settings of a queue.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::LazyLock;

use batch_modexp_core::Error;
use batch_modexp_cpu::Cpu;
use rand_core::TryCryptoRng;

use super::BatchQueue;
use super::generator::Generator;
use super::policy::{Policy, Sharing};
use super::shared::{Backend, Fallback, Shared};
use super::waiting::Waiting;
use crate::rsa::backend::{PerThread, RsaBackend};

/// Settings of a [`BatchQueue`]: its backend, and when a batch begins.
///
/// # When a batch begins
///
/// Requests are in classes. The keys of a class have the same length (in limbs of 64 bits), and
/// either all have primes or none has. A batch has requests of one class, the oldest first. Classes
/// with waiting requests take turns.
///
/// On a **processor** ([`RsaBackend::per_thread`]) one thread computes each batch: a worker, or a
/// caller that blocks. A batch begins if fewer batches are under way than the backend has threads,
/// and [`min_batch`](Self::min_batch) requests wait (by default 1) or the oldest has waited for
/// [`max_wait`](Self::max_wait). The threads are divided among the waiting classes, and the
/// requests of a class among its threads, at least `min_batch` to each. A batch has at most 64 and at most
/// [`max_batch`](Self::max_batch) requests. It is no more work than 64 requests of RSA-2048, unless
/// that leaves lanes empty. With fewer [`workers`](Self::workers) than backend threads, each batch
/// uses all threads, as below.
///
/// On **other backends**, such as GPUs, each batch uses the whole backend. A free worker takes at
/// most `max_batch` requests as soon as one of these holds:
///
/// 1. No batch is under way, and `min_batch` requests wait: an idle backend never waits.
/// 2. A batch is under way, and `max_batch` requests wait.
/// 3. The oldest request has waited for `max_wait`.
/// 4. The queue is full, or shut down.
///
/// In both cases requests collect while all workers are busy. `docs/queue.md` bounds the time until
/// an answer.
pub struct QueueBuilder {
    backend: Backend,
    generator: Generator,
    fallback: Option<Fallback>,
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
            fallback: Some(LazyLock::new(Box::new(|| Some(Box::new(Cpu::new().ok()?))))),
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

    /// Sets the largest number of requests in a batch. Default: 1,024. 0 counts as 1.
    ///
    /// Where a batch uses the whole backend, other requests wait for the whole batch, at worst one
    /// with the longest keys. Processors reach their full rate with some hundred requests, GPUs
    /// with tens of thousands (see `docs/performance.md`).
    #[must_use]
    pub fn max_batch(mut self, requests: usize) -> Self {
        self.policy.max_batch = requests.max(1);
        self
    }

    /// Sets the number of requests for which an idle backend waits, at most for
    /// [`max_wait`](Self::max_wait). Default: 1, so it never waits. Larger values than `max_batch`
    /// count as `max_batch`.
    ///
    /// A larger value delays single requests and makes a busy processor more efficient, because
    /// empty SIMD lanes take as long as full ones. It does not help with `Auto`, which computes
    /// small batches on the processor. If the processor has other work, set it to
    /// `Auto::rsa_break_even`, the number of requests from which the GPUs compute.
    #[must_use]
    pub fn min_batch(mut self, requests: usize) -> Self {
        self.policy.min_batch = requests;
        self
    }

    /// Sets how long the oldest request waits for others. Default: 1 ms.
    ///
    /// It waits while there are fewer than [`min_batch`](Self::min_batch) requests. Where a batch
    /// uses the whole backend, it also waits while another batch is under way.
    #[must_use]
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.policy.max_wait = time;
        self
    }

    /// Sets the largest number of waiting requests. Default: eight times
    /// [`max_batch`](Self::max_batch). 0 counts as 1.
    ///
    /// Beyond it calls wait for space, and `try_sign` fails. A waiting request takes some hundred
    /// bytes. In addition, the queue holds up to `workers` batches.
    #[must_use]
    pub fn capacity(mut self, requests: usize) -> Self {
        self.capacity = Some(requests.max(1));
        self
    }

    /// Sets the number of threads that pass batches to the backend.
    ///
    /// On the processor the default is the number of backend threads, each of which computes by
    /// itself. With fewer workers, and on other backends, each batch uses the whole backend. The
    /// default there is 2: one worker prepares a batch or hands out answers while the backend
    /// computes the batch of the other.
    ///
    /// Up to sixteen batches run at once on `Cuda`: if one does not fill the device, use more
    /// workers.
    #[must_use]
    pub fn workers(mut self, threads: NonZeroUsize) -> Self {
        self.workers = Some(threads);
        self
    }

    /// Sets whether callers of [`sign_blocking`](BatchQueue::sign_blocking) may compute a batch on
    /// their own threads. Default: on.
    ///
    /// A caller does so if a batch may begin when it calls. A lone request then needs no thread
    /// switch, which saves some tens of microseconds. A caller computes one batch, with its own
    /// request and few others, so that it returns soon.
    ///
    /// Switch it off if callers' threads have small stacks, low priority or no time. Only the
    /// threads of the queue and of the backend compute then.
    #[must_use]
    pub fn callers_compute(mut self, on: bool) -> Self {
        self.callers_compute = on;
        self
    }

    /// Sets whether bases are blinded, as in
    /// [`BatchSigner::blinding`](crate::rsa::BatchSigner::blinding). Default: on.
    #[must_use]
    pub fn blinding(mut self, on: bool) -> Self {
        self.blinding = on;
        self
    }

    /// Sets the backend for batches that the first one fails to compute, by an error or a panic.
    /// Default: [`Cpu`](batch_modexp_cpu::Cpu), whose threads start when first needed.
    #[must_use]
    pub fn fallback<B>(mut self, backend: B) -> Self
    where
        B: RsaBackend + Send + Sync + 'static,
    {
        let made: Backend = Box::new(backend);
        self.fallback = Some(LazyLock::new(Box::new(|| Some(made))));
        self
    }

    /// Disables the fallback. If the backend fails as a whole, the requests of the batch get its
    /// error.
    #[must_use]
    pub fn no_fallback(mut self) -> Self {
        self.fallback = None;
        self
    }

    /// Starts the queue with its workers.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPool`] if the operating system cannot start the threads.
    pub fn build(self) -> Result<BatchQueue, Error> {
        let mut policy = self.policy;
        let most = policy.max_batch.saturating_mul(8);
        policy.capacity = self.capacity.unwrap_or(most);
        let per_thread = self.backend.per_thread();
        let enough =
            |one: &PerThread<'_>| self.workers.is_none_or(|workers| workers >= one.threads);
        let (sharing, workers) = match per_thread.filter(enough) {
            Some(one) => {
                // A signature is two exponentiations.
                let lanes = one.granularity.div_ceil(2);
                let count = one.threads.get();
                (Sharing::Threads { count, lanes }, one.threads)
            }
            None => (Sharing::Whole, NonZeroUsize::MIN.saturating_add(1)),
        };
        policy.sharing = sharing;
        let shared = Arc::new(Shared {
            waiting: Waiting::new(policy),
            stats: Default::default(),
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
