//! The check of every result, above all backends: the only way from a candidate to a signature.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Choice, CtEq, Limb};

use crate::backend::numbers::{Moduli, Numbers};
use crate::secret::{Secret, reveal};

/// For each candidate whether it is a number below its modulus whose power of e is the representative of its
/// lane: the one that the source made, not a copy that a backend may have touched. The power is computed on the
/// calling thread, not by the backend.
pub(super) fn verdicts(
    numbers: Numbers,
    moduli: Moduli<'_>,
    e: &BoxedUint,
    representatives: &[Limb],
    candidates: &[Limb],
) -> Vec<bool> {
    let limbs = candidates.len() / moduli.len().max(1);
    let mut powers = Secret::new(vec![Limb::ZERO; candidates.len()]);
    numbers.mul_public_power(moduli, e, candidates, None, &mut powers);
    let lanes = powers
        .chunks_exact(limbs)
        .zip(representatives.chunks_exact(limbs))
        .zip(candidates.chunks_exact(limbs));
    lanes
        .zip(moduli)
        .map(|(((power, representative), candidate), modulus)| {
            let is_equal = ct_eq(power, representative);
            let is_reduced = is_below(candidate, modulus.modulus().as_ref().as_limbs());
            reveal(is_equal & is_reduced)
        })
        .collect()
}

/// Whether two numbers of as many limbs are equal, in constant time.
fn ct_eq(a: &[Limb], b: &[Limb]) -> Choice {
    let pairs = a.iter().zip(b);
    let difference = pairs.fold(Limb::ZERO, |bits, (a, b)| bits | (*a ^ *b));
    difference.ct_eq(&Limb::ZERO)
}

/// Whether `a` is below `b`, of as many limbs, in constant time.
pub(super) fn is_below(a: &[Limb], b: &[Limb]) -> Choice {
    let pairs = a.iter().zip(b);
    // A borrow is 0 or all ones.
    let borrow = pairs.fold(Limb::ZERO, |borrow, (a, b)| a.borrowing_sub(*b, borrow).1);
    borrow.ct_eq(&Limb::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons() {
        let numbers = [[0, 0], [1, 0], [7, 0], [0, 1], [7, 1], [7, 2]].map(|limbs| limbs.map(Limb));
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(ct_eq(a, b).to_bool(), i == j);
                assert_eq!(is_below(a, b).to_bool(), i < j);
            }
        }
    }
}
