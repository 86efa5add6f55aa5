//! Buffers of fixed-width octets, and results in the form of the operands.

use batch_modexp::secret::Secret;
use crypto_bigint::BoxedUint;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList};

use crate::machine;

/// The form of a list of numbers, which results get too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A list of integers.
    Integers,
    /// `bytes` and other buffers.
    Octets,
    /// An array of numpy, or of anything with `__array_interface__`.
    Array,
}

/// The octets of a buffer, row by row.
pub(crate) struct Rows {
    pub(crate) octets: Secret<Vec<u8>>,
    pub(crate) count: usize,
    pub(crate) width: usize,
    pub(crate) kind: Kind,
}

/// Reads a buffer of unsigned octets; `None` if the object is none. In two dimensions, each row is
/// a number. In one dimension, the buffer is cut into `count` numbers.
pub(crate) fn read(
    name: &str,
    object: &Bound<'_, PyAny>,
    count: Option<usize>,
) -> PyResult<Option<Rows>> {
    let Ok(buffer) = PyBuffer::<u8>::get(object) else {
        return Ok(None);
    };
    let (count, width) = match (buffer.shape(), count) {
        (&[rows, width], _) => (rows, width),
        (&[0], Some(0)) => (0, 0),
        (&[len], Some(count)) if count > 0 && len % count == 0 => (count, len / count),
        (&[len], Some(count)) => {
            let message = format!("{name}: {len} octets are not {count} numbers of equal width");
            return Err(PyValueError::new_err(message));
        }
        (&[_], None) => {
            let message = format!("{name}: a buffer of one dimension needs `count`");
            return Err(PyValueError::new_err(message));
        }
        (shape, _) => {
            let message = format!(
                "{name}: a buffer has one or two dimensions, not {}",
                shape.len()
            );
            return Err(PyValueError::new_err(message));
        }
    };
    let kind = match object.hasattr("__array_interface__")? {
        true => Kind::Array,
        false => Kind::Octets,
    };
    Ok(Some(Rows {
        octets: Secret::new(buffer.to_vec(object.py())?),
        count,
        width,
        kind,
    }))
}

/// Converts results for Python. Those in a buffer are `width` octets wide.
pub(crate) fn write<'py>(
    py: Python<'py>,
    results: &[Secret<BoxedUint>],
    kind: Kind,
    width: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if kind == Kind::Integers {
        let from_bytes = py.get_type::<PyInt>().getattr("from_bytes")?;
        let integers = PyList::empty(py);
        for (index, result) in results.iter().enumerate() {
            machine::check_signals_at(py, index)?;
            let octets = Secret::new(result.to_be_bytes().into_vec());
            integers.append(from_bytes.call1((PyBytes::new(py, &octets), intern!(py, "big")))?)?;
        }
        return Ok(integers.into_any());
    }
    let fill = |rows: &mut [u8]| {
        // With a width of 0 there is nothing to write.
        for (row, result) in rows.chunks_exact_mut(width.max(1)).zip(results) {
            let octets = Secret::new(result.to_be_bytes().into_vec());
            // A result is below its modulus, which has this width; its limbs may have more octets.
            let len = octets.len().min(width);
            row[width - len..].copy_from_slice(&octets[octets.len() - len..]);
        }
        Ok(())
    };
    let len = results.len() * width;
    if kind == Kind::Octets {
        return Ok(PyBytes::new_with(py, len, fill)?.into_any());
    }
    let octets = PyByteArray::new_with(py, len, fill)?;
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("frombuffer", (octets, "uint8"))?;
    array.call_method1("reshape", ((results.len(), width),))
}
