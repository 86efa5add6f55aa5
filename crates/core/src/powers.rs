//! Powers beyond those of one base and one exponent each: requests to what computes them.
//!
//! Behind this numbers are limbs, least significant first, so that nothing is compiled for each type of a caller. All
//! numbers are secret; how many there are, their widths and the lengths of exponents are public.

use crypto_bigint::Limb;

use crate::fixed_base::{Table, TableForm};
use crate::modulus::ModulusRef;
use crate::public_exponent::PublicExponent;

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

    /// Computes powers with a public exponent.
    fn public_powers(&self, powers: PublicPowers<'_, '_>);
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

/// Powers with one public exponent, and where they go.
pub struct PublicPowers<'a, 'o> {
    /// One for each power, all equally wide.
    pub moduli: &'a [ModulusRef<'a>],
    /// A base of any value for each modulus, no wider than that.
    pub bases: &'a [&'a [Limb]],
    /// The exponent.
    pub exponent: &'a PublicExponent,
    /// A place for each power, as wide as the moduli.
    pub out: &'a mut [&'o mut [Limb]],
}
