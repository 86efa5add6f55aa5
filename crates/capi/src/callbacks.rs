//! The thread that calls the callbacks of a queue's requests.

use std::collections::HashMap;
use std::ffi::c_void;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, ThreadId};

use batch_modexp::queue::{QueueError, Signing};
use batch_modexp::rsa::Signature;

use crate::boundary::{CANCELLED, CLOSED, FORKED, FULL, Failure, INTERNAL, LATE, OK, OPERATION};

/// `bme_sign_callback` of the header.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, i32, *const u8, usize);

type Outcome = Result<Signature, Failure>;

/// The failure of a request.
pub(crate) fn failure_of(error: QueueError) -> Failure {
    let status = match error {
        QueueError::Full => FULL,
        QueueError::ShutDown => CANCELLED,
        QueueError::Forked => FORKED,
        QueueError::Sign(_) => OPERATION,
        _ => INTERNAL,
    };
    Failure::new(status, error)
}

/// A callback of C, to be called once.
pub(crate) struct Target {
    callback: Callback,
    user: *mut c_void,
}

// SAFETY: the header documents that the callback runs on a thread of the queue, with which
// arguments.
unsafe impl Send for Target {}

impl Target {
    pub(crate) fn new(callback: Callback, user: *mut c_void) -> Self {
        Self { callback, user }
    }

    fn call(self, outcome: Outcome) {
        let (status, signature) = match outcome {
            Ok(signature) => (OK, Some(signature)),
            Err(failure) => (failure.keep(), None),
        };
        let octets = signature.as_ref().map(AsRef::as_ref);
        let (start, len) = octets.map_or((ptr::null(), 0), |octets: &[u8]| {
            (octets.as_ptr(), octets.len())
        });
        // SAFETY: the program vouches for its callback.
        unsafe { (self.callback)(self.user, status, start, len) }
    }
}

enum Stage {
    Waits(Signing),
    /// The outcome is known, and the callback has not been called yet.
    Settled(Outcome),
}

/// A place in a queue of limited capacity, free again on drop.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Request {
    stage: Stage,
    target: Target,
    waker: Waker,
    _place: Place,
}

impl Request {
    /// Takes the answer if there is one; returns whether the request is settled.
    fn settle(&mut self) -> bool {
        if let Stage::Waits(signing) = &mut self.stage {
            match Pin::new(signing).poll(&mut Context::from_waker(&self.waker)) {
                Poll::Ready(outcome) => self.stage = Stage::Settled(outcome.map_err(failure_of)),
                Poll::Pending => return false,
            }
        }
        true
    }
}

/// The requests whose callbacks have not been called.
struct Open {
    requests: HashMap<u64, Request>,
    last_id: u64,
    /// Receives numbers of requests that may be settled; `None` when the queue is closed.
    events: Option<Sender<u64>>,
}

/// Notifies the thread of a request. The queue's workers call it; it does not block.
struct Wakeup {
    id: u64,
    events: Sender<u64>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        // The thread lives as long as there is a request.
        let _ = self.events.send(self.id);
    }
}

/// The thread and its requests. After a drop of this value the thread ends when all requests are
/// done.
pub(crate) struct Callbacks {
    open: Arc<Mutex<Open>>,
    /// Places of requests whose callbacks have not been called, and of those to be added.
    taken: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
}

impl Callbacks {
    pub(crate) fn start() -> io::Result<Self> {
        let (events, receiver) = mpsc::channel();
        let open = Arc::new(Mutex::new(Open {
            requests: HashMap::new(),
            last_id: 0,
            events: Some(events),
        }));
        let of_thread = open.clone();
        let thread = thread::Builder::new()
            .name("batch-modexp-callbacks".into())
            .spawn(move || run(&of_thread, &receiver))?;
        Ok(Self {
            open,
            taken: Arc::default(),
            thread_id: thread.thread().id(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Takes one of `capacity` places; `None` if no place is free.
    pub(crate) fn reserve(&self, capacity: usize) -> Option<Place> {
        let more = |taken| (taken < capacity).then_some(taken + 1);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.taken.fetch_update(set, read, more).ok()?;
        Some(Place(self.taken.clone()))
    }

    /// Whether the current thread runs a callback.
    pub(crate) fn is_current(&self) -> bool {
        thread::current().id() == self.thread_id
    }

    /// Adds a request. `publish` receives its number before the callback can be called.
    pub(crate) fn add(
        &self,
        place: Place,
        signing: Signing,
        target: Target,
        publish: impl FnOnce(u64),
    ) -> Result<(), Failure> {
        let mut open = lock(&self.open);
        let Some(events) = open.events.clone() else {
            return Err(Failure::new(CLOSED, QueueError::ShutDown));
        };
        open.last_id += 1;
        let id = open.last_id;
        let wakeup = Wakeup {
            id,
            events: events.clone(),
        };
        let mut request = Request {
            stage: Stage::Waits(signing),
            target,
            waker: Waker::from(Arc::new(wakeup)),
            _place: place,
        };
        publish(id);
        // The callback is not called here: the program may hold a lock that the callback needs.
        if request.settle() {
            let _ = events.send(id);
        }
        open.requests.insert(id, request);
        Ok(())
    }

    /// Cancels a request that is not settled.
    pub(crate) fn cancel(&self, id: u64) -> Result<(), Failure> {
        let mut open = lock(&self.open);
        let events = open.events.clone();
        if let (Some(request), Some(events)) = (open.requests.get_mut(&id), events)
            && !request.settle()
        {
            let cancelled = Failure::new(CANCELLED, "the request was cancelled");
            // Dropping the signing removes it from the queue.
            request.stage = Stage::Settled(Err(cancelled));
            let _ = events.send(id);
            return Ok(());
        }
        Err(Failure::new(LATE, "there is nothing to cancel any more"))
    }

    /// Refuses further requests, and returns when all callbacks have returned. All requests must
    /// have been answered before.
    pub(crate) fn finish(&self) {
        lock(&self.open).events = None;
        // Under the lock, so that a second call waits too.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        lock(&self.open).events = None;
    }
}

/// Calls callbacks until no sender of events is left.
fn run(open: &Mutex<Open>, events: &Receiver<u64>) {
    for id in events {
        if let Some((target, outcome)) = take(open, id) {
            target.call(outcome);
        }
    }
}

fn take(open: &Mutex<Open>, id: u64) -> Option<(Target, Outcome)> {
    let mut open = lock(open);
    if !open.requests.get_mut(&id)?.settle() {
        return None;
    }
    let Request { stage, target, .. } = open.requests.remove(&id)?;
    match stage {
        Stage::Settled(outcome) => Some((target, outcome)),
        Stage::Waits(_) => None,
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
