//! Requests on flat numbers, one number after the other.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, Limb};

use crate::Serial;
use crate::engine::{Comparison, Engine, Exponent, Moduli, SecretPowers};
use crate::monty::parts;
use crate::secret::Secret;
use crate::width::scrubbed;

impl Engine for Serial {
    fn name(&self) -> &'static str {
        "serial"
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let size = powers.limbs().max(1);
        let bases = powers.bases.chunks_exact(size);
        let instances = bases.zip(powers.exponents).zip(powers.moduli);
        scrubbed(|| {
            for (((base, exponent), modulus), out) in
                instances.zip(powers.out.chunks_exact_mut(size))
            {
                modulus.pow(base, exponent, powers.exponent_bits, out);
            }
        });
    }

    fn run_products(&self, moduli: Moduli<'_>, [a, b]: [&[Limb]; 2], out: &mut [Limb]) {
        let size = size(moduli);
        let mut entered = Secret::new(vec![Limb::ZERO; size]);
        let factors = a.chunks_exact(size).zip(b.chunks_exact(size));
        let places = out.chunks_exact_mut(size);
        scrubbed(|| {
            for ((modulus, (a, b)), out) in moduli.iter().zip(factors).zip(places) {
                // The product of a Montgomery form and an ordinary number is an ordinary number.
                modulus.enter(a, &mut entered);
                modulus.mul(b, &entered, out);
            }
        });
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        let size = size(moduli);
        let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
        let [entered, mut power, mut spare] = parts(&mut numbers);
        let places = out.chunks_exact_mut(size);
        scrubbed(|| {
            for ((modulus, base), out) in moduli.iter().zip(bases.chunks_exact(size)).zip(places) {
                modulus.enter(base, entered);
                power.copy_from_slice(entered);
                for (is_set, _) in exponent.lower_bits() {
                    modulus.square(&mut power, &mut spare);
                    if is_set {
                        modulus.multiply(&mut power, entered, &mut spare);
                    }
                }
                modulus.mul(&[Limb::ONE], power, out);
            }
        });
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        let size = numbers.len() / moduli.len().max(1);
        scrubbed(|| {
            let mut rest = out;
            for (modulus, number) in moduli.iter().zip(numbers.chunks_exact(size.max(1))) {
                let (out, others) = rest.split_at_mut(modulus.limbs.len());
                modulus.reduce(number, out);
                rest = others;
            }
        });
    }

    fn run_comparison(&self, _: &Comparison<'_>) -> Option<Vec<Choice>> {
        None
    }
}

/// The number of limbs of equally wide moduli, or 1 without any.
fn size(moduli: Moduli<'_>) -> usize {
    moduli.first().map_or(1, |modulus| modulus.limbs.len())
}
