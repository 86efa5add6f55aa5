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

    /// How many products of powers a thread computes at the same time.
    fn lanes(&self) -> usize {
        1
    }

    /// How many threads to divide a product of powers among, if it takes `products` products of
    /// numbers of `bits` bits, and squarings on each thread.
    fn threads_for(&self, _bits: u32, _products: usize) -> usize {
        1
    }

    /// From how many powers on buckets take less time than shared squarings, for a product modulo a
    /// number of `bits` bits. See [`MultiExpVartime`](crate::MultiExpVartime).
    fn fewest_for_buckets(&self, bits: u32) -> usize;

    /// Computes products of powers.
    fn multi_powers(&self, powers: MultiPowers<'_, '_>);

    /// Computes powers with a public exponent.
    fn powers_vartime(&self, powers: PublicPowers<'_, '_>);

    /// Writes numbers, of any value and no wider than the modulus, to `out` in the Montgomery form of
    /// this engine. There is a place of [`TableForm::limbs`] limbs for each.
    fn to_montgomery(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]);

    /// Multiplies pairs of such numbers. Products are in the same form.
    fn indexed_products(&self, products: IndexedProducts<'_>);

    /// Writes such numbers to `out` in ordinary form, as wide as the modulus and below it.
    fn retrieve(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]);
}

/// A backend with such an engine.
pub trait HasPowerEngine {
    /// The engine.
    fn power_engine(&self) -> &dyn PowerEngine;
}

/// Implements the trait for pointers to backends.
macro_rules! by_pointer {
    ($($pointer:ty),*) => {
        $(
            impl<B: HasPowerEngine + ?Sized> HasPowerEngine for $pointer {
                fn power_engine(&self) -> &dyn PowerEngine {
                    (**self).power_engine()
                }
            }
        )*
    };
}
by_pointer!(&B, alloc::sync::Arc<B>, alloc::boxed::Box<B>);

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

/// Products of pairs of numbers in the Montgomery form of an engine, and the places for them. A
/// number has [`TableForm::limbs`] limbs of the engine.
pub struct IndexedProducts<'a> {
    /// The modulus of all products.
    pub modulus: ModulusRef<'a>,
    /// Two lists of numbers that [`PowerEngine::to_montgomery`] and [`PowerEngine::indexed_products`] made.
    pub numbers: [&'a [u64]; 2],
    /// The factors: indices of numbers, in the first list and then in the second one. Public.
    pub pairs: &'a [[u32; 2]],
    /// A place for each product.
    pub out: &'a mut [u64],
}

impl IndexedProducts<'_> {
    /// The number `index`, of `limbs` limbs.
    #[must_use]
    pub fn number(&self, index: u32, limbs: usize) -> &[u64] {
        let [first, second] = self.numbers;
        let start = index as usize * limbs;
        match start.checked_sub(first.len()) {
            None => &first[start..][..limbs],
            Some(start) => &second[start..][..limbs],
        }
    }
}
