//! Montgomery arithmetic on `Uint<LIMBS>`, constant-time in every value, the modulus included.
//!
//! With `R = 2^(LIMBS * Limb::BITS)`, a product is `a * b / R` (Montgomery, "Modular multiplication
//! without trial division", 1985). The method is the interleaved one of Koç, Acar and Kaliski
//! ("Analyzing and comparing Montgomery multiplication algorithms", 1996). The code uses only limb
//! operations of crypto-bigint. Its own Montgomery forms would need `MontyParams::new`, which
//! counts the leading zeros of the modulus with an instruction that is not constant-time on every
//! processor.
//!
//! Nothing here allocates. Callers run these functions in [`scrubbed`](crate::width::scrubbed),
//! which overwrites the stack afterwards.

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, CtAssign, CtEq, Limb, Uint, WideWord, Word};
use zeroize::Zeroize;

use crate::secret::Secret;
use crate::width::{load, load_high, load_limbs};
use crate::window::{Window, bits_at};

/// An odd modulus below R with its constants.
pub struct Monty<const LIMBS: usize> {
    modulus: Uint<LIMBS>,
    /// `-1 / modulus` modulo the radix of a limb.
    neg_inv: Limb,
    /// `R^2 mod modulus`.
    r2: Uint<LIMBS>,
}

impl<const LIMBS: usize> Zeroize for Monty<LIMBS> {
    fn zeroize(&mut self) {
        self.modulus.zeroize();
        self.neg_inv.zeroize();
        self.r2.zeroize();
    }
}

impl<const LIMBS: usize> Monty<LIMBS> {
    /// The modulus of `params`, which has the same width.
    #[must_use]
    pub fn new(params: &MontyParams<Uint<LIMBS>>) -> Secret<Self> {
        Secret::new(Self {
            modulus: *params.modulus().as_ref(),
            neg_inv: params.mod_neg_inv(),
            r2: *params.r2(),
        })
    }

    /// The modulus of `params`, narrower than `LIMBS` limbs by less than a quarter, or as wide.
    ///
    /// # Panics
    ///
    /// If it is wider than `LIMBS` limbs, or not wider than three quarters of that.
    #[must_use]
    pub fn widened(params: &MontyParams<BoxedUint>) -> Secret<Self> {
        let modulus = params.modulus().as_ref().as_limbs();
        Self::of_limbs(modulus, params.r2().as_limbs(), params.mod_neg_inv())
    }

    /// Like [`widened`](Self::widened), from the modulus, `2^(2 * width) mod modulus` and `-1 /
    /// modulus` modulo the limb radix.
    ///
    /// # Panics
    ///
    /// Those of [`widened`](Self::widened).
    #[must_use]
    pub fn of_limbs(modulus: &[Limb], r2: &[Limb], neg_inv: Limb) -> Secret<Self> {
        let narrow = modulus.len();
        assert!(
            narrow <= LIMBS && 4 * narrow > 3 * LIMBS,
            "{narrow} limbs do not go into {LIMBS}"
        );
        let mut monty = Secret::new(Self {
            modulus: load_limbs(modulus),
            neg_inv,
            r2: load_limbs(r2),
        });
        if narrow < LIMBS {
            // So far `r2` is the square of the radix 2^(w * narrow), where w is the limb length. It
            // equals R * 2^f with f = w * (2 * narrow - LIMBS). A Montgomery square doubles f. A
            // product with 2^g supplies the rest of R^2: g = w * (LIMBS - 2 * (2 * narrow - LIMBS))
            // + w * LIMBS.
            let mut square = Secret::new(Uint::ZERO);
            monty.mul(&monty.r2, &monty.r2, &mut square);
            let mut power = Uint::<LIMBS>::ZERO;
            power.as_mut_limbs()[4 * (LIMBS - narrow)] = Limb::ONE;
            let mut r2 = Secret::new(Uint::ZERO);
            monty.mul(&power, &square, &mut r2);
            monty.r2 = *r2;
        }
        monty
    }

    /// The modulus of `params`, not wider than `LIMBS` limbs, for Montgomery products with the
    /// radix of its own width.
    ///
    /// With `S = 2^width`, [`enter`](Self::enter) gives `value * S mod modulus` for a value of that
    /// width. [`mul`](Self::mul) gives `a * b / S mod modulus` if one factor has been shifted to
    /// the top limbs ([`load_high`]).
    #[must_use]
    pub fn narrow(params: &MontyParams<BoxedUint>) -> Secret<Self> {
        let width = params.modulus().as_ref().as_limbs().len();
        Secret::new(Self {
            modulus: load(params.modulus().as_ref()),
            neg_inv: params.mod_neg_inv(),
            r2: load_high(params.r2(), width),
        })
    }

    /// `out = a * b / R mod modulus`, if `a * b < R * modulus`: for any a, and b below the modulus.
    pub fn mul(&self, a: &Uint<LIMBS>, b: &Uint<LIMBS>, out: &mut Uint<LIMBS>) {
        let carry = self.product(a, b, out);
        self.reduce_once(carry, out);
    }

    /// `out = value * R mod modulus`, the Montgomery form of any value.
    pub fn enter(&self, value: &Uint<LIMBS>, out: &mut Uint<LIMBS>) {
        self.mul(value, &self.r2, out);
    }

    /// `out = base ^ (exponent mod 2^exponent_bits) mod modulus`, below the modulus, for any base.
    ///
    /// Fixed window: each digit, 0 included, costs as many squarings as it has bits, a scan of the
    /// whole table and a multiplication. Intermediate values are only kept below R ("almost
    /// Montgomery multiplication": Gueron, "Efficient software implementations of modular
    /// exponentiation", 2011).
    ///
    /// # Panics
    ///
    /// If `exponent_bits` is more than `exponent` has.
    pub fn pow(
        &self,
        base: &Uint<LIMBS>,
        exponent: &[Limb],
        exponent_bits: u32,
        out: &mut Uint<LIMBS>,
    ) {
        const LARGEST: usize = 16;
        let window = window(exponent_bits);
        let mut table = Secret::new([Uint::<LIMBS>::ZERO; LARGEST]);
        let table = &mut table[..window.table_len()];
        self.enter(&Uint::ONE, &mut table[0]);
        self.enter(base, &mut table[1]);
        for i in 2..table.len() {
            let (powers, rest) = table.split_at_mut(i);
            self.almost_mul(&powers[i - 1], &powers[1], &mut rest[0]);
        }

        let mut power = Secret::new(table[0]);
        let mut spare = Secret::new(Uint::ZERO);
        let mut factor = Secret::new(Uint::ZERO);
        let digits = window.digit_count(exponent_bits) as u32;
        for digit in (0..digits).rev() {
            let low = digit * window.bits();
            let bits = window.bits().min(exponent_bits - low);
            if digit + 1 < digits {
                for _ in 0..window.bits() {
                    self.almost_mul(&power, &power, &mut spare);
                    core::mem::swap(&mut *power, &mut *spare);
                }
            }
            select(table, bits_at(exponent, low, bits), &mut factor);
            self.almost_mul(&power, &factor, &mut spare);
            core::mem::swap(&mut *power, &mut *spare);
        }
        // Before its final reduction, a product with 1 is at most the modulus.
        self.mul(&power, &Uint::ONE, out);
    }

    /// `out`, congruent to `a * b / R` and below R, for any a and b.
    #[inline]
    fn almost_mul(&self, a: &Uint<LIMBS>, b: &Uint<LIMBS>, out: &mut Uint<LIMBS>) {
        let carry = self.product(a, b, out);
        let mask = Limb::ZERO.wrapping_sub(carry);
        let mut borrow = Limb::ZERO;
        for (out, m) in out.as_mut_limbs().iter_mut().zip(self.modulus.as_limbs()) {
            (*out, borrow) = out.borrowing_sub(*m & mask, borrow);
        }
    }

    /// `out + R * returned carry`, congruent to `a * b / R` and below `a * b / R + modulus`. The
    /// carry is 0 or 1.
    #[inline(always)]
    fn product(&self, a: &Uint<LIMBS>, b: &Uint<LIMBS>, out: &mut Uint<LIMBS>) -> Limb {
        let (b, m, out) = (b.as_limbs(), self.modulus.as_limbs(), out.as_mut_limbs());
        out.fill(Limb::ZERO);
        let mut overflow = 0;
        for a in a.as_limbs() {
            let ab = wide(*a) * wide(b[0]) + wide(out[0]);
            let u = Limb(ab as Word).wrapping_mul(self.neg_inv);
            let um = wide(u) * wide(m[0]);
            // The low halves add up to 0 modulo the radix B. One carry serves both products: it is
            // below 2 * B and fits into the double-width sum below.
            let low = low_half(ab) + low_half(um);
            let mut carry = (ab >> Limb::BITS) + (um >> Limb::BITS) + (low >> Limb::BITS);
            for j in 1..LIMBS {
                // At most (B - 1)^2 + (B - 1) and (B - 1)^2 + (2 * B - 2), which is B^2 - 1.
                let ab = wide(*a) * wide(b[j]) + wide(out[j]);
                let um = wide(u) * wide(m[j]) + carry;
                let low = low_half(ab) + low_half(um);
                out[j - 1] = Limb(low as Word);
                carry = (ab >> Limb::BITS) + (um >> Limb::BITS) + (low >> Limb::BITS);
            }
            carry += overflow;
            out[LIMBS - 1] = Limb(carry as Word);
            overflow = carry >> Limb::BITS;
        }
        Limb(overflow as Word)
    }

    /// Subtracts the modulus from `value + R * carry` if the result is not negative. The input is
    /// below twice the modulus.
    #[inline]
    fn reduce_once(&self, carry: Limb, value: &mut Uint<LIMBS>) {
        let mut borrow = Limb::ZERO;
        for (value, m) in value.as_mut_limbs().iter_mut().zip(self.modulus.as_limbs()) {
            (*value, borrow) = value.borrowing_sub(*m, borrow);
        }
        let (_, below) = carry.borrowing_sub(Limb::ZERO, borrow);
        let mut carry = Limb::ZERO;
        for (value, m) in value.as_mut_limbs().iter_mut().zip(self.modulus.as_limbs()) {
            (*value, carry) = value.carrying_add(*m & below, carry);
        }
    }

    /// `value mod modulus` for a value of any number of limbs, by Horner's rule over digits of
    /// `LIMBS` limbs.
    pub fn reduce(&self, value: &[Limb], out: &mut Uint<LIMBS>) {
        let mut quotient = Secret::new(Uint::ZERO);
        *out = Uint::ZERO;
        for digit in value.chunks(LIMBS).rev() {
            // (out * R + digit) / R, then times R.
            quotient.as_mut_limbs()[..digit.len()].copy_from_slice(digit);
            quotient.as_mut_limbs()[digit.len()..].fill(Limb::ZERO);
            self.divide_by_r(&mut quotient, out);
            self.enter(&quotient, out);
        }
    }

    /// `low = (high * R + low) / R mod modulus`, for any `low` and for `high` below the modulus.
    fn divide_by_r(&self, low: &mut Uint<LIMBS>, high: &Uint<LIMBS>) {
        let (limbs, modulus) = (low.as_mut_limbs(), self.modulus.as_limbs());
        let mut overflow = Limb::ZERO;
        // After each step, limb `high` enters from the top and the lowest limb becomes zero.
        for high in high.as_limbs() {
            let u = limbs[0].wrapping_mul(self.neg_inv);
            let (_, mut carry) = u.carrying_mul_add(modulus[0], limbs[0], Limb::ZERO);
            for j in 1..LIMBS {
                (limbs[j - 1], carry) = u.carrying_mul_add(modulus[j], limbs[j], carry);
            }
            (limbs[LIMBS - 1], overflow) = high.carrying_add(carry, overflow);
        }
        self.reduce_once(overflow, low);
    }
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

/// Copies `table[digit]` to `out`. Reads the whole table in the same order for every digit.
pub(crate) fn select<const LIMBS: usize>(table: &[Uint<LIMBS>], digit: u8, out: &mut Uint<LIMBS>) {
    *out = table[0];
    for (i, power) in (1..).zip(&table[1..]) {
        let i: Word = i;
        out.ct_assign(power, i.ct_eq(&Word::from(digit)));
    }
}

#[cfg(test)]
mod tests;
