//! The factor in row 0 of a table for signed exponents.

use alloc::vec;

use crypto_bigint::{Choice, CtEq, Limb};

use crate::monty::{ModulusRef, parts};
use crate::secret::Secret;
use crate::width::scrubbed;

/// Writes `inverse^(2^squarings) mod modulus` to `out`, or 1 without squarings. Returns whether
/// `base * inverse` is 1.
pub(crate) fn power_of_inverse(
    modulus: ModulusRef<'_>,
    base: &[Limb],
    inverse: &[Limb],
    squarings: Option<u32>,
    out: &mut [Limb],
) -> Choice {
    let mut numbers = Secret::new(vec![Limb::ZERO; 4 * modulus.limbs.len()]);
    let [mut power, mut spare, base_form, one] = parts(&mut numbers);
    scrubbed(|| {
        modulus.enter(base, base_form);
        modulus.enter(inverse, power);
        modulus.enter(&[Limb::ONE], one);
        modulus.mul(base_form, power, spare);
        let is_inverse = spare.ct_eq(one);
        match squarings {
            None => power.copy_from_slice(one),
            Some(squarings) => {
                for _ in 0..squarings {
                    modulus.square(&mut power, &mut spare);
                }
            }
        }
        modulus.mul(&[Limb::ONE], power, out);
        is_inverse
    })
}
