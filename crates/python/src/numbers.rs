//! Powers and products of lists of numbers.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ScopedJoinHandle};

use batch_modexp::backend::Auto;
use batch_modexp::secret::Secret;
use batch_modexp::{BatchFixedBaseExp, BatchModExpEach, BatchModMul, FixedBase, ModExp, ModMul};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, NonZero, Odd};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroize::Zeroize;

use crate::buffers::{self, Kind};
use crate::operands::{Number, Operand};
use crate::{error, machine};

/// The longest modulus in limbs: 16,384 bits.
const MAX_LIMBS: usize = 16_384 / Limb::BITS as usize;

/// Computes pow(base, exponent, modulus) for each position of three lists.
#[pyfunction]
#[pyo3(signature = (bases, exponents, moduli, *, count=None))]
pub(crate) fn powmod_list<'py>(
    bases: &Bound<'py, PyAny>,
    exponents: &Bound<'py, PyAny>,
    moduli: &Bound<'py, PyAny>,
    count: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = bases.py();
    let bases = Operand::each("bases", bases, count)?;
    let exponents = Operand::each("exponents", exponents, count)?;
    powmod(
        py,
        bases,
        exponents,
        Operand::each("moduli", moduli, count)?,
    )
}

/// Computes pow(base, exponent, modulus) for each base of a list.
#[pyfunction]
#[pyo3(signature = (bases, exponent, modulus, *, count=None))]
pub(crate) fn powmod_base_list<'py>(
    bases: &Bound<'py, PyAny>,
    exponent: &Bound<'py, PyAny>,
    modulus: &Bound<'py, PyAny>,
    count: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = bases.py();
    let bases = Operand::each("bases", bases, count)?;
    let exponent = Operand::one("exponent", exponent)?;
    powmod(py, bases, exponent, Operand::one("modulus", modulus)?)
}

/// Computes pow(base, exponent, modulus) for each exponent of a list.
#[pyfunction]
#[pyo3(signature = (base, exponents, modulus, *, count=None))]
pub(crate) fn powmod_exp_list<'py>(
    base: &Bound<'py, PyAny>,
    exponents: &Bound<'py, PyAny>,
    modulus: &Bound<'py, PyAny>,
    count: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = base.py();
    let base = Operand::one("base", base)?;
    let exponents = Operand::each("exponents", exponents, count)?;
    powmod(py, base, exponents, Operand::one("modulus", modulus)?)
}

/// Computes a * b % modulus for each position of three lists. `moduli` may be one integer for all.
#[pyfunction]
#[pyo3(signature = (a, b, moduli, *, count=None))]
pub(crate) fn mulmod_list<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    moduli: &Bound<'py, PyAny>,
    count: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let a = Operand::each("a", a, count)?;
    let b = Operand::each("b", b, count)?;
    let moduli = match moduli.hasattr("__index__")? && !moduli.hasattr("__len__")? {
        true => Operand::one("moduli", moduli)?,
        false => Operand::each("moduli", moduli, count)?,
    };
    let len = common_len(&[("a", &a), ("b", &b), ("moduli", &moduli)])?;
    check_moduli(py, &moduli)?;
    let work = |i| moduli.get(i).limbs().pow(2) as u64;
    let compute = |backend: &Auto, range: Range<usize>| {
        let fields = Fields::new(backend.threads(), &moduli, &range);
        let reduced = |operand: &Operand| -> Vec<_> {
            let factor = |i| reduced(operand.get(i), fields.modulus(i));
            range.clone().map(factor).collect()
        };
        let (a_reduced, b_reduced) = (reduced(&a), reduced(&b));
        let product = |i: usize| {
            let at = i - range.start;
            let a = a_reduced[at].as_deref().unwrap_or(&a.get(i).value);
            let b = b_reduced[at].as_deref().unwrap_or(&b.get(i).value);
            ModMul::new(a, b, fields.params(i).as_ref())
        };
        let batch: Vec<_> = range.clone().map(product).collect();
        let mut products = Results::zeros(batch.len());
        backend.batch_mod_mul(&batch, &mut products.0)?;
        Ok((products.into_secrets(), Vec::new()))
    };
    let products = collect(py, len, work, compute)?;
    buffers::write(py, &products, kind_of(&[&a, &b]), moduli.width())
}

/// Results of a part of a list, and the positions of bases without an inverse.
type Computed = Result<(Vec<Secret<BoxedUint>>, Vec<usize>), batch_modexp::Error>;

fn powmod(
    py: Python<'_>,
    bases: Operand,
    exponents: Operand,
    moduli: Operand,
) -> PyResult<Bound<'_, PyAny>> {
    let names = [
        ("bases", &bases),
        ("exponents", &exponents),
        ("moduli", &moduli),
    ];
    let len = common_len(&names)?;
    check_moduli(py, &moduli)?;
    let lengths = Lengths::new(&exponents);
    let limbs = moduli
        .numbers()
        .iter()
        .map(Number::limbs)
        .max()
        .unwrap_or(1);
    let work = |i| {
        let exponent_bits = u64::from(lengths.of(exponents.get(i)));
        moduli.get(i).limbs().pow(2) as u64 * exponent_bits / u64::from(Limb::BITS)
    };
    let is_fixed = matches!((&bases, &moduli), (Operand::One(..), Operand::One(..)));
    let width = limbs as u32 * Limb::BITS;
    let table = OnceLock::new();
    let compute = |backend: &Auto, range: Range<usize>| {
        let fields = Fields::new(backend.threads(), &moduli, &range);
        let base = |i| reduced(bases.get(i), fields.modulus(i));
        let reduced: Vec<_> = range.clone().map(base).collect();
        let power = |i: usize| {
            let base = reduced[i - range.start].as_deref();
            let base = base.unwrap_or(&bases.get(i).value);
            ModExp::new(base, &exponents.get(i).value, fields.params(i).as_ref())
        };
        let batch: Vec<_> = range.clone().map(power).collect();
        let bits: Vec<_> = range
            .clone()
            .map(|i| lengths.of(exponents.get(i)))
            .collect();
        // Only the processor computes by tables. GPUs are faster without.
        let is_for_gpus = || {
            let smallest = backend.break_even(width, lengths.longest());
            smallest.is_some_and(|count| len >= count)
        };
        let table = match is_fixed && len >= TABLE_FROM * backend.threads() && !is_for_gpus() {
            true => table.get_or_init(|| {
                let (ModExp { base, params, .. }, bits) = (&batch[0], lengths.longest());
                // With a long exponent and a wide modulus even a small table may be too large.
                backend.fixed_base(*base, params, bits, TABLE_BYTES).ok()
            }),
            false => &None,
        };
        let mut powers = Results::zeros(batch.len());
        match table {
            Some(table) => by_table(backend, table, &batch, &bits, &mut powers.0)?,
            None => backend.batch_mod_exp_each(&batch, &bits, &mut powers.0)?,
        }
        let mut powers = powers.into_secrets();
        let mut without_inverse = Vec::new();
        for i in range.clone().filter(|&i| exponents.get(i).is_negative) {
            match inverse(&powers[i - range.start], fields.modulus(i)) {
                Some(inverse) => powers[i - range.start] = inverse,
                None => without_inverse.push(i),
            }
        }
        Ok((powers, without_inverse))
    };
    let powers = collect(py, len, work, compute)?;
    let kind = match bases.len() {
        Some(_) => kind_of(&[&bases]),
        None => kind_of(&[&exponents]),
    };
    buffers::write(py, &powers, kind, moduli.width())
}

/// The number of powers of one base, for each thread, from which a table takes less time. Making it
/// takes one thread as long as 10 to 50 powers. Powers by it take a quarter to a fifth of the time.
const TABLE_FROM: usize = 64;

/// The maximum size of a table in octets.
const TABLE_BYTES: usize = 8 << 20;

/// Computes powers by a table, for exponents of one length at a time.
fn by_table(
    backend: &Auto,
    table: &FixedBase<BoxedUint>,
    batch: &[ModExp<'_, BoxedUint>],
    bits: &[u32],
    out: &mut [BoxedUint],
) -> Result<(), batch_modexp::Error> {
    let lengths: BTreeSet<u32> = bits.iter().copied().collect();
    for length in lengths {
        let positions: Vec<_> = (0..batch.len()).filter(|&i| bits[i] == length).collect();
        let exponents: Vec<_> = positions.iter().map(|&i| batch[i].exponent).collect();
        let mut powers = Results::zeros(positions.len());
        backend.batch_fixed_base_exp(table, &exponents, length, &mut powers.0)?;
        for (&i, power) in positions.iter().zip(&mut powers.0) {
            mem::swap(&mut out[i], power);
        }
    }
    Ok(())
}

/// Collects the results of all parts of a list.
fn collect(
    py: Python<'_>,
    len: usize,
    work: impl Fn(usize) -> u64,
    compute: impl Fn(&Auto, Range<usize>) -> Computed + Sync,
) -> PyResult<Vec<Secret<BoxedUint>>> {
    let backend: Arc<Auto> = machine::shared(py)?;
    let mut all = Vec::with_capacity(len);
    let compute = |range| compute(&backend, range);
    machine::in_pieces(py, len, work, compute, |start, computed| {
        let (results, without_inverse) =
            computed.map_err(|error| error::of_arithmetic(py, error, start))?;
        if let Some(&index) = without_inverse.first() {
            let message = "the base is not invertible for the given modulus";
            return Err(error::at(py, index, message));
        }
        all.extend(results);
        Ok(())
    })?;
    Ok(all)
}

/// The number of instances.
fn common_len(operands: &[(&str, &Operand)]) -> PyResult<usize> {
    let mut lengths = operands
        .iter()
        .filter_map(|(name, operand)| Some((name, operand.len()?)));
    let Some((first, len)) = lengths.next() else {
        return Ok(0);
    };
    match lengths.find(|(_, other)| *other != len) {
        None => Ok(len),
        Some((name, other)) => {
            let message = format!("{first} has {len} items and {name} has {other}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Checks that moduli are odd and positive. An error reveals which one is not.
fn check_moduli(py: Python<'_>, moduli: &Operand) -> PyResult<()> {
    for (index, modulus) in moduli.numbers().iter().enumerate() {
        let problem = if bool::from(modulus.value.is_zero()) {
            "the modulus is 0"
        } else if modulus.is_negative {
            "the modulus is negative; take its absolute value"
        } else if modulus.value.as_limbs()[0].0 & 1 == 0 {
            "the modulus is even; take pow(), which is not constant-time"
        } else if modulus.limbs() > MAX_LIMBS {
            "the modulus has more than 16,384 bits; take pow(), which is not constant-time"
        } else {
            continue;
        };
        return match moduli {
            Operand::Each(_) => Err(error::at(py, index, problem)),
            Operand::One(..) => Err(error::plain(problem)),
        };
    }
    Ok(())
}

fn kind_of(operands: &[&Operand]) -> Kind {
    let kinds = operands.iter().find_map(|operand| match operand {
        Operand::Each(numbers) => Some(numbers.kind),
        Operand::One(..) => None,
    });
    kinds.unwrap_or(Kind::Integers)
}

/// Public bounds for the lengths of exponents. Exponents of the same width in limbs share the bound
/// of the longest of them.
struct Lengths(HashMap<usize, u32>);

impl Lengths {
    fn new(exponents: &Operand) -> Self {
        let mut longest = HashMap::new();
        for number in exponents.numbers() {
            let bits: &mut u32 = longest.entry(number.limbs()).or_default();
            *bits = number.bits.max(*bits);
        }
        Self(longest)
    }

    fn of(&self, exponent: &Number) -> u32 {
        self.0[&exponent.limbs()]
    }

    fn longest(&self) -> u32 {
        self.0.values().copied().max().unwrap_or(0)
    }
}

/// The Montgomery constants of the moduli of a range. Equal neighbours share theirs, which reveals
/// that they are equal.
struct Fields {
    start: usize,
    moduli: Vec<Odd<BoxedUint>>,
    params: Vec<BoxedMontyParams>,
    /// The index into the constants, for each position.
    which: Vec<usize>,
}

impl Fields {
    fn new(threads: usize, moduli: &Operand, range: &Range<usize>) -> Self {
        let mut distinct: Vec<&BoxedUint> = Vec::new();
        let mut which = Vec::with_capacity(range.len());
        for i in range.clone() {
            let modulus = &*moduli.get(i).value;
            let is_new = |last: &&BoxedUint| !std::ptr::eq(*last, modulus) && *last != modulus;
            if distinct.last().is_none_or(is_new) {
                distinct.push(modulus);
            }
            which.push(distinct.len() - 1);
        }
        let odd = |modulus: &&BoxedUint| Odd::new((*modulus).clone()).expect("checked to be odd");
        let moduli: Vec<_> = distinct.iter().map(odd).collect();
        let prepare = |moduli: &[Odd<BoxedUint>]| -> Vec<_> {
            moduli.iter().cloned().map(BoxedMontyParams::new).collect()
        };
        // Starting a thread takes some microseconds.
        let share = moduli.len().div_ceil(threads).max(64);
        let params = match moduli.len() <= share {
            true => prepare(&moduli),
            false => thread::scope(|scope| {
                let shares = moduli.chunks(share);
                let start = |share| {
                    let thread = thread::Builder::new().spawn_scoped(scope, move || prepare(share));
                    // The operating system may refuse the thread.
                    thread.map_err(|_| share)
                };
                let threads: Vec<_> = shares.map(start).collect();
                let finish = |thread: Result<ScopedJoinHandle<'_, _>, _>| match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(share) => prepare(share),
                };
                threads.into_iter().flat_map(finish).collect()
            }),
        };
        Self {
            start: range.start,
            moduli,
            params,
            which,
        }
    }

    fn modulus(&self, index: usize) -> &Odd<BoxedUint> {
        &self.moduli[self.which[index - self.start]]
    }

    fn params(&self, index: usize) -> &BoxedMontyParams {
        &self.params[self.which[index - self.start]]
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        for modulus in self.moduli.drain(..) {
            modulus.get().zeroize();
        }
    }
}

/// The number reduced modulo `modulus`; `None` if it can be an operand unchanged, being neither
/// wider nor negative.
fn reduced(number: &Number, modulus: &Odd<BoxedUint>) -> Option<Secret<BoxedUint>> {
    let limbs = modulus.as_ref().as_limbs().len();
    if !number.is_negative && number.limbs() <= limbs {
        return None;
    }
    let divisor: &NonZero<BoxedUint> = modulus.as_nz_ref();
    let mut rest = Secret::new(number.value.rem(divisor));
    if number.is_negative {
        // If the remainder is 0 this gives the modulus itself, which the backend reduces.
        *rest = modulus.as_ref().wrapping_sub(&*rest);
    }
    Some(rest)
}

/// `1 / value mod modulus`.
fn inverse(value: &BoxedUint, modulus: &Odd<BoxedUint>) -> Option<Secret<BoxedUint>> {
    if bool::from(modulus.as_ref().is_one()) {
        return Some(Secret::new(value.clone()));
    }
    let inverse = value.invert_odd_mod(modulus);
    Option::from(inverse).map(Secret::new)
}

/// Results of a backend that are wiped if it fails.
struct Results(Vec<BoxedUint>);

impl Results {
    fn zeros(count: usize) -> Self {
        Self((0..count).map(|_| BoxedUint::zero()).collect())
    }

    fn into_secrets(mut self) -> Vec<Secret<BoxedUint>> {
        self.0.drain(..).map(Secret::new).collect()
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
