//! The exception of the module.

use batch_modexp::queue::QueueError;
use batch_modexp::rsa;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    batch_modexp,
    Error,
    PyValueError,
    "An operation that failed. `index` is the position of the item in its list, or None."
);

/// The exception with a message about the item at `index`.
pub(crate) fn at(py: Python<'_>, index: usize, message: &str) -> PyErr {
    with_index(py, Some(index), format!("item {index}: {message}"))
}

/// The exception with a message about no item.
pub(crate) fn plain(message: impl ToString) -> PyErr {
    Error::new_err(message.to_string())
}

/// The exception for an error in the part of a list that begins at `start`.
pub(crate) fn of_rsa(py: Python<'_>, error: rsa::Error, start: usize) -> PyErr {
    let error = moved(error, start);
    with_index(py, error.index(), error.to_string())
}

/// The exception for an error of the arithmetic in the part of a list that begins at `start`.
pub(crate) fn of_arithmetic(py: Python<'_>, error: batch_modexp::Error, start: usize) -> PyErr {
    let error = error.in_batch_at(start);
    with_index(py, error.index(), error.to_string())
}

/// The exception for a request that a queue did not sign.
pub(crate) fn of_queue(error: QueueError) -> PyErr {
    plain(error)
}

fn with_index(py: Python<'_>, index: Option<usize>, message: String) -> PyErr {
    let error = Error::new_err(message);
    match error.value(py).setattr("index", index) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Adds the start of the part of a list to the position of an error.
fn moved(mut error: rsa::Error, start: usize) -> rsa::Error {
    use rsa::Error as E;
    match &mut error {
        E::KeyTooShort { index, .. }
        | E::KeyRestricted { index, .. }
        | E::DigestLength { index, .. }
        | E::BlockOutOfRange { index, .. }
        | E::MessageTooLong { index, .. }
        | E::Verification { index }
        | E::Decryption { index }
        | E::Fault { index } => *index += start,
        E::Backend(error) => *error = error.clone().in_batch_at(start),
        _ => {}
    }
    error
}
