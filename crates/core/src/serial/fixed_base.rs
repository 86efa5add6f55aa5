//! Powers of a fixed base, one after the other.

use alloc::vec;
use core::mem;

use crypto_bigint::{Limb, Uint};

use crate::fixed_base::{Table, select};
use crate::powers::FixedPowers;
use crate::secret::Secret;
use crate::width::{WithLimbs, load_limbs};

/// How many powers are computed together, row by row. Each row is read from memory once for all of
/// them.
const AT_A_TIME: usize = 32;

/// See [`PowerEngine::fill_rows`](crate::powers::PowerEngine::fill_rows).
pub(super) struct Fill<'a> {
    pub(super) table: &'a mut Table,
    pub(super) base: &'a [Limb],
    pub(super) first: &'a [Limb],
}

impl WithLimbs for Fill<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let (mut rows, modulus) = self.table.rows_mut();
        let modulus = modulus.monty::<LIMBS>();
        let [mut base, mut entry, mut spare] = [(); 3].map(|()| Secret::new(Uint::ZERO));
        modulus.enter(&Secret::new(load_limbs(self.base)), &mut base);
        for row in 0..rows.count() {
            match row {
                // Leaves Montgomery form; only reduces below the modulus.
                0 => {
                    modulus.enter(&Secret::new(load_limbs(self.first)), &mut spare);
                    modulus.mul(&spare, &Uint::ONE, &mut entry);
                }
                _ => modulus.enter(&Uint::ONE, &mut entry),
            }
            for digit in 0..rows.entries() {
                for (limb, value) in entry.as_limbs().iter().enumerate() {
                    #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
                    rows.set(row, digit, limb, value.0 as u64);
                }
                modulus.mul(&entry, &base, &mut spare);
                mem::swap(&mut *entry, &mut *spare);
            }
            for _ in 0..rows.window_bits() {
                modulus.mul(&base, &base, &mut spare);
                mem::swap(&mut *base, &mut *spare);
            }
        }
    }
}

impl WithLimbs for FixedPowers<'_, '_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let (table, bits) = (self.table, self.exponent_bits);
        let (rows, count) = (table.rows(), table.digit_count(bits));
        let modulus = table.modulus().monty::<LIMBS>();
        let mut digits = Secret::new(vec![0; AT_A_TIME * count]);
        let mut powers = Secret::new(vec![Uint::<LIMBS>::ZERO; AT_A_TIME]);
        let [mut entry, mut spare] = [(); 2].map(|()| Secret::new(Uint::ZERO));
        let chunks = self.exponents.chunks(AT_A_TIME);
        for (exponents, out) in chunks.zip(self.out.chunks_mut(AT_A_TIME)) {
            for (exponent, digits) in exponents.iter().zip(digits.chunks_exact_mut(count)) {
                table.recode(exponent, bits, digits);
            }
            for row in (0..count).rev() {
                let digits = digits.chunks_exact(count).map(|digits| digits[row]);
                for (power, digit) in powers.iter_mut().zip(digits).take(exponents.len()) {
                    let mut put = |limb: usize, value| {
                        entry.as_mut_limbs()[limb] = Limb(value as _);
                    };
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
                        *power = *entry;
                        continue;
                    }
                    modulus.mul(power, &entry, &mut spare);
                    mem::swap(power, &mut *spare);
                }
            }
            for (power, out) in powers.iter().zip(out) {
                out.copy_from_slice(&power.as_limbs()[..out.len()]);
            }
        }
    }
}
