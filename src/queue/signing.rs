//! A request as its caller sees it: a future that can also block.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::thread::{self, Thread};
use std::time::Instant;

use super::reply::Answer;
use super::requests::Ticket;
use super::shared::{Outcome, Request, Shared};
use super::waiting::{Pushed, Refused};
use super::{IS_WORKING, MayCompute, QueueError};
use crate::rsa::Signature;

/// A pending signature: a future for any runtime, or [`wait`](Self::wait) to block.
///
/// Dropping it cancels the request: if its batch has not begun, it is not signed and its space in
/// the queue is free at once.
#[must_use = "a request is cancelled when this is dropped"]
pub struct Signing {
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    /// The request was invalid.
    Failed(QueueError),
    /// The queue has been full so far. With the caller's turn, once it waits for space.
    Blocked(Request, Answer<Outcome>, Option<u64>),
    /// Without a ticket if the caller has computed the batch.
    Queued(Option<Ticket>, Answer<Outcome>),
    Over,
}

impl Signing {
    pub(super) fn failed(shared: &Arc<Shared>, error: QueueError) -> Self {
        Self {
            shared: shared.clone(),
            stage: Stage::Failed(error),
        }
    }

    pub(super) fn submit(
        shared: &Arc<Shared>,
        request: Request,
        answer: Answer<Outcome>,
        may_compute: MayCompute,
    ) -> Self {
        let work = request.work();
        let pushed = match may_compute.0 && shared.callers_compute {
            true => shared.waiting.push_or_lead(work, request),
            false => shared.waiting.push(work, request).map(Pushed::Waits),
        };
        let stage = match pushed {
            Ok(Pushed::Waits(ticket)) => Stage::Queued(Some(ticket), answer),
            Ok(Pushed::Led((batch, under_way))) => {
                shared.lead(batch, under_way);
                Stage::Queued(None, answer)
            }
            Err(Refused::Closed) => Stage::Failed(QueueError::ShutDown),
            Err(Refused::Full(request)) => Stage::Blocked(request, answer, None),
        };
        Self {
            shared: shared.clone(),
            stage,
        }
    }

    /// Returns the error of a request that has failed already, or `Full` if it is not in the queue.
    pub(super) fn if_queued(self) -> Result<Self, QueueError> {
        match &self.stage {
            Stage::Blocked(..) => Err(QueueError::Full),
            Stage::Failed(error) => Err(error.clone()),
            Stage::Queued(..) | Stage::Over => Ok(self),
        }
    }

    /// Blocks until there is an answer. While the queue is full, it waits for space first.
    ///
    /// # Errors
    ///
    /// [`QueueError::Sign`] with the signer's error, and the others except [`QueueError::Full`] and
    /// [`QueueError::TimedOut`]. The error is [`QueueError::WouldDeadlock`] if there is no answer
    /// yet and the call comes from a waker, a backend or a generator that a queue has called. The
    /// request is cancelled then.
    ///
    /// # Panics
    ///
    /// If the future has already returned its result.
    pub fn wait(self) -> Result<Signature, QueueError> {
        self.block(None)
    }

    /// Blocks for at most `limit`, then cancels the request.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait), and [`QueueError::TimedOut`].
    ///
    /// # Panics
    ///
    /// If the future has already returned its result.
    pub fn wait_timeout(self, limit: Duration) -> Result<Signature, QueueError> {
        // A deadline beyond the range of the clock is no limit.
        self.block(Instant::now().checked_add(limit))
    }

    fn block(mut self, deadline: Option<Instant>) -> Result<Signature, QueueError> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(outcome) = Pin::new(&mut self).poll(&mut context) {
                return outcome;
            }
            if IS_WORKING.get() {
                return Err(QueueError::WouldDeadlock);
            }
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return Err(QueueError::TimedOut),
                Some(rest) => thread::park_timeout(rest),
            }
        }
    }
}

/// Wakes a thread that blocks.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// # Panics
///
/// If it is polled after it has returned its result.
impl Future for Signing {
    type Output = Result<Signature, QueueError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A forked child has no workers, and holders of locks are in the parent.
        if self.shared.is_forked() && !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Failed(QueueError::Forked);
        }
        loop {
            match core::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Failed(error) => return Poll::Ready(Err(error)),
                Stage::Blocked(request, answer, mut turn) => {
                    let (waiting, work) = (&self.shared.waiting, request.work());
                    match waiting.push_or_wait(work, request, &mut turn, context.waker()) {
                        Ok(ticket) => self.stage = Stage::Queued(Some(ticket), answer),
                        Err(Refused::Closed) => self.stage = Stage::Failed(QueueError::ShutDown),
                        Err(Refused::Full(request)) => {
                            self.stage = Stage::Blocked(request, answer, turn);
                            return Poll::Pending;
                        }
                    }
                }
                Stage::Queued(ticket, answer) => {
                    let polled = answer.poll(context);
                    if polled.is_pending() {
                        self.stage = Stage::Queued(ticket, answer);
                    }
                    return polled.map(|outcome| outcome.unwrap_or(Err(QueueError::Unanswered)));
                }
                Stage::Over => panic!("a `Signing` was polled after it had come back"),
            }
        }
    }
}

impl Drop for Signing {
    fn drop(&mut self) {
        match &self.stage {
            Stage::Failed(_) | Stage::Over | Stage::Queued(None, _) => {}
            Stage::Blocked(.., turn) => self.shared.stop_waiting(*turn),
            Stage::Queued(Some(ticket), _) => self.shared.cancel(*ticket),
        }
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Failed(_) => "Signing(failed)",
            Stage::Blocked(..) => "Signing(waits for space)",
            Stage::Queued(..) => "Signing(in the queue)",
            Stage::Over => "Signing(over)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::BatchQueue;
    use super::super::reply::reply;
    use super::*;
    use batch_modexp_core::Serial;

    /// The queue was not shut down.
    #[test]
    fn a_request_that_is_lost_says_so() {
        let queue = BatchQueue::new(Serial, getrandom::SysRng).unwrap();
        let (reply, answer) = reply();
        drop(reply);
        let signing = Signing {
            shared: queue.0.shared.clone(),
            stage: Stage::Queued(None, answer),
        };
        assert_eq!(signing.wait(), Err(QueueError::Unanswered));
    }
}
