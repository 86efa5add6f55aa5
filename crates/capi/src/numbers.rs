//! Batches of modular exponentiations and products.

use batch_modexp::{BatchModExp, BatchModMul, ModExp, ModMul};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, CtEq, Odd};
use zeroize::Zeroize;

use crate::boundary::{
    ARGUMENT, Failure, OK, Place, argument, elements, elements_mut, failed, guard, object,
};
use crate::engine::Engine;

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn bme_pow(
    engine: *const Engine,
    count: usize,
    width: usize,
    exponent_width: usize,
    bases: *const u8,
    exponents: *const u8,
    moduli: *const u8,
    powers: *mut u8,
    statuses: *mut i32,
) -> i32 {
    guard(|| {
        if count == 0 {
            return Ok(());
        }
        let exponent_bits = bits(exponent_width)?;
        let (len, exponents_len) = (len(count, width)?, len(count, exponent_width)?);
        // SAFETY: the caller vouches for the engine and for all ranges.
        let (engine, bases, exponents, mut batch) = unsafe {
            (
                object(engine)?,
                elements(bases, len)?,
                elements(exponents, exponents_len)?,
                Batch::new(count, width, moduli, powers, statuses)?,
            )
        };
        let (bases, exponents) = (
            batch.operands(bases, width)?,
            batch.operands(exponents, exponent_width)?,
        );
        let instances = bases.0.iter().zip(&exponents.0).zip(&batch.params);
        let instances: Vec<_> = instances
            .map(|((base, exponent), params)| ModExp::new(base, exponent, params.as_ref()))
            .collect();
        let mut results = batch.results();
        engine
            .0
            .batch_mod_exp(&instances, exponent_bits, &mut results.0)
            .map_err(failed)?;
        batch.write(&results);
        Ok(())
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn bme_mul(
    engine: *const Engine,
    count: usize,
    width: usize,
    a: *const u8,
    b: *const u8,
    moduli: *const u8,
    products: *mut u8,
    statuses: *mut i32,
) -> i32 {
    guard(|| {
        if count == 0 {
            return Ok(());
        }
        let len = len(count, width)?;
        // SAFETY: the caller vouches for the engine and for all ranges.
        let (engine, a, b, mut batch) = unsafe {
            (
                object(engine)?,
                elements(a, len)?,
                elements(b, len)?,
                Batch::new(count, width, moduli, products, statuses)?,
            )
        };
        let (a, b) = (batch.operands(a, width)?, batch.operands(b, width)?);
        let instances = a.0.iter().zip(&b.0).zip(&batch.params);
        let instances: Vec<_> = instances
            .map(|((a, b), params)| ModMul::new(a, b, params.as_ref()))
            .collect();
        let mut results = batch.results();
        let done = engine.0.batch_mod_mul(&instances, &mut results.0);
        done.map_err(failed)?;
        batch.write(&results);
        Ok(())
    })
}

/// Numbers that are wiped on drop.
struct Wiped(Vec<BoxedUint>);

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The instances with odd moduli, and the places of their results.
struct Batch<'a> {
    width: usize,
    bits: u32,
    /// One for each of `positions`; equal neighbours share theirs.
    params: Vec<BoxedMontyParams>,
    positions: Vec<usize>,
    results: Place,
    statuses: &'a mut [i32],
}

impl Batch<'_> {
    /// # Safety
    ///
    /// There are `count` moduli and results of `width` octets, and `count` statuses without other
    /// users.
    unsafe fn new(
        count: usize,
        width: usize,
        moduli: *const u8,
        results: *mut u8,
        statuses: *mut i32,
    ) -> Result<Self, Failure> {
        let (bits, len) = (bits(width)?, len(count, width)?);
        // SAFETY: the caller vouches for all ranges.
        let (moduli, results, statuses) = unsafe {
            (
                elements(moduli, len)?,
                Place::new(results, len)?,
                elements_mut(statuses, count)?,
            )
        };
        let (mut params, mut positions) = (Vec::<BoxedMontyParams>::new(), Vec::new());
        let mut last: Option<&[u8]> = None;
        for (position, modulus) in moduli.chunks_exact(width).enumerate() {
            // In constant time, so that a common beginning of two moduli is not revealed.
            let is_last = last.is_some_and(|last| last.ct_eq(modulus).to_bool());
            let shared = params.last().filter(|_| is_last).cloned();
            let Some(of_modulus) = (match shared {
                Some(shared) => Some(shared),
                None => Odd::new(number(modulus, bits)?)
                    .into_option()
                    .map(BoxedMontyParams::new),
            }) else {
                continue;
            };
            last = Some(modulus);
            params.push(of_modulus);
            positions.push(position);
        }
        statuses.fill(ARGUMENT);
        Ok(Self {
            width,
            bits,
            params,
            positions,
            results,
            statuses,
        })
    }

    /// The numbers of these instances, taken from those of all instances.
    fn operands(&self, octets: &[u8], width: usize) -> Result<Wiped, Failure> {
        let bits = bits(width)?;
        let mut numbers = Wiped(Vec::with_capacity(self.positions.len()));
        for position in &self.positions {
            let octets = &octets[position * width..][..width];
            numbers.0.push(number(octets, bits)?);
        }
        Ok(numbers)
    }

    fn results(&self) -> Wiped {
        let zero = BoxedUint::zero_with_precision(self.bits);
        Wiped(vec![zero; self.positions.len()])
    }

    fn write(&mut self, results: &Wiped) {
        for (result, position) in results.0.iter().zip(&self.positions) {
            let mut octets = result.to_be_bytes();
            let above = octets.len() - self.width;
            self.results.write(position * self.width, &octets[above..]);
            octets.zeroize();
            self.statuses[*position] = OK;
        }
    }
}

/// The number of octets of `count` numbers.
fn len(count: usize, width: usize) -> Result<usize, Failure> {
    let len = count.checked_mul(width);
    len.ok_or_else(|| argument("a length is too large"))
}

/// The width in bits of a number of `octets`, rounded up to whole limbs of any size.
fn bits(octets: usize) -> Result<u32, Failure> {
    /// The widest numbers of any backend, in octets.
    const MOST: usize = 2048;
    match octets {
        1..=MOST => Ok(octets.next_multiple_of(8) as u32 * 8),
        _ => Err(argument("a width is not in 1 to 2048 octets")),
    }
}

fn number(octets: &[u8], bits: u32) -> Result<BoxedUint, Failure> {
    BoxedUint::from_be_slice(octets, bits).map_err(|_| argument("a number is too wide"))
}
