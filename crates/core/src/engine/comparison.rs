//! Powers to compare with expected values, in SIMD lanes.

use crypto_bigint::Limb;

use super::{Moduli, size_of_all};
use crate::public_exponent::PublicExponent;

/// The bits of a mask: see [`Comparison`].
pub const MASK_BITS: u32 = 12;

/// Powers to compare with expected values, modulo the two primes of each modulus if there are any.
/// Numbers may be twice as long as the primes. Everything is secret except the exponent and which
/// primes are the same reference.
pub struct Comparison<'a> {
    /// Each p, then each q; odd and all equally wide. Or none.
    pub primes: Moduli<'a>,
    /// The exponent of all bases.
    pub exponent: &'a PublicExponent,
    /// A number for each pair of primes, of any value.
    pub bases: &'a [Limb],
    /// The expected powers. Modulo primes they may have any value.
    pub expected: &'a [Limb],
    /// Random numbers, one for each prime. A lane computes modulo an odd multiple of its prime,
    /// which the low [`MASK_BITS`] bits determine. This way the base and its power, which others
    /// know, are not reduced by the same secret number every time.
    pub masks: Option<&'a [u16]>,
}

impl Comparison<'_> {
    /// Checks the lengths of the buffers.
    ///
    /// # Panics
    ///
    /// If the primes are too wide or not equally wide, or if a buffer does not have a number or a
    /// mask for each of them.
    pub fn assert_lengths(&self) {
        let count = self.primes.len();
        size_of_all(self.primes);
        assert!(count.is_multiple_of(2));
        assert_eq!(self.bases.len(), self.expected.len());
        assert!(self.bases.len().is_multiple_of((count / 2).max(1)));
        assert_eq!(self.masks.map_or(count, <[u16]>::len), count);
    }
}
