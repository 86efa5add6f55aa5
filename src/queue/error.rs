//! Errors of requests.

use core::fmt;

use crate::rsa::Error;

/// Why a request was not signed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum QueueError {
    /// The queue is full. Only from [`try_sign`](super::BatchQueue::try_sign) and
    /// [`try_sign_prehash`](super::BatchQueue::try_sign_prehash).
    Full,
    /// The queue was shut down before the request was signed.
    ShutDown,
    /// The limit of [`Signing::wait_timeout`](super::Signing::wait_timeout) passed; the request is
    /// cancelled.
    TimedOut,
    /// The backend panicked, and the fallback too or there is none.
    Panicked,
    /// The queue lost the request: a panic in the queue itself ended the batch early.
    Unanswered,
    /// A blocking call came from a waker, backend or random number generator that a queue had
    /// called. The queue and that code might wait for each other. Use `sign` or `try_sign` there,
    /// or make the call on another thread.
    WouldDeadlock,
    /// The call came from a forked child of the process that has the workers.
    Forked,
    /// The signer's error, as for a batch of this request alone.
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
