//! Products, powers by tables, products of powers, and powers with public exponents, one after the
//! other.

use alloc::vec;
use core::mem;

use crypto_bigint::{Limb, Unsigned};

use crate::batch::{Form, check_products};
use crate::engine::size_of_all;
use crate::fixed_base::{Table, TableForm, select};
use crate::limbs::bits_at;
use crate::monty::{ModulusRef, look_up, parts};
use crate::powers::{
    FixedPowers, HasPowerEngine, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use crate::secret::{Secret, scrubbed};
use crate::width::{MAX_BITS, clear, place};
use crate::{BatchModMul, Error, ModMul, Serial};

impl<U: Unsigned> BatchModMul<U> for Serial {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(Form::Montgomery, batch, out)
    }
}

fn multiply<U: Unsigned>(form: Form, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let sizes = batch.iter().map(size_of);
    let mut factor = Secret::new(vec![Limb::ZERO; sizes.max().unwrap_or(0)]);
    scrubbed(|| {
        for (instance, out) in batch.iter().zip(out) {
            let modulus = ModulusRef::of(instance.params);
            let factor = &mut factor[..size_of(instance)];
            let (a, b) = (instance.a.as_limbs(), instance.b.as_limbs());
            match form {
                Form::Ordinary => modulus.to_montgomery(b, factor),
                Form::Montgomery => {
                    factor[..b.len()].copy_from_slice(b);
                    factor[b.len()..].fill(Limb::ZERO);
                }
            }
            let out = place(out, instance.params.modulus().as_ref());
            modulus.mul(a, factor, out);
        }
    });
    Ok(())
}

/// The width of an instance in limbs.
fn size_of<U: Unsigned>(instance: &ModMul<'_, U>) -> usize {
    instance.params.modulus().as_ref().as_limbs().len()
}

impl HasPowerEngine for Serial {
    fn power_engine(&self) -> &dyn PowerEngine {
        self
    }
}

impl PowerEngine for Serial {
    fn table_form(&self, bits: u32) -> TableForm {
        TableForm {
            radix_bits: Limb::BITS,
            limbs: bits.div_ceil(Limb::BITS) as usize,
            largest_window: 6,
        }
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        scrubbed(|| fill(table, base, first));
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        scrubbed(|| fixed_powers(powers));
    }

    /// Measured at 256 to 2048 bits.
    fn fewest_for_buckets(&self, _: u32) -> usize {
        40
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        scrubbed(|| multi_powers(powers));
    }

    fn powers_vartime(&self, powers: PublicPowers<'_, '_>) {
        let len = size_of_all(powers.moduli) * (2 + powers.exponent.chain().odd_powers);
        let mut scratch = Secret::new(vec![Limb::ZERO; len]);
        let instances = powers.moduli.iter().zip(powers.bases);
        scrubbed(|| {
            for ((modulus, base), out) in instances.zip(powers.out) {
                modulus.public_pow(base, powers.exponent, &mut scratch, out);
            }
        });
    }

    fn to_montgomery(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        let size = modulus.limbs.len();
        let mut form = Secret::new(vec![Limb::ZERO; size]);
        scrubbed(|| {
            for (number, out) in numbers.iter().zip(out.chunks_exact_mut(size)) {
                modulus.to_montgomery(number, &mut form);
                to_words(&form, out);
            }
        });
    }

    fn indexed_products(&self, mut products: IndexedProducts<'_>) {
        let size = products.modulus.limbs.len();
        let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
        let [a, b, product] = parts(&mut numbers);
        let out = mem::take(&mut products.out);
        scrubbed(|| {
            for ([i, j], out) in products.pairs.iter().zip(out.chunks_exact_mut(size)) {
                to_limbs(products.number(*i, size), a);
                to_limbs(products.number(*j, size), b);
                products.modulus.mul(a, b, product);
                to_words(product, out);
            }
        });
    }

    fn retrieve(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
        let size = modulus.limbs.len();
        let mut form = Secret::new(vec![Limb::ZERO; size]);
        scrubbed(|| {
            let places = out.chunks_exact_mut(size);
            for (number, out) in numbers.chunks_exact(size).zip(places) {
                to_limbs(number, &mut form);
                modulus.mul(&[Limb::ONE], &form, out);
            }
        });
    }
}

#[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
fn to_words(limbs: &[Limb], words: &mut [u64]) {
    let pairs = words.iter_mut().zip(limbs);
    pairs.for_each(|(word, limb)| *word = limb.0 as u64);
}

fn to_limbs(words: &[u64], limbs: &mut [Limb]) {
    let pairs = limbs.iter_mut().zip(words);
    pairs.for_each(|(limb, word)| *limb = Limb(*word as _));
}

/// How many powers are computed together, row by row. Each row is read from memory once for all of
/// them.
const AT_A_TIME: usize = 32;

/// See [`PowerEngine::fill_rows`](crate::powers::PowerEngine::fill_rows).
fn fill(table: &mut Table, base: &[Limb], first: &[Limb]) {
    let (mut rows, modulus) = table.rows_mut();
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * modulus.limbs.len()]);
    let [mut power, mut entry, mut spare] = parts(&mut numbers);
    modulus.to_montgomery(base, power);
    for row in 0..rows.count() {
        match row {
            // Leaves Montgomery form; only reduces below the modulus.
            0 => {
                modulus.to_montgomery(first, spare);
                modulus.mul(&[Limb::ONE], spare, entry);
            }
            _ => modulus.to_montgomery(&[Limb::ONE], entry),
        }
        for digit in 0..rows.entries() {
            for (limb, value) in entry.iter().enumerate() {
                #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
                rows.set(row, digit, limb, value.0 as u64);
            }
            modulus.multiply(&mut entry, power, &mut spare);
        }
        modulus.square_times(rows.window_bits(), &mut power, &mut spare);
    }
}

fn fixed_powers(powers: FixedPowers<'_, '_>) {
    let (table, bits) = (powers.table, powers.exponent_bits);
    let (rows, count) = (table.rows(), table.digit_count(bits));
    let (modulus, size) = (table.modulus(), table.form().limbs);
    let mut digits = Secret::new(vec![0; AT_A_TIME * count]);
    let mut results = Secret::new(vec![Limb::ZERO; AT_A_TIME * size]);
    let mut numbers = Secret::new(vec![Limb::ZERO; 2 * size]);
    let [entry, spare] = parts(&mut numbers);
    let chunks = powers.exponents.chunks(AT_A_TIME);
    for (exponents, out) in chunks.zip(powers.out.chunks_mut(AT_A_TIME)) {
        for (exponent, digits) in exponents.iter().zip(digits.chunks_exact_mut(count)) {
            table.recode(exponent, bits, digits);
        }
        for row in (0..count).rev() {
            let digits = digits.chunks_exact(count).map(|digits| digits[row]);
            let results = results.chunks_exact_mut(size).take(exponents.len());
            for (power, digit) in results.zip(digits) {
                let mut put = |limb: usize, value| entry[limb] = Limb(value as _);
                if rows.are_public() {
                    // Except in row 0, the entry of a digit 0 is 1.
                    if digit == 0 && row != 0 && row + 1 != count {
                        continue;
                    }
                    let limbs = rows.entry(row, digit).iter();
                    limbs
                        .enumerate()
                        .for_each(|(limb, value)| put(limb, *value));
                } else {
                    select(rows.row(row), rows.entries(), digit, put);
                }
                if row + 1 == count {
                    power.copy_from_slice(entry);
                    continue;
                }
                modulus.mul(power, entry, spare);
                power.copy_from_slice(spare);
            }
        }
        for (power, out) in results.chunks_exact(size).zip(out) {
            out.copy_from_slice(power);
        }
    }
}

/// The window for products of powers, in bits.
const WINDOW_BITS: u32 = 4;

/// Entries of a table of powers.
const ENTRIES: usize = 1 << WINDOW_BITS;

/// All terms share the squarings (E. G. Straus, "Addition chains of vectors", American Mathematical
/// Monthly 71, 1964; Handbook of Applied Cryptography, algorithm 14.88). Each term has its own
/// table.
fn multi_powers(powers: MultiPowers<'_, '_>) {
    let MultiPowers {
        moduli,
        terms,
        exponent_bits,
        out,
    } = powers;
    let size = size_of_all(moduli);
    let count = exponent_bits.len();
    let mut tables = Secret::new(vec![Limb::ZERO; count * ENTRIES * size]);
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
    let [mut power, mut spare, entry] = parts(&mut numbers);
    let digits = exponent_bits.iter().map(|bits| bits.div_ceil(WINDOW_BITS));
    let digits = digits.max().unwrap_or(0);
    for (i, (modulus, out)) in moduli.iter().zip(out).enumerate() {
        let terms = &terms[i * count..][..count];
        for ([base, _], table) in terms.iter().zip(tables.chunks_exact_mut(ENTRIES * size)) {
            modulus.fill_with_powers(base, table);
        }
        modulus.to_montgomery(&[Limb::ONE], power);
        for digit in (0..digits).rev() {
            modulus.square_times(WINDOW_BITS, &mut power, &mut spare);
            let tables = tables.chunks_exact(ENTRIES * size);
            for (([_, exponent], table), &bits) in terms.iter().zip(tables).zip(exponent_bits) {
                let low = digit * WINDOW_BITS;
                // The length is public.
                if low < bits {
                    let value = bits_at(exponent, low, WINDOW_BITS.min(bits - low));
                    look_up(table, value, entry);
                    modulus.multiply(&mut power, entry, &mut spare);
                }
            }
        }
        modulus.mul(&[Limb::ONE], power, out);
    }
}
