//! Generation of keys.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use batch_modexp::rsa::KeyGenerator;
use getrandom::SysRng;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::private_key::PrivateKey;
use crate::{error, machine};

const TIME_BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// A generated key: a PrivateKey that can be exported.
#[pyclass(frozen, extends = PrivateKey, module = "batch_modexp")]
pub(crate) struct GeneratedKey(batch_modexp::rsa::GeneratedKey);

#[pymethods]
impl GeneratedKey {
    /// The key in PKCS#8, in PEM, not encrypted.
    fn to_pem<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, &self.0.to_pkcs8_pem())
    }

    /// The key in PKCS#8, in DER, not encrypted.
    fn to_der<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_pkcs8_der())
    }
}

/// Generates keys by FIPS 186-5, appendix A.1.3.
#[pyfunction]
#[pyo3(signature = (bits, count, *, public_exponent=65_537, safe_primes=false))]
pub(crate) fn generate_keys(
    py: Python<'_>,
    bits: u32,
    count: usize,
    public_exponent: u32,
    safe_primes: bool,
) -> PyResult<Bound<'_, PyList>> {
    let backend = machine::shared(py)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let stop_of_generator = stop.clone();
    // One key of 8192 bits takes seconds, with safe primes minutes. The other thread generates it,
    // while this one checks for signals.
    let work = move || {
        let generate = || {
            let generator = KeyGenerator::new(&*backend, bits)?.public_exponent(public_exponent)?;
            let generator = generator.stop_on(stop_of_generator);
            let generator = match safe_primes {
                true => generator.safe_primes(),
                false => generator,
            };
            generator.generate(&mut SysRng, count)
        };
        // After an interrupted call there is no receiver.
        let _ = sender.send(generate());
    };
    let thread = thread::Builder::new().spawn(work);
    thread.map_err(|error| error::plain(format!("the system refuses a thread: {error}")))?;
    let receiver = Mutex::new(receiver);
    let wait = || {
        let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.recv_timeout(TIME_BETWEEN_SIGNALS)
    };
    let keys = loop {
        match py.detach(wait) {
            Ok(keys) => break keys,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error::plain("the generation of keys panicked"));
            }
        }
        py.check_signals()
            .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
    };
    let list = PyList::empty(py);
    for key in keys.map_err(error::plain)? {
        let base = PyClassInitializer::from(PrivateKey::new(key.key().clone()));
        list.append(Py::new(py, base.add_subclass(GeneratedKey(key)))?)?;
    }
    Ok(list)
}
