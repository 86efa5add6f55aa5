//! Requests on flat numbers, one number after the other, in Montgomery arithmetic on `Uint<LIMBS>`.

use alloc::vec::Vec;
use core::slice::{ChunksExact, ChunksExactMut};
use core::{mem, ptr};

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Choice, Limb, Uint};

use crate::Serial;
use crate::engine::{Comparison, Engine, Exponent, Moduli, Product, SecretPowers, limbs};
use crate::monty::Monty;
use crate::secret::Secret;
use crate::width::{WithLimbs, load_limbs, with_limbs};

impl Engine for Serial {
    fn name(&self) -> &'static str {
        "serial"
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let size = powers.limbs();
        with_limbs(size, powers);
    }

    fn run_product(&self, product: Product<'_>) {
        mul_public_power(product);
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        remainders(moduli, numbers, out);
    }

    fn run_comparison(&self, _: &Comparison<'_>) -> Option<Vec<Choice>> {
        None
    }
}

fn mul_public_power(product: Product<'_>) {
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

fn remainders(moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
    let size = numbers.len() / moduli.len().max(1);
    let mut start = 0;
    for run in moduli.chunk_by(|a, b| ptr::eq(*a, *b)) {
        let (modulus, half, end) = (run[0], limbs(run[0]), start + run.len());
        let remainders = Remainders {
            modulus,
            numbers: numbers[start * size..end * size].chunks_exact(size),
            out: out[start * half..end * half].chunks_exact_mut(half),
        };
        with_limbs(half, remainders);
        start = end;
    }
}

fn store<const LIMBS: usize>(number: &Uint<LIMBS>, limbs: &mut [Limb]) {
    limbs.copy_from_slice(&number.as_limbs()[..limbs.len()]);
}

impl WithLimbs for SecretPowers<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let size = self.limbs();
        let mut bases = self.bases.chunks_exact(size.max(1));
        let mut out = self.out.chunks_exact_mut(size.max(1));
        let mut exponents = self.exponents.iter();
        let mut power = Secret::new(Uint::ZERO);
        for run in self.moduli.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let modulus = Monty::<LIMBS>::widened(run[0]);
            let instances = bases.by_ref().zip(&mut exponents).zip(&mut out);
            for ((base, exponent), out) in instances.take(run.len()) {
                let base = Secret::new(load_limbs(base));
                modulus.pow(&base, exponent.as_limbs(), self.exponent_bits, &mut power);
                store(&power, out);
            }
        }
    }
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
            n.enter(&Secret::new(load_limbs(number)), &mut base);
            *power = *base;
            for (is_set, _) in self.exponent.lower_bits() {
                n.mul(&power, &power, &mut spare);
                mem::swap(&mut *power, &mut *spare);
                if is_set {
                    n.mul(&power, &base, &mut spare);
                    mem::swap(&mut *power, &mut *spare);
                }
            }
            // A product of a Montgomery form and an ordinary number is an ordinary number.
            let factor = match self.factors {
                Some(factors) => load_limbs(&factors[i * size..][..size]),
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

struct Remainders<'a> {
    modulus: &'a MontyParams<BoxedUint>,
    numbers: ChunksExact<'a, Limb>,
    out: ChunksExactMut<'a, Limb>,
}

impl WithLimbs for Remainders<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let modulus = Monty::<LIMBS>::widened(self.modulus);
        let mut remainder = Secret::new(Uint::ZERO);
        for (number, out) in self.numbers.zip(self.out) {
            modulus.reduce(number, &mut remainder);
            store(&remainder, out);
        }
    }
}
