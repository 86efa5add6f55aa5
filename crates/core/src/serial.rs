//! The portable reference backend: one instance after the other.

mod powers;

use alloc::vec;

use crypto_bigint::{Limb, Unsigned};

use crate::batch::batch_mod_exp;
use crate::engine::{Engine, Moduli, SecretPowers, size_of_all};
use crate::public_exponent::PublicExponent;
use crate::secret::{Secret, scrubbed};
use crate::{BatchModExp, Error, ModExp};

/// Computes a batch on the calling thread, one instance after the other, on crypto-bigint's limbs.
///
/// The method is constant-time fixed-window exponentiation (almost Montgomery multiplication,
/// windows of up to 4 bits).
///
/// Works on every target and without `std`. Serves moduli of up to 16,384 bits. Wider ones fail
/// with [`Error::ModulusWidth`]. It does not use crypto-bigint's `BoxedUint` arithmetic, which
/// leaves copies of secrets in freed heap memory. Each call overwrites the stack that it used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl<U: Unsigned> BatchModExp<U> for Serial {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self, batch, exponent_bits, out)
    }
}

impl Engine for Serial {
    fn name(&self) -> &'static str {
        "serial"
    }

    fn trial_division_bound(&self) -> u32 {
        1 << 16
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let size = size_of_all(powers.moduli);
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
        let size = size_of_all(moduli);
        let mut entered = Secret::new(vec![Limb::ZERO; size]);
        let factors = a.chunks_exact(size).zip(b.chunks_exact(size));
        let places = out.chunks_exact_mut(size);
        scrubbed(|| {
            for ((modulus, (a, b)), out) in moduli.iter().zip(factors).zip(places) {
                // The product of a Montgomery form and an ordinary number is an ordinary number.
                modulus.to_montgomery(a, &mut entered);
                modulus.mul(b, &entered, out);
            }
        });
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        let size = size_of_all(moduli);
        let len = size * (2 + exponent.chain().odd_powers);
        let mut scratch = Secret::new(vec![Limb::ZERO; len]);
        let instances = moduli.iter().zip(bases.chunks_exact(size));
        scrubbed(|| {
            for ((modulus, base), out) in instances.zip(out.chunks_exact_mut(size)) {
                modulus.public_pow(base, exponent, &mut scratch, out);
            }
        });
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        let size = numbers.len() / moduli.len().max(1);
        let instances = moduli.iter().zip(numbers.chunks_exact(size.max(1)));
        let places = out.chunks_exact_mut(size_of_all(moduli));
        scrubbed(|| {
            for ((modulus, number), out) in instances.zip(places) {
                modulus.remainder(number, out);
            }
        });
    }
}
