//! The factor in row 0 of a table for signed exponents.

use core::mem;

use crypto_bigint::{Choice, CtEq, Limb, Uint};

use crate::modulus::ModulusRef;
use crate::secret::Secret;
use crate::width::{WithLimbs, load_limbs, with_limbs};

/// Writes `inverse^(2^squarings) mod modulus` to `out`, or 1 without squarings. Returns whether
/// `base * inverse` is 1.
pub(crate) fn power_of_inverse(
    modulus: ModulusRef<'_>,
    base: &[Limb],
    inverse: &[Limb],
    squarings: Option<u32>,
    out: &mut [Limb],
) -> Choice {
    let power = PowerOfInverse {
        modulus,
        base,
        inverse,
        squarings,
        out,
    };
    with_limbs(modulus.limbs.len(), power)
}

struct PowerOfInverse<'a> {
    modulus: ModulusRef<'a>,
    base: &'a [Limb],
    inverse: &'a [Limb],
    squarings: Option<u32>,
    out: &'a mut [Limb],
}

impl WithLimbs for PowerOfInverse<'_> {
    type Output = Choice;

    fn run<const LIMBS: usize>(self) -> Choice {
        let modulus = self.modulus.monty::<LIMBS>();
        let [mut base, mut power, mut spare, mut one] =
            [(); 4].map(|()| Secret::new(Uint::<LIMBS>::ZERO));
        modulus.enter(&Secret::new(load_limbs(self.base)), &mut base);
        modulus.enter(&Secret::new(load_limbs(self.inverse)), &mut power);
        modulus.enter(&Uint::ONE, &mut one);
        modulus.mul(&base, &power, &mut spare);
        let is_inverse = spare.ct_eq(&one);
        match self.squarings {
            None => *power = *one,
            Some(squarings) => {
                for _ in 0..squarings {
                    modulus.mul(&power, &power, &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
            }
        }
        modulus.mul(&power, &Uint::ONE, &mut spare);
        self.out
            .copy_from_slice(&spare.as_limbs()[..self.out.len()]);
        is_inverse
    }
}
