//! A queue for callers with one message at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use batch_modexp::queue::{BatchQueue, Shutdown};
use getrandom::SysRng;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::answers::Answers;
use crate::machine::{self, Gpus, NO_GPUS};
use crate::private_key::PrivateKey;
use crate::{error, messages, schemes};

/// A queue that makes batches of single requests, of threads and of asyncio.
#[pyclass(frozen, module = "batch_modexp")]
pub(crate) struct SigningQueue {
    queue: BatchQueue,
    answers: Answers,
    next_id: AtomicU64,
}

#[pymethods]
impl SigningQueue {
    /// A queue with threads of its own: as many as there are cores, unless `threads` says
    /// otherwise. Beyond `capacity` requests that wait, others wait for space. `gpus` is that of
    /// `set_gpus`, which does not concern queues.
    #[new]
    #[pyo3(
        signature = (*, threads=None, capacity=8192, gpus=NO_GPUS),
        text_signature = "(*, threads=None, capacity=8192, gpus=False)"
    )]
    fn new(py: Python<'_>, threads: Option<usize>, capacity: usize, gpus: Gpus) -> PyResult<Self> {
        let threads = machine::checked_threads(threads)?;
        if capacity == 0 {
            return Err(error::plain("the capacity is 0; take at least 1"));
        }
        let backend = py.detach(|| machine::start(threads, &gpus))?;
        let queue = BatchQueue::builder(backend, SysRng).capacity(capacity);
        Ok(Self {
            queue: queue.build().map_err(error::plain)?,
            answers: Answers::start()?,
            next_id: AtomicU64::new(0),
        })
    }

    /// A future of the running event loop for the signature of a message.
    #[pyo3(signature = (key, message, padding="pss", hash="sha256", *, salt_length=None, prehashed=false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn sign<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PrivateKey>,
        message: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        salt_length: Option<usize>,
        prehashed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scheme = schemes::signature(padding, hash, salt_length)?;
        let message = messages::octets("message", message)?;
        let key = key.get().handle();
        let signing = py.detach(|| match prehashed {
            true => self.queue.sign_prehash(key, scheme, &message),
            false => self.queue.sign(key, scheme, &message),
        });
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.answers.future(py, id, signing)
    }

    /// The signature of a message. The calling thread waits for it, and may compute a batch itself.
    #[pyo3(signature = (key, message, padding="pss", hash="sha256", *, salt_length=None, prehashed=false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn sign_blocking<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PrivateKey>,
        message: &Bound<'py, PyAny>,
        padding: &str,
        hash: &str,
        salt_length: Option<usize>,
        prehashed: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let scheme = schemes::signature(padding, hash, salt_length)?;
        let message = messages::octets("message", message)?;
        let key = key.get().handle();
        let signature = py.detach(|| match prehashed {
            true => self.queue.sign_prehash_blocking(key, scheme, &message),
            false => self.queue.sign_blocking(key, scheme, &message),
        });
        let signature = signature.map_err(error::of_queue)?;
        Ok(PyBytes::new(py, signature.as_ref()))
    }

    /// Signs what waits, or answers it with an Error if `cancel` is true. Later requests fail.
    #[pyo3(signature = (*, cancel=false))]
    fn close(&self, py: Python<'_>, cancel: bool) {
        let how = match cancel {
            true => Shutdown::Cancel,
            false => Shutdown::Drain,
        };
        py.detach(|| self.queue.shutdown(how));
    }

    /// Numbers of requests and batches so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.queue.stats();
        let dict = PyDict::new(py);
        dict.set_item("accepted", stats.accepted)?;
        dict.set_item("signed", stats.signed)?;
        dict.set_item("failed", stats.failed)?;
        dict.set_item("cancelled", stats.cancelled)?;
        dict.set_item("batches", stats.batches)?;
        Ok(dict)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py, false);
    }
}
