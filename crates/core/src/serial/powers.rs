//! Powers by tables, products of powers, and powers with public exponents, one after the other.

use alloc::vec;
use core::mem;

use crypto_bigint::Limb;

use super::size;
use crate::Serial;
use crate::engine::Moduli;
use crate::fixed_base::{Table, TableForm, select};
use crate::monty::{ModulusRef, parts, select as select_power};
use crate::powers::{
    FixedPowers, HasPowerEngine, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use crate::public_exponent::PublicExponent;
use crate::secret::{Secret, scrubbed};
use crate::window::{Window, bits_at};

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
        let bases = powers.bases.iter().copied();
        let out = powers.out.iter_mut().map(|out| &mut **out);
        public_powers(powers.moduli, powers.exponent, bases, out);
    }

    fn enter(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        let size = modulus.limbs.len();
        let mut form = Secret::new(vec![Limb::ZERO; size]);
        scrubbed(|| {
            for (number, out) in numbers.iter().zip(out.chunks_exact_mut(size)) {
                modulus.enter(number, &mut form);
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

    fn leave(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
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
    modulus.enter(base, power);
    for row in 0..rows.count() {
        match row {
            // Leaves Montgomery form; only reduces below the modulus.
            0 => {
                modulus.enter(first, spare);
                modulus.mul(&[Limb::ONE], spare, entry);
            }
            _ => modulus.enter(&[Limb::ONE], entry),
        }
        for digit in 0..rows.entries() {
            for (limb, value) in entry.iter().enumerate() {
                #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
                rows.set(row, digit, limb, value.0 as u64);
            }
            modulus.multiply(&mut entry, power, &mut spare);
        }
        for _ in 0..rows.window_bits() {
            modulus.square(&mut power, &mut spare);
        }
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

/// Sliding windows (Handbook of Applied Cryptography, algorithm 14.85).
pub(super) fn public_powers<'a>(
    moduli: Moduli<'_>,
    exponent: &PublicExponent,
    bases: impl Iterator<Item = &'a [Limb]>,
    out: impl Iterator<Item = &'a mut [Limb]>,
) {
    let (chain, size) = (exponent.chain(), size(moduli));
    let mut odd_powers = Secret::new(vec![Limb::ZERO; chain.odd_powers * size]);
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
    let [mut power, mut spare, square] = parts(&mut numbers);
    scrubbed(|| {
        for ((modulus, base), out) in moduli.iter().zip(bases).zip(out) {
            modulus.enter(base, power);
            if chain.odd_powers > 1 {
                modulus.mul(power, power, square);
            }
            for (i, odd_power) in odd_powers.chunks_exact_mut(size).enumerate() {
                odd_power.copy_from_slice(power);
                if i + 1 < chain.odd_powers {
                    modulus.mul(odd_power, square, power);
                }
            }
            match chain.first {
                Some(odd) => power.copy_from_slice(&odd_powers[odd * size..][..size]),
                None => modulus.enter(&[Limb::ONE], power),
            }
            for step in &chain.steps {
                for _ in 0..step.squarings {
                    modulus.square(&mut power, &mut spare);
                }
                if let Some(odd) = step.odd {
                    modulus.multiply(&mut power, &odd_powers[odd * size..][..size], &mut spare);
                }
            }
            for _ in 0..chain.last_squarings.unwrap_or(0) {
                modulus.square(&mut power, &mut spare);
            }
            let factor = match chain.last_squarings {
                Some(_) => base,
                None => &[Limb::ONE],
            };
            modulus.mul(factor, power, out);
        }
    });
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
    let window = Window::new(WINDOW_BITS).expect("a window of 1 to 8 bits");
    let size = size(moduli);
    let count = exponent_bits.len();
    let mut tables = Secret::new(vec![Limb::ZERO; count * ENTRIES * size]);
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
    let [mut power, mut spare, entry] = parts(&mut numbers);
    let digits = exponent_bits
        .iter()
        .map(|&bits| window.digit_count(bits) as u32);
    let digits = digits.max().unwrap_or(0);
    for (i, (modulus, out)) in moduli.iter().zip(out).enumerate() {
        let terms = &terms[i * count..][..count];
        for ([base, _], table) in terms.iter().zip(tables.chunks_exact_mut(ENTRIES * size)) {
            modulus.fill_with_powers(base, table);
        }
        modulus.enter(&[Limb::ONE], power);
        for digit in (0..digits).rev() {
            for _ in 0..WINDOW_BITS {
                modulus.square(&mut power, &mut spare);
            }
            let tables = tables.chunks_exact(ENTRIES * size);
            for (([_, exponent], table), &bits) in terms.iter().zip(tables).zip(exponent_bits) {
                let low = digit * WINDOW_BITS;
                // The length is public.
                if low < bits {
                    let value = bits_at(exponent, low, WINDOW_BITS.min(bits - low));
                    select_power(table, value as u8, entry);
                    modulus.multiply(&mut power, entry, &mut spare);
                }
            }
        }
        modulus.mul(&[Limb::ONE], power, out);
    }
}
