//! Numbers from Python: integers, and fixed-width octets in buffers.

use batch_modexp::secret::Secret;
use crypto_bigint::{BoxedUint, Limb};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::buffers::{self, Kind};
use crate::machine;

/// A number, and a public bound for its length. The value is secret; the sign is public.
pub(crate) struct Number {
    pub(crate) value: Secret<BoxedUint>,
    pub(crate) is_negative: bool,
    pub(crate) bits: u32,
}

impl Number {
    fn from_octets(octets: &[u8], is_negative: bool, bits: u32) -> Self {
        let limbs = octets.len().div_ceil(Limb::BYTES).max(1);
        let value = BoxedUint::from_be_slice(octets, limbs as u32 * Limb::BITS);
        Self {
            value: Secret::new(value.unwrap_or_else(|_| unreachable!("as wide as its octets"))),
            is_negative,
            bits,
        }
    }

    /// The width in limbs.
    pub(crate) fn limbs(&self) -> usize {
        self.value.as_limbs().len()
    }
}

/// One operand for all instances, or one for each.
pub(crate) enum Operand {
    /// With the width in octets of results in a buffer.
    One(Number, usize),
    Each(Numbers),
}

/// The operands of a list, and their form.
pub(crate) struct Numbers {
    pub(crate) numbers: Vec<Number>,
    pub(crate) kind: Kind,
    /// The width in octets: that of a buffer's rows, or of the longest number.
    pub(crate) width: usize,
}

impl Operand {
    /// Reads a list of integers or a buffer. `count` cuts a buffer of one dimension; of others it
    /// is the length.
    pub(crate) fn each(
        name: &str,
        object: &Bound<'_, PyAny>,
        count: Option<usize>,
    ) -> PyResult<Self> {
        let operand = Self::list(name, object, count)?;
        match (operand.len(), count) {
            (Some(len), Some(count)) if len != count => {
                let message = format!("{name} has {len} items and count is {count}");
                Err(PyValueError::new_err(message))
            }
            _ => Ok(operand),
        }
    }

    fn list(name: &str, object: &Bound<'_, PyAny>, count: Option<usize>) -> PyResult<Self> {
        if let Some(rows) = buffers::read(name, object, count)? {
            let row = |row: &[u8]| Number::from_octets(row, false, bits_of(row.len()));
            // `chunks` does not accept a width of 0.
            let numbers = match rows.width {
                0 => (0..rows.count).map(|_| row(&[])).collect(),
                width => rows.octets.chunks_exact(width).map(row).collect(),
            };
            return Ok(Self::Each(Numbers {
                numbers,
                kind: rows.kind,
                width: rows.width,
            }));
        }
        let mut numbers = Vec::with_capacity(object.len().unwrap_or(0));
        for item in object.try_iter()? {
            machine::check_signals_at(object.py(), numbers.len())?;
            let number = integer(&item?).map_err(|error| {
                let error = error.value(object.py());
                PyTypeError::new_err(format!("{name}[{}]: {error}", numbers.len()))
            })?;
            numbers.push(number);
        }
        let widest = numbers.iter().map(|number| number.bits).max();
        Ok(Self::Each(Numbers {
            numbers,
            kind: Kind::Integers,
            width: widest.unwrap_or(0).div_ceil(8) as usize,
        }))
    }

    /// Reads one integer, or its octets.
    pub(crate) fn one(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(rows) = buffers::read(name, object, Some(1))? {
            if rows.count != 1 {
                let message = format!("{name}: {} numbers, where one is expected", rows.count);
                return Err(PyValueError::new_err(message));
            }
            let number = Number::from_octets(&rows.octets, false, bits_of(rows.width));
            return Ok(Self::One(number, rows.width));
        }
        let number = integer(object).map_err(|error| {
            let error = error.value(object.py());
            PyTypeError::new_err(format!("{name}: {error}"))
        })?;
        let width = number.bits.div_ceil(8) as usize;
        Ok(Self::One(number, width))
    }

    /// The operand of instance `index`.
    pub(crate) fn get(&self, index: usize) -> &Number {
        match self {
            Self::One(number, _) => number,
            Self::Each(numbers) => &numbers.numbers[index],
        }
    }

    /// All numbers of the operand.
    pub(crate) fn numbers(&self) -> &[Number] {
        match self {
            Self::One(number, _) => std::slice::from_ref(number),
            Self::Each(numbers) => &numbers.numbers,
        }
    }

    /// The width of its numbers in octets.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::One(_, width) => *width,
            Self::Each(numbers) => numbers.width,
        }
    }

    /// The number of items, if there is one for each instance.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::One(..) => None,
            Self::Each(numbers) => Some(numbers.numbers.len()),
        }
    }
}

fn bits_of(octets: usize) -> u32 {
    u32::try_from(8 * octets).unwrap_or(u32::MAX)
}

/// Reads an integer, or an object that `operator.index` converts to one.
fn integer(object: &Bound<'_, PyAny>) -> PyResult<Number> {
    let py = object.py();
    let integer = match object.cast::<PyInt>() {
        Ok(integer) => integer.clone(),
        Err(_) => {
            let index = py.import("operator")?.getattr("index")?;
            index.call1((object,))?.cast_into::<PyInt>()?
        }
    };
    let is_negative = integer.lt(0)?;
    let magnitude = match is_negative {
        true => integer.neg()?,
        false => integer.into_any(),
    };
    let bit_length = magnitude.call_method0(intern!(py, "bit_length"))?;
    let bits: u32 = bit_length.extract()?;
    let arguments = (bits.div_ceil(8), intern!(py, "big"));
    let octets = magnitude.call_method1(intern!(py, "to_bytes"), arguments)?;
    let octets = octets.cast_into::<PyBytes>()?;
    Ok(Number::from_octets(octets.as_bytes(), is_negative, bits))
}
