//! Products and inverses for the check of a key, constant-time in every value.

use alloc::vec::Vec;

use batch_modexp_core::monty;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::load_limbs;
use crypto_bigint::{BoxedUint, Choice, CtEq, Limb, Odd, Uint};

/// `value mod modulus` for any modulus but 0, also an even one.
pub(super) fn remainder<const LIMBS: usize>(
    value: &[Limb],
    modulus: &Uint<LIMBS>,
) -> Secret<Uint<LIMBS>> {
    Secret::new(load_limbs(&monty::remainder_by_division(
        value,
        modulus.as_limbs(),
    )))
}

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

    fn limbs(&self) -> impl Iterator<Item = &Limb> {
        self.low.as_limbs().iter().chain(self.high.as_limbs())
    }

    pub(super) fn remainder(&self, modulus: &Uint<LIMBS>) -> Secret<Uint<LIMBS>> {
        let product = Secret::new(self.limbs().copied().collect::<Vec<_>>());
        remainder(&product, modulus)
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
