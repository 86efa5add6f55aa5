//! Montgomery arithmetic of the reference backend.
//!
//! With `R = 2^width`, a product is `a * b / R` (Montgomery, "Modular multiplication without trial
//! division", 1985). The method is the interleaved one of Koç, Acar and Kaliski ("Analyzing and
//! comparing Montgomery multiplication algorithms", 1996). The code uses only limb operations of
//! crypto-bigint.
//!
//! Callers run these functions in [`scrubbed`](crate::secret::scrubbed), which overwrites the stack
//! afterwards.

use alloc::vec;
use core::{array, mem};

use crypto_bigint::{CtEq, Limb, WideWord, Word};

use super::ModulusRef;
use crate::secret::Secret;
use crate::window::{Window, bits_at};

impl ModulusRef<'_> {
    /// `out = a * b / R mod modulus`, if `a * b < R * modulus`: for any a, and b below the modulus,
    /// or the other way around. `a` may be narrower than the modulus.
    pub fn mul(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) {
        let carry = self.product(a, b, out);
        reduce_once(self.limbs, carry, out);
    }

    /// `value = value * factor / R mod modulus`, as [`mul`](Self::mul). Leaves the old value in
    /// `spare`.
    pub fn multiply<'v>(
        &self,
        value: &mut &'v mut [Limb],
        factor: &[Limb],
        spare: &mut &'v mut [Limb],
    ) {
        self.mul(value, factor, spare);
        mem::swap(value, spare);
    }

    /// `value = value^2 / R mod modulus`, for a value below the modulus. Leaves the old value in
    /// `spare`.
    pub fn square<'v>(&self, value: &mut &'v mut [Limb], spare: &mut &'v mut [Limb]) {
        self.mul(value, value, spare);
        mem::swap(value, spare);
    }

    /// `out = value * R mod modulus`, the Montgomery form of any value. It may be narrower than the
    /// modulus.
    pub fn enter(&self, value: &[Limb], out: &mut [Limb]) {
        self.mul(value, self.r2, out);
    }

    /// `out = base ^ (exponent mod 2^exponent_bits) mod modulus`, below the modulus, for any base.
    /// It may be narrower than the modulus.
    ///
    /// Fixed window: each digit, 0 included, costs as many squarings as it has bits, a scan of the
    /// whole table and a multiplication. Intermediate values are only kept below R ("almost
    /// Montgomery multiplication": Gueron, "Efficient software implementations of modular
    /// exponentiation", 2011).
    ///
    /// # Panics
    ///
    /// If `exponent_bits` is more than `exponent` has.
    pub fn pow(&self, base: &[Limb], exponent: &[Limb], exponent_bits: u32, out: &mut [Limb]) {
        let bits = exponent.len() as u64 * u64::from(Limb::BITS);
        assert!(
            u64::from(exponent_bits) <= bits,
            "the exponent is too narrow"
        );
        let (window, size) = (window(exponent_bits), self.limbs.len());
        let mut table = Secret::new(vec![Limb::ZERO; window.table_len() * size]);
        self.fill_with_powers(base, &mut table);

        let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
        let [mut power, mut spare, factor] = parts(&mut numbers);
        power.copy_from_slice(&table[..size]);
        let digits = window.digit_count(exponent_bits) as u32;
        for digit in (0..digits).rev() {
            let low = digit * window.bits();
            let bits = window.bits().min(exponent_bits - low);
            if digit + 1 < digits {
                for _ in 0..window.bits() {
                    self.almost_mul(power, power, spare);
                    mem::swap(&mut power, &mut spare);
                }
            }
            select(&table, bits_at(exponent, low, bits) as u8, factor);
            self.almost_mul(power, factor, spare);
            mem::swap(&mut power, &mut spare);
        }
        // Before its final reduction, a product with 1 is at most the modulus.
        self.mul(&[Limb::ONE], power, out);
    }

    /// Fills a table of at least two numbers with the Montgomery forms of `base^0`, `base^1` and so
    /// on, for any base. It may be narrower than the modulus.
    pub(crate) fn fill_with_powers(&self, base: &[Limb], table: &mut [Limb]) {
        let size = self.limbs.len();
        self.enter(&[Limb::ONE], &mut table[..size]);
        self.enter(base, &mut table[size..2 * size]);
        for start in (2 * size..table.len()).step_by(size) {
            let (powers, rest) = table.split_at_mut(start);
            let last = &powers[start - size..];
            self.mul(last, &powers[size..2 * size], &mut rest[..size]);
        }
    }

    /// `out`, congruent to `a * b / R` and below R, for any a and b.
    fn almost_mul(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) {
        let carry = self.product(a, b, out);
        let mask = Limb::ZERO.wrapping_sub(carry);
        let mut borrow = Limb::ZERO;
        for (out, m) in out.iter_mut().zip(self.limbs) {
            (*out, borrow) = out.borrowing_sub(*m & mask, borrow);
        }
    }

    /// `out + R * returned carry`, congruent to `a * b / R` and below `a * b / R + modulus`. The
    /// carry is 0 or 1. `a` may be narrower than the modulus.
    ///
    /// # Panics
    ///
    /// If the widths do not fit.
    #[inline(always)]
    fn product(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) -> Limb {
        let size = self.limbs.len();
        assert!(a.len() <= size && b.len() == size && out.len() == size);
        out.fill(Limb::ZERO);
        let mut carry = 0;
        for limb in a {
            carry = self.row(*limb, b, out, carry);
        }
        for _ in a.len()..size {
            carry = self.row(Limb::ZERO, b, out, carry);
        }
        Limb(carry as Word)
    }

    /// Adds `a * b` to `out + R * carry`, and the multiple of the modulus that makes the lowest limb
    /// zero. Drops that limb. Returns the next carry, 0 or 1.
    #[inline(always)]
    fn row(&self, a: Limb, b: &[Limb], out: &mut [Limb], carry_in: WideWord) -> WideWord {
        let size = self.limbs.len();
        // Tells the compiler that no index is out of bounds.
        let (b, m, out) = (&b[..size], &self.limbs[..size], &mut out[..size]);
        let ab = wide(a) * wide(b[0]) + wide(out[0]);
        let u = Limb(ab as Word).wrapping_mul(self.neg_inv());
        let um = wide(u) * wide(m[0]);
        // The low halves add up to 0 modulo the radix B. One carry serves both products: it is
        // below 2 * B and fits into the double-width sum below.
        let low = low_half(ab) + low_half(um);
        let mut carry = (ab >> Limb::BITS) + (um >> Limb::BITS) + (low >> Limb::BITS);
        for j in 1..size {
            // At most (B - 1)^2 + (B - 1) and (B - 1)^2 + (2 * B - 2), which is B^2 - 1.
            let ab = wide(a) * wide(b[j]) + wide(out[j]);
            let um = wide(u) * wide(m[j]) + carry;
            let low = low_half(ab) + low_half(um);
            out[j - 1] = Limb(low as Word);
            carry = (ab >> Limb::BITS) + (um >> Limb::BITS) + (low >> Limb::BITS);
        }
        carry += carry_in;
        out[size - 1] = Limb(carry as Word);
        carry >> Limb::BITS
    }

    /// `-1 / modulus` modulo the radix of a limb.
    fn neg_inv(&self) -> Limb {
        self.mod_inv.as_limbs()[0].wrapping_neg()
    }

    /// `out = value mod modulus` for a value of any width, by Horner's rule over digits as wide as
    /// the modulus.
    pub fn reduce(&self, value: &[Limb], out: &mut [Limb]) {
        let mut quotient = Secret::new(vec![Limb::ZERO; self.limbs.len()]);
        out.fill(Limb::ZERO);
        for digit in value.chunks(self.limbs.len()).rev() {
            // (out * R + digit) / R, then times R.
            quotient[..digit.len()].copy_from_slice(digit);
            quotient[digit.len()..].fill(Limb::ZERO);
            self.divide_by_r(&mut quotient, out);
            self.enter(&quotient, out);
        }
    }

    /// `low = (high * R + low) / R mod modulus`, for any `low` and for `high` below the modulus.
    fn divide_by_r(&self, low: &mut [Limb], high: &[Limb]) {
        let size = self.limbs.len();
        let mut overflow = Limb::ZERO;
        // After each step, limb `high` enters from the top and the lowest limb becomes zero.
        for high in high {
            let u = low[0].wrapping_mul(self.neg_inv());
            let (_, mut carry) = u.carrying_mul_add(self.limbs[0], low[0], Limb::ZERO);
            for j in 1..size {
                (low[j - 1], carry) = u.carrying_mul_add(self.limbs[j], low[j], carry);
            }
            (low[size - 1], overflow) = high.carrying_add(carry, overflow);
        }
        reduce_once(self.limbs, overflow, low);
    }
}

/// Subtracts the modulus from `value + R * carry` if the result is not negative. The input is below
/// twice the modulus.
pub(super) fn reduce_once(modulus: &[Limb], carry: Limb, value: &mut [Limb]) {
    let mut borrow = Limb::ZERO;
    for (value, m) in value.iter_mut().zip(modulus) {
        (*value, borrow) = value.borrowing_sub(*m, borrow);
    }
    let (_, below) = carry.borrowing_sub(Limb::ZERO, borrow);
    let mut carry = Limb::ZERO;
    for (value, m) in value.iter_mut().zip(modulus) {
        (*value, carry) = value.carrying_add(*m & below, carry);
    }
}

/// Divides a buffer into N equal numbers.
pub fn parts<const N: usize>(numbers: &mut [Limb]) -> [&mut [Limb]; N] {
    let size = numbers.len() / N;
    let mut numbers = numbers.chunks_exact_mut(size.max(1));
    array::from_fn(|_| numbers.next().unwrap_or_default())
}

#[inline(always)]
fn wide(limb: Limb) -> WideWord {
    WideWord::from(limb.0)
}

#[inline(always)]
fn low_half(value: WideWord) -> WideWord {
    WideWord::from(value as Word)
}

/// The window with the fewest multiplications among those with at most 16 table entries.
fn window(exponent_bits: u32) -> Window {
    let bits = match exponent_bits {
        0..=4 => 1,
        5..=24 => 2,
        25..=96 => 3,
        _ => 4,
    };
    Window::new(bits).expect("1 to 4 bits are a window")
}

/// Copies number `digit` of a table to `out`. Reads the whole table in the same order for every
/// digit.
pub(crate) fn select(table: &[Limb], digit: u8, out: &mut [Limb]) {
    out.fill(Limb::ZERO);
    for (i, number) in (0..).zip(table.chunks_exact(out.len())) {
        let i: Word = i;
        let mask = Word::from(i.ct_eq(&Word::from(digit)).to_u8()).wrapping_neg();
        for (out, limb) in out.iter_mut().zip(number) {
            out.0 |= limb.0 & mask;
        }
    }
}
