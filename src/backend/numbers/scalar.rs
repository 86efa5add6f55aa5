//! One number after the other, in Montgomery arithmetic on `Uint<LIMBS>`: for processors without a vector unit
//! that we have, and for a few numbers with a modulus of their own.

use alloc::vec::Vec;
use core::{mem, ptr};

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd, Uint};

use super::{Exponent, Moduli};
use crate::monty::Monty;
use crate::secret::{Secret, reveal};
use crate::width::{WithLimbs, with_limbs};

/// See [`Numbers::mul_public_power`](super::Numbers::mul_public_power).
pub(super) fn mul_public_power(
    moduli: Moduli<'_>,
    exponent: Exponent<'_>,
    bases: &[Limb],
    factors: Option<&[Limb]>,
    out: &mut [Limb],
) {
    let mut start = 0;
    for run in moduli.chunk_by(|a, b| ptr::eq(*a, *b)) {
        let size = limbs(run[0]);
        let range = start * size..(start + run.len()) * size;
        let power = PublicPower {
            modulus: run[0],
            exponent,
            bases: &bases[range.clone()],
            factors: factors.map(|factors| &factors[range.clone()]),
            out: &mut out[range],
        };
        with_limbs(size, power);
        start += run.len();
    }
}

/// Inverses of numbers with one modulus.
pub(crate) fn invert(
    modulus: &MontyParams<BoxedUint>,
    values: &[Limb],
    out: &mut [Limb],
) -> Option<()> {
    with_limbs(
        limbs(modulus),
        Invert {
            modulus,
            values,
            out,
        },
    )
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
}

impl WithLimbs for PublicPower<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
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
        }
    }
}

struct Invert<'a> {
    modulus: &'a MontyParams<BoxedUint>,
    values: &'a [Limb],
    out: &'a mut [Limb],
}

impl WithLimbs for Invert<'_> {
    type Output = Option<()>;

    /// Inverts the product of all and divides the others out again.
    ///
    /// A Montgomery product divides by R. So with `x_i = r_i / R` the prefixes, from R on, are
    /// `R * x_1 * .. * x_i`. The plain inverse of the last one is the first suffix, `1 / (R * x_1 * .. * x_k)`; its
    /// Montgomery product with the prefix before it is `1 / (x_k * R) = 1 / r_k`, and with `r_k` the next
    /// suffix. Nothing has to enter or leave Montgomery form on the way.
    fn run<const LIMBS: usize>(self) -> Option<()> {
        let n = Monty::<LIMBS>::widened(self.modulus);
        let size = limbs(self.modulus);
        let [mut product, mut spare] = [(); 2].map(|()| Secret::new(Uint::ZERO));
        n.enter(&Uint::ONE, &mut product);
        let count = self.values.len() / size;
        let mut prefixes = Secret::new(Vec::with_capacity(count));
        for value in self.values.chunks_exact(size) {
            prefixes.push(*product);
            n.mul(&Secret::new(load(value)), &product, &mut spare);
            mem::swap(&mut *product, &mut *spare);
        }

        let mut suffix = plain_inverse(&product, &n)?;
        let values = self.values.chunks_exact(size);
        let outs = self.out.chunks_exact_mut(size);
        for ((value, out), prefix) in values.zip(outs).zip(prefixes.iter()).rev() {
            n.mul(prefix, &suffix, &mut spare);
            store(&spare, out);
            n.mul(&Secret::new(load(value)), &suffix, &mut spare);
            mem::swap(&mut *suffix, &mut *spare);
        }
        Some(())
    }
}

/// `1 / value mod n`, or `None` if there is no inverse, which is no secret. By the constant-time method of
/// Bernstein and Yang ("Fast constant-time gcd computation and modular inversion", 2019), in crypto-bigint.
fn plain_inverse<const LIMBS: usize>(
    value: &Uint<LIMBS>,
    n: &Monty<LIMBS>,
) -> Option<Secret<Uint<LIMBS>>> {
    let modulus = Odd::new(*n.modulus()).expect("an odd modulus");
    let inverse = value.invert_odd_mod(&modulus);
    let exists = reveal(inverse.is_some());
    let inverse = Secret::new(inverse.to_inner_unchecked());
    exists.then_some(inverse)
}
