//! Secret moduli with their Montgomery constants.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Limb, U64};

use super::{ModulusRef, power_of_two};
use crate::secret::{Secret, scrubbed};

/// A secret odd modulus with its Montgomery constants, in memory of its own that is wiped.
///
/// crypto-bigint's own Montgomery forms would need `MontyParams::new`, which counts the leading zeros
/// of the modulus with an instruction that is not constant-time on every processor.
/// [`Modulus::new`] does not.
pub struct Modulus {
    limbs: Secret<Vec<Limb>>,
    r2: Secret<Vec<Limb>>,
    /// One number, in the heap because a move would leave a copy on the stack.
    mod_inv: Secret<Vec<U64>>,
}

impl Modulus {
    /// Computes the constants of an odd number above 1, in constant time. It has at least `min_bits`
    /// bits, as is public; knowing more of them saves time.
    ///
    /// # Panics
    ///
    /// If there are no limbs.
    #[must_use]
    pub fn new(limbs: &[Limb], min_bits: u32) -> Self {
        let bits = limbs.len() as u32 * Limb::BITS;
        scrubbed(|| Self {
            limbs: Secret::new(limbs.to_vec()),
            r2: power_of_two(2 * bits, limbs, min_bits),
            mod_inv: Secret::new(vec![U64::from_u64(inverse(low_64_bits(limbs)))]),
        })
    }

    /// The same modulus by reference.
    #[must_use]
    pub fn by_ref(&self) -> ModulusRef<'_> {
        ModulusRef {
            limbs: &self.limbs,
            r2: &self.r2,
            mod_inv: &self.mod_inv[0],
        }
    }
}

impl From<ModulusRef<'_>> for Modulus {
    fn from(modulus: ModulusRef<'_>) -> Self {
        Self {
            limbs: Secret::new(modulus.limbs.to_vec()),
            r2: Secret::new(modulus.r2.to_vec()),
            mod_inv: Secret::new(vec![*modulus.mod_inv]),
        }
    }
}

/// A number modulo `2^64`.
// On some targets a limb has 32 bits.
#[allow(clippy::unnecessary_cast)]
#[must_use]
pub fn low_64_bits(limbs: &[Limb]) -> u64 {
    let positions = (0..u64::BITS).step_by(Limb::BITS as usize);
    let limbs = limbs.iter().zip(positions);
    limbs.fold(0, |bits, (limb, position)| {
        bits | (limb.0 as u64) << position
    })
}

/// `1 / odd` modulo `2^64`. Starts with three correct bits; each step doubles their number.
#[must_use]
pub fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |inverse, _| {
        inverse.wrapping_mul(2u64.wrapping_sub(inverse.wrapping_mul(odd)))
    })
}
