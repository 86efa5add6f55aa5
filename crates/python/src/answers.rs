//! Signatures for asyncio: a thread polls requests and settles the futures of event loops.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use batch_modexp::queue::{QueueError, Signing};
use batch_modexp::rsa::Signature;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::error;

type Outcome = Result<Signature, QueueError>;

enum Event {
    Begin(u64, Request),
    /// A signature, or space in the queue, is available.
    Woken(u64),
    /// The future was cancelled.
    Cancelled(u64),
}

struct Request {
    signing: Signing,
    waker: Waker,
    future: Py<PyAny>,
    event_loop: Py<PyAny>,
}

/// Wakes a request. The queue calls it; it does not block.
struct Wakeup {
    id: u64,
    events: Sender<Event>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        // The thread ends after all requests, unless the process ends first.
        let _ = self.events.send(Event::Woken(self.id));
    }
}

/// A callback of a future, which cancels its request.
#[pyclass(frozen, module = "batch_modexp")]
struct Cancel {
    id: u64,
    events: Sender<Event>,
}

#[pymethods]
impl Cancel {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            let _ = self.events.send(Event::Cancelled(self.id));
        }
        Ok(())
    }
}

/// The sending end of the thread's channel. The thread ends when this is dropped and all requests
/// are answered.
pub(crate) struct Answers(Sender<Event>);

impl Answers {
    pub(crate) fn start() -> PyResult<Self> {
        let (events, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("batch-modexp-answers".into())
            .spawn(move || work(&receiver))?;
        Ok(Self(events))
    }

    /// Makes a future of the running event loop for a request with this number.
    pub(crate) fn future<'py>(
        &self,
        py: Python<'py>,
        id: u64,
        mut signing: Signing,
    ) -> PyResult<Bound<'py, PyAny>> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        let waker = Waker::from(Arc::new(Wakeup {
            id,
            events: self.0.clone(),
        }));
        // A request that fails at once needs no thread, which a forked child lacks.
        if let Poll::Ready(outcome) = poll(&mut signing, &waker) {
            settle(&future, outcome)?;
            return Ok(future);
        }
        let cancel = Cancel {
            id,
            events: self.0.clone(),
        };
        future.call_method1("add_done_callback", (cancel,))?;
        let request = Request {
            signing,
            waker,
            future: future.clone().unbind(),
            event_loop: event_loop.unbind(),
        };
        let begun = self.0.send(Event::Begin(id, request));
        begun.map_err(|_| error::plain("the thread that answers has ended"))?;
        Ok(future)
    }
}

fn poll(signing: &mut Signing, waker: &Waker) -> Poll<Outcome> {
    Pin::new(signing).poll(&mut Context::from_waker(waker))
}

/// Polls requests that were woken. Answers that arrive together take the interpreter's lock once.
fn work(events: &Receiver<Event>) {
    let mut requests = HashMap::new();
    while let Ok(event) = events.recv() {
        let mut answered = Vec::new();
        let mut next = Some(event);
        while let Some(event) = next {
            take(event, &mut requests, &mut answered);
            next = events.try_recv().ok();
        }
        if !answered.is_empty() {
            // Fails if Python is shutting down.
            let _ = Python::try_attach(|py| schedule_settling(py, answered));
        }
    }
}

fn take(
    event: Event,
    requests: &mut HashMap<u64, Request>,
    answered: &mut Vec<(Request, Outcome)>,
) {
    let id = match event {
        Event::Begin(id, request) => {
            requests.insert(id, request);
            id
        }
        Event::Woken(id) => id,
        Event::Cancelled(id) => {
            requests.remove(&id);
            return;
        }
    };
    // A request may be woken before it arrives here, or after its answer.
    let Some(request) = requests.get_mut(&id) else {
        return;
    };
    if let Poll::Ready(outcome) = poll(&mut request.signing, &request.waker) {
        answered.extend(requests.remove(&id).map(|request| (request, outcome)));
    }
}

/// Settles the futures of each event loop, with one call for neighbours of the same loop.
fn schedule_settling(py: Python<'_>, answered: Vec<(Request, Outcome)>) {
    for group in answered.chunk_by(|a, b| a.0.event_loop.is(&b.0.event_loop)) {
        let list = PyList::empty(py);
        for (request, outcome) in group {
            let added = match outcome {
                Ok(signature) => {
                    list.append((&request.future, PyBytes::new(py, signature.as_ref())))
                }
                Err(error) => {
                    let error = error::of_queue(error.clone());
                    list.append((&request.future, error.value(py)))
                }
            };
            added.unwrap_or_else(|error| error.write_unraisable(py, None));
        }
        let event_loop = group[0].0.event_loop.bind(py);
        let settle = wrap_pyfunction!(settle_all, py);
        // A closed loop needs no answers.
        let _ = settle.and_then(|f| event_loop.call_method1("call_soon_threadsafe", (f, list)));
    }
}

/// Settles futures on the thread of their loop.
#[pyfunction]
fn settle_all(futures: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>) -> PyResult<()> {
    for (future, result) in futures {
        if future.call_method0("done")?.is_truthy()? {
            continue;
        }
        let method = match result.is_instance_of::<PyBytes>() {
            true => "set_result",
            false => "set_exception",
        };
        future.call_method1(method, (result,))?;
    }
    Ok(())
}

fn settle(future: &Bound<'_, PyAny>, outcome: Outcome) -> PyResult<()> {
    let py = future.py();
    match outcome {
        Ok(signature) => {
            future.call_method1("set_result", (PyBytes::new(py, signature.as_ref()),))?
        }
        Err(error) => {
            let error = error::of_queue(error);
            future.call_method1("set_exception", (error.value(py),))?
        }
    };
    Ok(())
}
