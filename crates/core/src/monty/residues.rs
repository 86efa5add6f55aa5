//! Differences of residues and remainders of longer numbers, for the Chinese remainder theorem.

use crypto_bigint::{Limb, Uint};

use super::Monty;
use crate::secret::Secret;

impl<const LIMBS: usize> Monty<LIMBS> {
    /// `out = a - b mod modulus`, for a and b below the modulus.
    pub fn sub(&self, a: &Uint<LIMBS>, b: &Uint<LIMBS>, out: &mut Uint<LIMBS>) {
        let mut borrow = Limb::ZERO;
        for ((out, a), b) in out
            .as_mut_limbs()
            .iter_mut()
            .zip(a.as_limbs())
            .zip(b.as_limbs())
        {
            (*out, borrow) = a.borrowing_sub(*b, borrow);
        }
        // A borrow is 0 or all ones.
        let mut carry = Limb::ZERO;
        for (out, m) in out.as_mut_limbs().iter_mut().zip(self.modulus.as_limbs()) {
            (*out, carry) = out.carrying_add(*m & borrow, carry);
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
