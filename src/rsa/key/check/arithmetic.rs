//! Products, remainders and inverses for the check of a key, constant-time in every value.

use batch_modexp_core::secret::Secret;
use crypto_bigint::{BoxedUint, Choice, CtEq, Limb, Odd, Uint, Word};

/// `1 / value mod modulus` for an odd modulus; an arbitrary number if there is no inverse.
pub(super) fn inverse<const LIMBS: usize>(
    value: &Uint<LIMBS>,
    modulus: &Uint<LIMBS>,
) -> Secret<Uint<LIMBS>> {
    let one = Odd::new(Uint::ONE).expect("an odd number");
    let modulus = Secret::new(Odd::new(*modulus).unwrap_or(one));
    Secret::new(value.invert_odd_mod(&modulus).unwrap_or(Uint::ZERO))
}

/// A product of two numbers, wiped on drop.
pub(super) struct Product<const LIMBS: usize> {
    low: Secret<Uint<LIMBS>>,
    high: Secret<Uint<LIMBS>>,
}

impl<const LIMBS: usize> Product<LIMBS> {
    pub(super) fn new(a: &Uint<LIMBS>, b: &Uint<LIMBS>) -> Self {
        let (low, high) = a.widening_mul(b);
        Self {
            low: Secret::new(low),
            high: Secret::new(high),
        }
    }

    fn limbs(&self) -> impl DoubleEndedIterator<Item = &Limb> {
        self.low.as_limbs().iter().chain(self.high.as_limbs())
    }

    pub(super) fn remainder(&self, modulus: &Uint<LIMBS>) -> Secret<Uint<LIMBS>> {
        remainder(self.limbs(), modulus)
    }

    pub(super) fn equals(&self, value: &BoxedUint) -> Choice {
        let value = value
            .as_limbs()
            .iter()
            .chain(core::iter::repeat(&Limb::ZERO));
        let differences = self.limbs().zip(value).map(|(a, b)| a.0 ^ b.0);
        Secret::new(differences.fold(0, |any, difference| any | difference)).ct_eq(&0)
    }
}

/// `value mod modulus` for any modulus but 0, also an even one. Bit by bit, it doubles the
/// remainder and subtracts the modulus under a mask.
///
/// Slower than a division by words, but simpler: independent of the length of the modulus. An
/// import takes about `4 * bits` steps, together less than a private operation.
pub(super) fn remainder<'a, const LIMBS: usize>(
    value: impl DoubleEndedIterator<Item = &'a Limb>,
    modulus: &Uint<LIMBS>,
) -> Secret<Uint<LIMBS>> {
    let mut rest = Secret::new(Uint::ZERO);
    for limb in value.rev() {
        for position in (0..Limb::BITS).rev() {
            double_and_add(&mut rest, (limb.0 >> position) & 1, modulus);
        }
    }
    rest
}

/// `rest = 2 * rest + bit mod modulus`, for `rest` below the modulus.
fn double_and_add<const LIMBS: usize>(rest: &mut Uint<LIMBS>, bit: Word, modulus: &Uint<LIMBS>) {
    let limbs = rest.as_mut_limbs();
    let (mut carry, mut borrow) = (bit, Limb::ZERO);
    for (limb, m) in limbs.iter_mut().zip(modulus.as_limbs()) {
        let doubled = limb.0 << 1 | carry;
        carry = limb.0 >> (Limb::BITS - 1);
        (*limb, borrow) = Limb(doubled).borrowing_sub(*m, borrow);
    }
    // All ones if the subtraction has borrowed.
    let (_, below) = Limb(carry).borrowing_sub(Limb::ZERO, borrow);
    let mut carry = Limb::ZERO;
    for (limb, m) in limbs.iter_mut().zip(modulus.as_limbs()) {
        (*limb, carry) = limb.carrying_add(*m & below, carry);
    }
}
