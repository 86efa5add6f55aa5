//! Powers beyond those of one base and one exponent each: requests to what computes them.
//!
//! Behind this numbers are limbs, least significant first, so that nothing is compiled for each type of a caller. All
//! numbers are secret; how many there are, their widths and the lengths of exponents are public.

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, U64, Unsigned};

use crate::fixed_base::{Table, TableForm};
use crate::monty::Monty;
use crate::secret::Secret;

/// What computes powers by tables, and products of powers. The crates of this workspace alone implement it.
pub trait PowerEngine: Sync {
    /// How it holds numbers of `bits` bits in tables.
    fn table_form(&self, bits: u32) -> TableForm;

    /// Makes the entries of a table: the powers of `base`, of any value, those of row 0 times `first`, an ordinary number.
    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]);

    /// Computes powers by a table of this form.
    fn fixed_powers(&self, powers: FixedPowers<'_, '_>);

    /// Computes products of powers.
    fn multi_powers(&self, powers: MultiPowers<'_, '_>);
}

/// A backend with such an engine.
pub trait HasPowerEngine {
    /// The engine.
    fn power_engine(&self) -> &dyn PowerEngine;
}

impl<B: HasPowerEngine + ?Sized> HasPowerEngine for &B {
    fn power_engine(&self) -> &dyn PowerEngine {
        (**self).power_engine()
    }
}

impl<B: HasPowerEngine + ?Sized> HasPowerEngine for alloc::sync::Arc<B> {
    fn power_engine(&self) -> &dyn PowerEngine {
        (**self).power_engine()
    }
}

impl<B: HasPowerEngine + ?Sized> HasPowerEngine for alloc::boxed::Box<B> {
    fn power_engine(&self) -> &dyn PowerEngine {
        (**self).power_engine()
    }
}

/// Powers of the base of a table, and where they go.
pub struct FixedPowers<'a, 'o> {
    /// The table of the engine that computes.
    pub table: &'a Table,
    /// None narrower than `exponent_bits`.
    pub exponents: &'a [&'a [Limb]],
    /// The low bits of the exponents that count, at most those of the table.
    pub exponent_bits: u32,
    /// A place for each power, as wide as the modulus.
    pub out: &'a mut [&'o mut [Limb]],
}

/// Products of powers, `bases[i][0]^exponents[i][0] * bases[i][1]^exponents[i][1] * ...` modulo `moduli[i]`, and where they go.
pub struct MultiPowers<'a, 'o> {
    /// One for each product, all equally wide.
    pub moduli: &'a [ModulusRef<'a>],
    /// The base and the exponent of each term of the first product, then those of the next one. Bases are of any value, no wider
    /// than the moduli; exponents are no narrower than the length of their term.
    pub terms: &'a [[&'a [Limb]; 2]],
    /// The length of the exponents of each term, in bits.
    pub exponent_bits: &'a [u32],
    /// A place for each product, as wide as the moduli.
    pub out: &'a mut [&'o mut [Limb]],
}

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
    /// That of `params`.
    #[must_use]
    pub fn of<U: Unsigned>(params: &'a MontyParams<U>) -> Self {
        Self {
            limbs: params.modulus().as_ref().as_limbs(),
            r2: params.r2().as_limbs(),
            mod_inv: params.mod_inv(),
        }
    }

    /// Whether these are the same references.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        core::ptr::eq(self.limbs, other.limbs) && core::ptr::eq(self.r2, other.r2)
    }

    /// The width of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.limbs.len() as u32 * Limb::BITS
    }

    /// For products of ours.
    pub(crate) fn monty<const LIMBS: usize>(&self) -> Secret<Monty<LIMBS>> {
        let inverse = self.mod_inv.as_limbs()[0];
        Monty::of_limbs(self.limbs, self.r2, inverse.wrapping_neg())
    }
}
