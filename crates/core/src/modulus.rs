//! An odd modulus by reference, independent of the caller's number type.

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, U64, Unsigned};

use crate::monty::Monty;
use crate::secret::Secret;

/// An odd modulus with its Montgomery constants.
#[derive(Clone, Copy)]
pub struct ModulusRef<'a> {
    /// The modulus.
    pub limbs: &'a [Limb],
    /// `2^(2 * width) mod modulus`.
    pub r2: &'a [Limb],
    /// `1 / modulus mod 2^64`.
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
        core::ptr::eq(self.limbs, other.limbs) && core::ptr::eq(self.r2, other.r2)
    }

    /// The width of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.limbs.len() as u32 * Limb::BITS
    }

    /// The modulus with the constants of our Montgomery arithmetic.
    pub(crate) fn monty<const LIMBS: usize>(&self) -> Secret<Monty<LIMBS>> {
        let inverse = self.mod_inv.as_limbs()[0];
        Monty::of_limbs(self.limbs, self.r2, inverse.wrapping_neg())
    }
}
