//! The channel for one answer from a worker to its caller.

use core::task::{Context, Poll, Waker};

use super::sync::{Arc, Mutex, PoisonError};

/// Makes the two ends of the channel.
pub(super) fn reply<A>() -> (Reply<A>, Answer<A>) {
    let slot = Arc::new(Mutex::new(Slot::Open(None)));
    (Reply(Some(slot.clone())), Answer(slot))
}

enum Slot<A> {
    /// With the waker of the caller, if it waits.
    Open(Option<Waker>),
    Answered(A),
    /// The reply was dropped.
    Unanswered,
}

/// The sending end. Dropping it tells the caller that there will be no answer.
pub(super) struct Reply<A>(Option<Arc<Mutex<Slot<A>>>>);

impl<A> Reply<A> {
    /// Sends the answer, and returns the waker to call.
    #[must_use]
    pub(super) fn put(mut self, answer: A) -> Option<Waker> {
        self.replace(Slot::Answered(answer))
    }

    fn replace(&mut self, content: Slot<A>) -> Option<Waker> {
        let slot = self.0.take()?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match core::mem::replace(&mut *slot, content) {
            Slot::Open(waker) => waker,
            Slot::Answered(_) | Slot::Unanswered => None,
        }
    }
}

impl<A> Drop for Reply<A> {
    fn drop(&mut self) {
        if let Some(waker) = self.replace(Slot::Unanswered) {
            super::wake(waker);
        }
    }
}

/// The receiving end.
pub(super) struct Answer<A>(Arc<Mutex<Slot<A>>>);

impl<A> Answer<A> {
    /// The answer, once; `None` if there will be none.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<A>> {
        // A waker is the caller's code, so it is cloned outside the lock.
        let waker = context.waker().clone();
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match &*slot {
            Slot::Open(_) => Slot::Open(Some(waker)),
            Slot::Answered(_) | Slot::Unanswered => Slot::Unanswered,
        };
        let old = core::mem::replace(&mut *slot, new);
        drop(slot);
        match old {
            Slot::Open(_) => Poll::Pending,
            Slot::Answered(answer) => Poll::Ready(Some(answer)),
            Slot::Unanswered => Poll::Ready(None),
        }
    }
}
