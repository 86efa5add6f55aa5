//! Requests for powers by tables, products of powers, and powers with public exponents.
//!
//! Numbers are limbs here, least significant first, so that nothing is compiled again for each
//! number type of a caller. All numbers are secret, except exponents that are said to be public.
//! The count of numbers, their widths and the lengths of exponents are public.

use crypto_bigint::Limb;

use crate::fixed_base::{Table, TableForm};
use crate::monty::ModulusRef;
use crate::public_exponent::PublicExponent;

/// An engine for powers by tables and for products of powers. Only crates of this workspace
/// implement it.
pub trait PowerEngine: Sync {
    /// The table representation of numbers of `bits` bits.
    fn table_form(&self, bits: u32) -> TableForm;

    /// Fills a table with the powers of `base`, which may have any value. Entries of row 0 are
    /// multiplied by `first`, an ordinary number.
    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]);

    /// Computes powers by a table of this representation.
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

/// Powers of the base of a table, and the places for them.
pub struct FixedPowers<'a, 'o> {
    /// A table that this engine made.
    pub table: &'a Table,
    /// The exponents, none narrower than `exponent_bits`; public if those of the table are.
    pub exponents: &'a [&'a [Limb]],
    /// Only this many low bits of each exponent are used; at most those of the table.
    pub exponent_bits: u32,
    /// A place for each power, as wide as the modulus.
    pub out: &'a mut [&'o mut [Limb]],
}

/// Products of powers, `bases[i][0]^exponents[i][0] * bases[i][1]^exponents[i][1] * ...` modulo
/// `moduli[i]`, and the places for them.
pub struct MultiPowers<'a, 'o> {
    /// One for each product, all equally wide.
    pub moduli: &'a [ModulusRef<'a>],
    /// The base and the exponent of each term of the first product, then those of the next one.
    /// Bases may have any value and are no wider than the moduli. Exponents are no narrower than
    /// the length of their term.
    pub terms: &'a [[&'a [Limb]; 2]],
    /// The length of the exponents of each term, in bits.
    pub exponent_bits: &'a [u32],
    /// A place for each product, as wide as the moduli.
    pub out: &'a mut [&'o mut [Limb]],
}

/// Powers with one public exponent, and the places for them.
pub struct PublicPowers<'a, 'o> {
    /// One for each power, all equally wide.
    pub moduli: &'a [ModulusRef<'a>],
    /// A base of any value for each modulus, no wider than its modulus.
    pub bases: &'a [&'a [Limb]],
    /// The exponent.
    pub exponent: &'a PublicExponent,
    /// A place for each power, as wide as the moduli.
    pub out: &'a mut [&'o mut [Limb]],
}
