//! Powers by tables, products of powers, and powers with public exponents, one after the other.

use alloc::vec;
use core::mem;

use crypto_bigint::{Limb, Uint};

use super::fixed_base::Fill;
use crate::Serial;
use crate::fixed_base::{Table, TableForm};
use crate::monty::select;
use crate::powers::{FixedPowers, HasPowerEngine, MultiPowers, PowerEngine, PublicPowers};
use crate::secret::Secret;
use crate::width::{WithLimbs, load_limbs, with_limbs};
use crate::window::{Window, bits_at};

impl HasPowerEngine for Serial {
    fn power_engine(&self) -> &dyn PowerEngine {
        self
    }
}

impl PowerEngine for Serial {
    fn table_form(&self, bits: u32) -> TableForm {
        struct Count;

        impl WithLimbs for Count {
            type Output = usize;

            fn run<const LIMBS: usize>(self) -> usize {
                LIMBS
            }
        }

        TableForm {
            radix_bits: Limb::BITS,
            limbs: with_limbs(bits.div_ceil(Limb::BITS) as usize, Count),
            largest_window: 6,
        }
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        with_limbs(table.form().limbs, Fill { table, base, first });
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        with_limbs(powers.table.form().limbs, powers);
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        if let Some(first) = powers.moduli.first() {
            with_limbs(first.limbs.len(), powers);
        }
    }

    fn public_powers(&self, powers: PublicPowers<'_, '_>) {
        if let Some(first) = powers.moduli.first() {
            with_limbs(first.limbs.len(), powers);
        }
    }
}

impl WithLimbs for PublicPowers<'_, '_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let mut odd_powers = Secret::new(vec![Uint::<LIMBS>::ZERO; self.exponent.odd_powers()]);
        let [mut power, mut square, mut spare] = [(); 3].map(|()| Secret::new(Uint::<LIMBS>::ZERO));
        for ((modulus, base), out) in self.moduli.iter().zip(self.bases).zip(self.out) {
            let modulus = modulus.monty::<LIMBS>();
            modulus.enter(&Secret::new(load_limbs(base)), &mut power);
            modulus.mul(&power, &power, &mut square);
            for odd_power in odd_powers.iter_mut() {
                *odd_power = *power;
                modulus.mul(odd_power, &square, &mut power);
            }
            match self.exponent.first() {
                Some(odd) => *power = odd_powers[odd],
                None => modulus.enter(&Uint::ONE, &mut power),
            }
            for step in self.exponent.steps() {
                for _ in 0..step.squarings {
                    modulus.mul(&power, &power, &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
                if let Some(odd) = step.odd {
                    modulus.mul(&power, &odd_powers[odd], &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
            }
            modulus.mul(&power, &Uint::ONE, &mut spare);
            out.copy_from_slice(&spare.as_limbs()[..out.len()]);
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
impl WithLimbs for MultiPowers<'_, '_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let window = Window::new(WINDOW_BITS).expect("a window of 1 to 8 bits");
        let count = self.exponent_bits.len();
        let mut tables = Secret::new(vec![[Uint::<LIMBS>::ZERO; ENTRIES]; count]);
        let [mut power, mut entry, mut spare, mut one] =
            [(); 4].map(|()| Secret::new(Uint::<LIMBS>::ZERO));
        let lengths = self.exponent_bits.iter().copied();
        let digits = lengths.clone().map(|bits| window.digit_count(bits) as u32);
        for (i, (modulus, out)) in self.moduli.iter().zip(self.out).enumerate() {
            let modulus = modulus.monty::<LIMBS>();
            let terms = &self.terms[i * count..][..count];
            modulus.enter(&Uint::ONE, &mut one);
            for ([base, _], table) in terms.iter().zip(tables.iter_mut()) {
                table[0] = *one;
                modulus.enter(&Secret::new(load_limbs(base)), &mut table[1]);
                for i in 2..ENTRIES {
                    modulus.mul(&table[i - 1], &table[1], &mut spare);
                    table[i] = *spare;
                }
            }
            *power = *one;
            for digit in (0..digits.clone().max().unwrap_or(0)).rev() {
                for _ in 0..WINDOW_BITS {
                    modulus.mul(&power, &power, &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
                for (([_, exponent], table), bits) in
                    terms.iter().zip(&*tables).zip(lengths.clone())
                {
                    let low = digit * WINDOW_BITS;
                    // The length is public.
                    if low < bits {
                        let value = bits_at(exponent, low, WINDOW_BITS.min(bits - low));
                        select(table, value, &mut entry);
                        modulus.mul(&power, &entry, &mut spare);
                        mem::swap(&mut *power, &mut *spare);
                    }
                }
            }
            modulus.mul(&power, &Uint::ONE, &mut spare);
            out.copy_from_slice(&spare.as_limbs()[..out.len()]);
        }
    }
}
