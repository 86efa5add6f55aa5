//! Montgomery arithmetic of the reference backend, constant-time in every value, the modulus
//! included. Engines with SIMD lanes convert moduli to their own form.
//!
//! With `R = 2^width`, a *Montgomery product* is `a * b / R` (Montgomery, "Modular multiplication
//! without trial division", 1985). The method is the interleaved one of Koç, Acar and Kaliski
//! ("Analyzing and comparing Montgomery multiplication algorithms", 1996). The code uses only limb
//! operations of crypto-bigint.
//!
//! Callers run these functions in [`scrubbed`](crate::secret::scrubbed), which overwrites the stack
//! afterwards.

mod division;
mod modulus;

use alloc::vec;
use core::hint::black_box;
use core::{array, mem, ptr};

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Choice, CtEq, Limb, U64, Unsigned, WideWord, Word};

pub use self::division::{power_of_two, remainder_by_division};
pub use self::modulus::{Modulus, inverse, low_64_bits};
use crate::limbs::bits_at;
use crate::public_exponent::PublicExponent;
use crate::secret::Secret;

/// An odd modulus with its Montgomery constants, by reference. It is the same type for every number
/// type of a caller.
///
/// Numbers are limbs, least significant first. They are as wide as the modulus, unless something
/// else is said.
#[derive(Clone, Copy)]
pub struct ModulusRef<'a> {
    /// The modulus.
    pub limbs: &'a [Limb],
    /// `R^2 mod modulus`, where R is 2 to the width of the modulus in bits.
    pub r2: &'a [Limb],
    /// `1 / modulus mod 2^64`, by reference too: a list of moduli holds no secrets.
    pub mod_inv: &'a U64,
}

impl<'a> ModulusRef<'a> {
    /// The modulus of `params`.
    #[must_use]
    pub fn of<U: Unsigned>(params: &'a MontyParams<U>) -> Self {
        Self {
            limbs: params.modulus().as_ref().as_limbs(),
            r2: params.r2().as_limbs(),
            mod_inv: params.mod_inv(),
        }
    }

    /// Whether both are the same references.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        ptr::eq(self.limbs, other.limbs)
            && ptr::eq(self.r2, other.r2)
            && ptr::eq(self.mod_inv, other.mod_inv)
    }

    /// The width of the modulus in bits.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.limbs.len() as u32 * Limb::BITS
    }

    /// `out = base ^ (exponent mod 2^exponent_bits) mod modulus`, below the modulus, for any base.
    /// The base may be narrower than the modulus.
    ///
    /// Fixed window (Handbook of Applied Cryptography, algorithm 14.82): each digit, 0 included,
    /// costs as many squarings as it has bits, a scan of the whole table and a multiplication.
    /// Intermediate values are only kept below R ("almost Montgomery multiplication": Gueron,
    /// "Efficient software implementations of modular exponentiation", 2011).
    ///
    /// # Panics
    ///
    /// If `exponent_bits` is more than `exponent` has.
    pub fn pow(&self, base: &[Limb], exponent: &[Limb], exponent_bits: u32, out: &mut [Limb]) {
        let is_wide = exponent.len() >= exponent_bits.div_ceil(Limb::BITS) as usize;
        assert!(is_wide, "the exponent is too narrow");
        let (window, size) = (window_bits(exponent_bits), self.limbs.len());
        let mut table = Secret::new(vec![Limb::ZERO; size << window]);
        self.fill_with_powers(base, &mut table);

        let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
        let [mut power, mut spare, factor] = parts(&mut numbers);
        // The highest digit may be short.
        let digit_at = |low| bits_at(exponent, low, window.min(exponent_bits - low));
        let mut positions = (0..exponent_bits).step_by(window as usize).rev();
        look_up(&table, positions.next().map_or(0, digit_at), power);
        for low in positions {
            for _ in 0..window {
                self.almost_mul(power, power, spare);
                mem::swap(&mut power, &mut spare);
            }
            look_up(&table, digit_at(low), factor);
            self.almost_mul(power, factor, spare);
            mem::swap(&mut power, &mut spare);
        }
        // Before its final reduction, a product with 1 is at most the modulus.
        self.mul(&[Limb::ONE], power, out);
    }

    /// Fills a table of at least two numbers with the Montgomery forms of `base^0`, `base^1` and so
    /// on, for any base. The base may be narrower than the modulus.
    pub(crate) fn fill_with_powers(&self, base: &[Limb], table: &mut [Limb]) {
        let size = self.limbs.len();
        self.to_montgomery(&[Limb::ONE], &mut table[..size]);
        self.to_montgomery(base, &mut table[size..2 * size]);
        for start in (2 * size..table.len()).step_by(size) {
            let (powers, rest) = table.split_at_mut(start);
            let last = &powers[start - size..];
            self.mul(last, &powers[size..2 * size], &mut rest[..size]);
        }
    }

    /// `out = base ^ exponent mod modulus`, for any base. The base may be narrower than the modulus.
    /// `scratch` holds two numbers and the exponent's odd powers.
    pub(crate) fn public_pow(
        &self,
        base: &[Limb],
        exponent: &PublicExponent,
        scratch: &mut [Limb],
        out: &mut [Limb],
    ) {
        let (chain, size) = (exponent.chain(), self.limbs.len());
        let (numbers, table) = scratch.split_at_mut(2 * size);
        let [mut power, mut spare] = parts(numbers);
        self.to_montgomery(base, &mut table[..size]);
        if chain.odd_powers > 1 {
            self.mul(&table[..size], &table[..size], spare);
        }
        for start in (size..table.len()).step_by(size) {
            let (powers, rest) = table.split_at_mut(start);
            self.mul(&powers[start - size..], spare, &mut rest[..size]);
        }
        let odd_power = |i: usize| &table[i * size..][..size];
        match chain.first {
            Some(odd) => power.copy_from_slice(odd_power(odd)),
            None => self.to_montgomery(&[Limb::ONE], power),
        }
        for step in &chain.steps {
            self.square_times(step.squarings, &mut power, &mut spare);
            if let Some(odd) = step.odd {
                self.multiply(&mut power, odd_power(odd), &mut spare);
            }
        }
        // A product with an ordinary number leaves Montgomery form.
        match chain.last_squarings {
            Some(squarings) => {
                self.square_times(squarings, &mut power, &mut spare);
                self.mul(base, power, out);
            }
            None => self.mul(&[Limb::ONE], power, out),
        }
    }

    /// `value = value ^ (2^times)` in Montgomery form, for a value below the modulus. Leaves another
    /// number in `spare`.
    pub fn square_times<'v>(
        &self,
        times: u32,
        value: &mut &'v mut [Limb],
        spare: &mut &'v mut [Limb],
    ) {
        for _ in 0..times {
            self.mul(value, value, spare);
            mem::swap(value, spare);
        }
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

    /// `out = value * R mod modulus`, the Montgomery form of any value. The value may be narrower than the
    /// modulus.
    pub fn to_montgomery(&self, value: &[Limb], out: &mut [Limb]) {
        self.mul(value, self.r2, out);
    }

    /// Montgomery product: `out = a * b / R mod modulus`, if `a * b < R * modulus`. This holds if
    /// one factor has any value and the other one is below the modulus. `a` may be narrower than
    /// the modulus.
    pub fn mul(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) {
        let carry = self.product(a, b, out);
        reduce_once(self.limbs, carry, out);
    }

    /// `out`, congruent to `a * b / R` and below R, for any a and b.
    fn almost_mul(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) {
        let carry = self.product(a, b, out);
        self.reduce_carry(carry, out);
    }

    /// Subtracts the modulus if `carry` is 1. If `value + R * carry` is below `R + modulus`, the
    /// result is congruent to it and below R.
    fn reduce_carry(&self, carry: Limb, value: &mut [Limb]) {
        // With a barrier, as in `add_under_mask`.
        let mask = black_box(Limb::ZERO.wrapping_sub(carry));
        let mut borrow = Limb::ZERO;
        for (value, m) in value.iter_mut().zip(self.limbs) {
            (*value, borrow) = value.borrowing_sub(*m & mask, borrow);
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

    /// Adds `a * b` to `out + R * carry_in`, and the multiple of the modulus that makes the lowest
    /// limb zero. Drops that limb. Returns the next carry, 0 or 1, if `carry_in` is 0 or 1, or if
    /// `a` is 0 and `carry_in` at most the radix.
    #[inline(always)]
    fn row(&self, a: Limb, b: &[Limb], out: &mut [Limb], carry_in: WideWord) -> WideWord {
        let size = self.limbs.len();
        // Tells the compiler that no index is out of bounds.
        let (b, m, out) = (&b[..size], &self.limbs[..size], &mut out[..size]);
        let neg_inv = self.mod_inv.as_limbs()[0].wrapping_neg();
        let ab = wide(a) * wide(b[0]) + wide(out[0]);
        let u = Limb(ab as Word).wrapping_mul(neg_inv);
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

    /// `out = value mod modulus` for a value of any width, by Horner's rule over digits as wide as
    /// the modulus.
    pub fn remainder(&self, value: &[Limb], out: &mut [Limb]) {
        let size = self.limbs.len();
        let mut quotient = Secret::new(vec![Limb::ZERO; size]);
        let load = |digit: &[Limb], out: &mut [Limb]| {
            out[..digit.len()].copy_from_slice(digit);
            out[digit.len()..].fill(Limb::ZERO);
        };
        let mut digits = value.chunks(size).rev();
        match value.len() > size {
            true => load(digits.next().unwrap_or_default(), out),
            false => out.fill(Limb::ZERO),
        }
        for digit in digits {
            // (out * R + digit) / R, below R + modulus for any `out`, then times R. The limbs of
            // `out` enter from the top, one with every limb that becomes zero.
            load(digit, &mut quotient);
            let carry = out.iter().fold(0, |carry, high| {
                self.row(Limb::ZERO, self.limbs, &mut quotient, carry + wide(*high))
            });
            self.reduce_carry(Limb(carry as Word), &mut quotient);
            self.to_montgomery(&quotient, out);
        }
    }

    /// `out = a - b mod modulus`, for a and b below the modulus.
    pub fn sub(&self, a: &[Limb], b: &[Limb], out: &mut [Limb]) {
        let mut borrow = Limb::ZERO;
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            (*out, borrow) = a.borrowing_sub(*b, borrow);
        }
        add_under_mask(self.limbs, borrow, out);
    }
}

/// Subtracts the modulus from `value + R * carry` if the result is not negative. The input is below
/// twice the modulus.
fn reduce_once(modulus: &[Limb], carry: Limb, value: &mut [Limb]) {
    let mut borrow = Limb::ZERO;
    for (value, m) in value.iter_mut().zip(modulus) {
        (*value, borrow) = value.borrowing_sub(*m, borrow);
    }
    let (_, below) = carry.borrowing_sub(Limb::ZERO, borrow);
    add_under_mask(modulus, below, value);
}

/// Adds the modulus if the borrow is all ones, and not if it is 0.
fn add_under_mask(modulus: &[Limb], borrow: Limb, value: &mut [Limb]) {
    // The barrier hides from the compiler that there are two cases.
    let mask = black_box(borrow);
    let mut carry = Limb::ZERO;
    for (value, m) in value.iter_mut().zip(modulus) {
        (*value, carry) = value.carrying_add(*m & mask, carry);
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

/// The bits of the window with the fewest multiplications among those with at most 16 table
/// entries.
fn window_bits(exponent_bits: u32) -> u32 {
    match exponent_bits {
        0..=4 => 1,
        5..=24 => 2,
        25..=96 => 3,
        _ => 4,
    }
}

/// Copies number `digit` of a table to `out`. Reads the whole table in the same order for every
/// digit.
pub(crate) fn look_up(table: &[Limb], digit: u64, out: &mut [Limb]) {
    out.fill(Limb::ZERO);
    for (i, number) in (0u64..).zip(table.chunks_exact(out.len())) {
        let mask = mask(i.ct_eq(&digit));
        for (out, limb) in out.iter_mut().zip(number) {
            out.0 |= limb.0 & mask;
        }
    }
}

/// All ones if `choice` is true. From a mask that is not made of a [`Choice`], such as a borrow, the
/// compiler makes a branch.
fn mask(choice: Choice) -> Word {
    Word::from(choice.to_u8()).wrapping_neg()
}

#[cfg(test)]
mod tests;
