//! One number after the other, in Montgomery arithmetic on `Uint<LIMBS>`: for processors without a vector unit
//! that we have.

use core::{mem, ptr};

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb, Uint};

use super::{Exponent, Product};
use crate::monty::Monty;
use crate::secret::Secret;
use crate::width::{WithLimbs, with_limbs};

/// See [`Numbers::mul_public_power`](super::Numbers::mul_public_power).
pub(super) fn mul_public_power(product: Product<'_>) {
    let Product {
        moduli,
        exponent,
        bases,
        factors,
        out,
        mut times_base,
    } = product;
    let mut start = 0;
    for run in moduli.chunk_by(|a, b| ptr::eq(*a, *b)) {
        let size = limbs(run[0]);
        let range = start * size..(start + run.len()) * size;
        let power = PublicPower {
            modulus: run[0],
            exponent,
            bases: &bases[range.clone()],
            factors: factors.map(|factors| &factors[range.clone()]),
            out: &mut out[range.clone()],
            times_base: times_base.as_mut().map(|out| &mut out[range]),
        };
        with_limbs(size, power);
        start += run.len();
    }
}

fn limbs(modulus: &MontyParams<BoxedUint>) -> usize {
    modulus.modulus().as_ref().as_limbs().len()
}

/// Copies limbs to a number that may have more.
fn load<const LIMBS: usize>(limbs: &[Limb]) -> Uint<LIMBS> {
    let mut number = Uint::ZERO;
    number.as_mut_limbs()[..limbs.len()].copy_from_slice(limbs);
    number
}

fn store<const LIMBS: usize>(number: &Uint<LIMBS>, limbs: &mut [Limb]) {
    limbs.copy_from_slice(&number.as_limbs()[..limbs.len()]);
}

struct PublicPower<'a> {
    modulus: &'a MontyParams<BoxedUint>,
    exponent: Exponent<'a>,
    bases: &'a [Limb],
    factors: Option<&'a [Limb]>,
    out: &'a mut [Limb],
    times_base: Option<&'a mut [Limb]>,
}

impl WithLimbs for PublicPower<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(mut self) {
        let n = Monty::<LIMBS>::widened(self.modulus);
        let size = limbs(self.modulus);
        let [mut base, mut power, mut spare] = [(); 3].map(|()| Secret::new(Uint::ZERO));
        for (i, (number, out)) in self
            .bases
            .chunks_exact(size)
            .zip(self.out.chunks_exact_mut(size))
            .enumerate()
        {
            n.enter(&Secret::new(load(number)), &mut base);
            *power = *base;
            for (is_set, _) in self.exponent.lower_bits() {
                n.mul(&power, &power, &mut spare);
                mem::swap(&mut *power, &mut *spare);
                if is_set {
                    n.mul(&power, &base, &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
            }
            // A product of a Montgomery form with an ordinary number is an ordinary number.
            let factor = match self.factors {
                Some(factors) => load(&factors[i * size..][..size]),
                None => Uint::ONE,
            };
            n.mul(&Secret::new(factor), &power, &mut spare);
            store(&spare, out);
            if let Some(out) = &mut self.times_base {
                n.mul(&spare, &base, &mut power);
                store(&power, &mut out[i * size..][..size]);
            }
        }
    }
}
