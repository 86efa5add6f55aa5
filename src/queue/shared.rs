//! The state that callers and workers share, and the computation of a batch.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::task::Waker;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::generator::Generator;
use super::policy::{Sharing, Work};
use super::reply::Reply;
use super::requests::{Batch, Ticket};
use super::waiting::{UnderWay, Waiting};
use super::{IS_WORKING, QueueError, QueueStats, contain};
use crate::rsa::Error;
use crate::rsa::backend::RsaBackend;
use crate::rsa::{AnyDigest, AnyScheme, BatchSigner, Hash, KeyHandle, Signature};

/// A backend shared by the workers.
pub(super) type Backend = Box<dyn RsaBackend + Send + Sync>;

/// The result of a request.
pub(super) type Outcome = Result<Signature, QueueError>;

pub(super) struct Request {
    pub(super) key: KeyHandle,
    pub(super) scheme: AnyScheme,
    pub(super) digest: AnyDigest,
    pub(super) reply: Reply<Outcome>,
}

impl Request {
    pub(super) fn work(&self) -> Work {
        Work::of_request(self.key.bits(), self.key.has_crt())
    }
}

/// The number of answers stored before their callers are woken, which takes some tens of
/// microseconds. A caller with many requests then finds them all answered and is not woken for
/// each.
const ANSWERS_AT_A_TIME: usize = 1024;

pub(super) struct Shared {
    pub(super) waiting: Waiting<Request>,
    /// Without the numbers that `waiting` has.
    pub(super) stats: Mutex<QueueStats>,
    pub(super) backend: Backend,
    pub(super) fallback: Option<Fallback>,
    pub(super) generator: Generator,
    pub(super) blinding: bool,
    pub(super) callers_compute: bool,
    pub(super) sharing: Sharing,
    /// The process that has the workers.
    pub(super) process: u32,
}

/// The backend for batches that the first one fails to compute. It is made when first needed; `None`
/// if it cannot be made.
pub(super) type Fallback = LazyLock<Option<Backend>, Box<dyn FnOnce() -> Option<Backend> + Send>>;

/// Wakers for answers that are stored. Dropping it wakes them all, also during a panic.
#[derive(Default)]
struct Wakers(Vec<Waker>);

impl Drop for Wakers {
    fn drop(&mut self) {
        self.0.drain(..).for_each(super::wake);
    }
}

type Items<'a> = [(&'a KeyHandle, AnyScheme, &'a [u8])];

/// Methods for callers.
impl Shared {
    /// Whether the workers, and any holder of a lock, are in another process.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// The counters. No caller's code runs while they are locked.
    pub(super) fn stats(&self) -> MutexGuard<'_, QueueStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cancel(&self, ticket: Ticket) {
        if !self.is_forked() && self.waiting.cancel(ticket).is_some() {
            self.stats().cancelled += 1;
        }
    }

    pub(super) fn stop_waiting(&self, turn: Option<u64>) {
        if let Some(turn) = turn.filter(|_| !self.is_forked()) {
            self.waiting.stop_waiting(turn);
        }
    }

    pub(super) fn close(&self, cancelled: bool) {
        let requests = self.waiting.close(cancelled);
        self.stats().cancelled += requests.len() as u64;
        let mut wakers = Wakers::default();
        for request in requests {
            wakers
                .0
                .extend(request.reply.put(Err(QueueError::ShutDown)));
        }
    }
}

/// Methods for workers and for callers that compute.
impl Shared {
    /// Signs until the queue is closed and empty.
    pub(super) fn work(&self) {
        while let Some((requests, under_way)) = self.waiting.take() {
            let outcomes = self.compute(&requests);
            // Where a batch has the whole backend, that is idle: the next batch may begin while these
            // answers are handed out. Else this thread takes the next one itself when it is done.
            let under_way = Some(under_way).filter(|_| self.sharing != Sharing::Whole);
            self.answer(requests, outcomes);
            drop(under_way);
        }
    }

    /// Computes and answers a batch on a caller's thread.
    pub(super) fn lead(&self, requests: Batch<Request>, under_way: UnderWay<'_, Request>) {
        let outer = IS_WORKING.replace(true);
        let work = || {
            // `shutdown` waits for this until the answers are handed out.
            let _under_way = under_way;
            self.stats().led += 1;
            let outcomes = self.compute(&requests);
            self.answer(requests, outcomes);
        };
        // If this panics, the caller's own reply tells it.
        contain(work);
        IS_WORKING.set(outer);
    }

    fn answer(&self, requests: Batch<Request>, outcomes: Vec<Outcome>) {
        let now = Instant::now();
        let mut stats = self.stats();
        for ((since, _), outcome) in requests.iter().zip(&outcomes) {
            stats.answered(outcome.is_ok(), now.saturating_duration_since(*since));
        }
        drop(stats);
        let mut answers = requests.into_iter().zip(outcomes);
        while answers.len() > 0 {
            let mut wakers = Wakers::default();
            for ((_, request), outcome) in answers.by_ref().take(ANSWERS_AT_A_TIME) {
                wakers.0.extend(request.reply.put(outcome));
            }
        }
    }

    fn compute(&self, requests: &Batch<Request>) -> Vec<Outcome> {
        self.stats().batch(requests.len());
        let items = requests
            .iter()
            .map(|(_, request)| (&request.key, request.scheme, request.digest.as_ref()));
        let items: &Items<'_> = &items.collect::<Vec<_>>();
        let first = self.attempt(items, || match (self.sharing, self.backend.per_thread()) {
            (Sharing::Threads { .. }, Some(one)) => one.backend,
            _ => &*self.backend,
        });
        let failure = match first {
            Ok(outcomes) => return outcomes,
            Err(failure) => failure,
        };
        // No backend signs without random numbers.
        let fallback = match failure {
            QueueError::Sign(Error::Rng) => None,
            _ => contain(|| self.fallback.as_ref()?.as_deref()).flatten(),
        };
        let second = fallback.map(|backend| {
            self.stats().fallbacks += 1;
            self.attempt(items, || backend)
        });
        match second.unwrap_or(Err(failure)) {
            Ok(outcomes) => outcomes,
            Err(failure) => vec![Err(failure); items.len()],
        }
    }

    /// Computes one outcome for each item, or returns why the backend failed as a whole.
    fn attempt<'a>(
        &self,
        items: &Items<'_>,
        backend: impl FnOnce() -> &'a dyn RsaBackend,
    ) -> Result<Vec<Outcome>, QueueError> {
        let sign = || {
            let backend = backend();
            // Ignored: each item has its own scheme.
            let scheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };
            let signer = BatchSigner::new(backend, scheme).blinding(self.blinding);
            signer.sign_prehash_mixed(&mut &self.generator, items)
        };
        // A batch that unwinds leaves only its own buffers behind, which are wiped.
        let results = contain(sign).ok_or(QueueError::Panicked)??;
        let alone = |error: Error| QueueError::Sign(error.at(0));
        Ok(results
            .into_iter()
            .map(|result| result.map_err(alone))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    #[test]
    fn a_panic_leaves_nobody_asleep() {
        let flag = Arc::<WakeFlag>::default();
        let panicked = contain(|| {
            let _wakers = Wakers(vec![Waker::noop().clone(), flag.clone().into()]);
            std::panic::resume_unwind(Box::new("as asked"));
        });
        assert!(panicked.is_none() && flag.0.load(SeqCst));
    }
}
