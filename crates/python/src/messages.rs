//! Lists of keys and octet strings from Python, and lists of results for Python.

use std::ops::Deref;

use batch_modexp::rsa::{Error, KeyHandle, PublicKey};
use batch_modexp::secret::Secret;
use pyo3::PyClass;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::{error, machine};

/// The work of a private operation, in cubes of limbs: see [`crate::machine::in_pieces`].
pub(crate) fn private_work(key: &KeyHandle) -> u64 {
    let cube = (key.size() as u64 / 8).pow(3);
    match key.has_crt() {
        true => cube / 4,
        false => cube,
    }
}

/// The work of a public operation with each key.
pub(crate) fn public_work(keys: &[&PublicKey]) -> Vec<u64> {
    let work = |key: &PublicKey| {
        let exponent_bits = 8 * key.e().len() as u64;
        (key.size() as u64 / 8).pow(2) * exponent_bits / 64
    };
    let each = keys.chunk_by(|a, b| std::ptr::eq(*a, *b));
    each.flat_map(|same| std::iter::repeat_n(work(same[0]), same.len()))
        .collect()
}

/// One key for all items, or one for each.
pub(crate) enum Keys<'a, K> {
    One(&'a K),
    Each(Vec<&'a K>),
}

impl<'a, K> Keys<'a, K> {
    /// The key of each of `len` items, which are called `name`.
    pub(crate) fn of_items(self, name: &str, len: usize) -> PyResult<Vec<&'a K>> {
        match self {
            Self::One(key) => Ok(vec![key; len]),
            Self::Each(keys) => {
                check_lengths(["keys", name], [keys.len(), len])?;
                Ok(keys)
            }
        }
    }
}

/// The keys of a list.
pub(crate) fn keys<'py, T: PyClass>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, T>>> {
    let mut list = Vec::with_capacity(object.len().unwrap_or(0));
    for (index, key) in object.try_iter()?.enumerate() {
        machine::check_signals_at(object.py(), index)?;
        list.push(key?.cast_into().map_err(|error| {
            let key = error.into_inner();
            wrong_type(&format!("keys[{index}]"), T::NAME, &key)
        })?);
    }
    Ok(list)
}

/// The octets of an object with the buffer protocol.
pub(crate) enum Octets {
    /// Those of `bytes`, which are not copied.
    Bytes(PyBackedBytes),
    /// A copy. It is wiped, because it may be a message to encrypt.
    Copy(Secret<Vec<u8>>),
}

impl Deref for Octets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(octets) => octets,
            Self::Copy(octets) => octets,
        }
    }
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

pub(crate) fn octets(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Octets> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Octets::Bytes(bytes.clone().into()));
    }
    let copy = buffer(name, object)?.to_vec(object.py())?;
    Ok(Octets::Copy(Secret::new(copy)))
}

/// The octets of an object with the buffer protocol, in place.
pub(crate) fn buffer(name: &str, object: &Bound<'_, PyAny>) -> PyResult<PyBuffer<u8>> {
    if let Ok(buffer) = PyBuffer::get(object) {
        return Ok(buffer);
    }
    Err(wrong_type(name, "bytes-like object", object))
}

fn wrong_type(name: &str, needed: &str, object: &Bound<'_, PyAny>) -> PyErr {
    match object.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("{name}: a {needed} is needed, not '{kind}'")),
        Err(error) => error,
    }
}

/// The octets of all items of a list.
pub(crate) fn list(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<Octets>> {
    let mut list = Vec::with_capacity(object.len().unwrap_or(0));
    for (index, item) in object.try_iter()?.enumerate() {
        machine::check_signals_at(object.py(), index)?;
        let item = item?;
        list.push(match item.cast::<PyBytes>() {
            Ok(bytes) => Octets::Bytes(bytes.clone().into()),
            Err(_) => octets(&format!("{name}[{index}]"), &item)?,
        });
    }
    Ok(list)
}

/// Fails unless two lists have the same length.
pub(crate) fn check_lengths(names: [&str; 2], lengths: [usize; 2]) -> PyResult<()> {
    if lengths[0] == lengths[1] {
        return Ok(());
    }
    let [first, second] = names;
    let message = format!(
        "{first} has {} items and {second} has {}",
        lengths[0], lengths[1]
    );
    Err(PyValueError::new_err(message))
}

/// Appends the results of the part of a list that begins at `start`. Raises the first error; with
/// `return_exceptions`, each error is an item of the list.
pub(crate) fn append<'a>(
    list: &Bound<'_, PyList>,
    start: usize,
    results: impl Iterator<Item = Result<&'a [u8], Error>>,
    return_exceptions: bool,
) -> PyResult<()> {
    let py = list.py();
    for result in results {
        match result {
            Ok(octets) => list.append(PyBytes::new(py, octets))?,
            Err(error) => {
                let error = error::of_rsa(py, error, start);
                if !return_exceptions {
                    return Err(error);
                }
                list.append(error.value(py))?;
            }
        }
    }
    Ok(())
}
