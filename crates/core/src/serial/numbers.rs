//! Requests on flat numbers, one number after the other.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, Limb};

use crate::Serial;
use crate::engine::{Comparison, Engine, Moduli, Product, SecretPowers};
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

    fn run_product(&self, product: Product<'_>) {
        scrubbed(|| mul_public_power(product));
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

fn mul_public_power(product: Product<'_>) {
    let Product {
        moduli,
        exponent,
        bases,
        factors,
        out,
        mut times_base,
    } = product;
    let size = moduli.first().map_or(1, |modulus| modulus.limbs.len());
    let mut numbers = Secret::new(vec![Limb::ZERO; 3 * size]);
    let [base, mut power, mut spare] = parts(&mut numbers);
    for (i, (n, out)) in moduli.iter().zip(out.chunks_exact_mut(size)).enumerate() {
        let at = i * size..(i + 1) * size;
        n.enter(&bases[at.clone()], base);
        power.copy_from_slice(base);
        for (is_set, _) in exponent.lower_bits() {
            n.square(&mut power, &mut spare);
            if is_set {
                n.multiply(&mut power, base, &mut spare);
            }
        }
        // A product of a Montgomery form and an ordinary number is an ordinary number.
        match factors {
            Some(factors) => n.mul(&factors[at.clone()], power, out),
            None => n.mul(&[Limb::ONE], power, out),
        }
        if let Some(times_base) = &mut times_base {
            n.mul(out, base, &mut times_base[at]);
        }
    }
}
