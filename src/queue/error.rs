//! What a request can come back with instead of a signature.

use core::fmt;

use crate::rsa::Error;

/// Why a request was not signed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum QueueError {
    /// As many requests wait as the queue has space for. Only from [`try_sign`](super::BatchQueue::try_sign) and
    /// [`try_sign_prehash`](super::BatchQueue::try_sign_prehash).
    Full,
    /// The queue was shut down before the request was signed.
    ShutDown,
    /// The time of [`Signing::wait_timeout`](super::Signing::wait_timeout) was over; the request is cancelled.
    TimedOut,
    /// The backend panicked, and so did the one that it falls back to, or there is none.
    Panicked,
    /// The queue lost the request without an answer: a panic in the queue itself ended its batch early.
    Unanswered,
    /// A call that blocks came from code that a queue had called: a waker, a backend or a random number generator. The queue
    /// might wait for that code, and the code for the queue. Take `sign` or `try_sign` there, or another thread.
    WouldDeadlock,
    /// The call came from a process that was forked from the one whose workers the queue has.
    Forked,
    /// The signer's error, as of a batch of this one request.
    Sign(Error),
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the queue is full; try again later, or wait for space"),
            Self::ShutDown => f.write_str("the queue has been shut down"),
            Self::TimedOut => f.write_str("the time for the signature is over"),
            Self::Panicked => f.write_str("the backend panicked; see the message of the panic"),
            Self::Unanswered => f.write_str(
                "the queue lost the request; see the message of the panic, and try again",
            ),
            Self::WouldDeadlock => f.write_str(
                "a waker, backend or generator called by a queue must not block in one; \
                 make the call on another thread, or without blocking",
            ),
            Self::Forked => f.write_str(
                "a forked child has no workers; make the queue after the fork, in the child",
            ),
            Self::Sign(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for QueueError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Sign(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for QueueError {
    fn from(error: Error) -> Self {
        Self::Sign(error)
    }
}
