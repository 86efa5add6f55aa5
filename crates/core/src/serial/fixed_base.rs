//! Powers of a fixed base, one after the other.

use alloc::vec;

use crypto_bigint::Limb;

use crate::fixed_base::{Table, select};
use crate::monty::parts;
use crate::powers::FixedPowers;
use crate::secret::Secret;

/// How many powers are computed together, row by row. Each row is read from memory once for all of
/// them.
const AT_A_TIME: usize = 32;

/// See [`PowerEngine::fill_rows`](crate::powers::PowerEngine::fill_rows).
pub(super) fn fill(table: &mut Table, base: &[Limb], first: &[Limb]) {
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

pub(super) fn fixed_powers(powers: FixedPowers<'_, '_>) {
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
