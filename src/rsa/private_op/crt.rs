//! Into residues modulo p and q, and back: the parts of a CRT exponentiation around its two halves
//! (RFC 8017, section 5.2.1, step 2.b; Garner's recombination).
//!
//! An [`Engine`] computes what is modulo a prime; the rest is on `Uint<LIMBS>`. All of it is constant-time in every value.

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use crypto_bigint::{BoxedUint, Limb, Uint};

use super::group::{Values, zeros};
use crate::engine::Engine;
use crate::monty::Monty;
use crate::requests::{Exponent, Product, Reduction};
use crate::rsa::key::Crt;
use crate::secret::Secret;
use crate::width::{WithLimbs, load, load_limbs, with_limbs};

/// `values[i] mod keys[i].p` for all i, then `values[i] mod keys[i].q` for all i, each as wide as its
/// prime.
///
/// All primes must be equally wide; `keys` must not be empty. The values are in a flat buffer, and equally long.
pub(super) fn split(engine: &dyn Engine, keys: &[&Crt], values: &[Limb]) -> Values {
    let limbs = prime_limbs(keys);
    let moduli = keys.iter().map(|key| key.p());
    let moduli: Vec<_> = moduli.chain(keys.iter().map(|key| key.q())).collect();
    let numbers = Secret::new(values.repeat(2));
    let mut remainders = Secret::new(vec![Limb::ZERO; moduli.len() * limbs]);
    engine.reduce(Reduction {
        moduli: &moduli,
        numbers: &numbers,
        out: &mut remainders,
    });
    let mut residues = zeros(moduli.len(), limbs as u32 * Limb::BITS);
    for (residue, limbs) in residues.iter_mut().zip(remainders.chunks_exact(limbs)) {
        residue.as_mut_limbs().copy_from_slice(limbs);
    }
    residues
}

/// The numbers below n, in a flat buffer with `size` limbs each, that are `powers_p[i]` modulo p and `powers_q[i]`
/// modulo q: `m2 + q * h` with `h = (m1 - m2) * qinv mod p`.
///
/// Both powers must be reduced and as wide as the primes. If one of them is wrong, the result is some
/// number below n.
pub(super) fn combine(
    engine: &dyn Engine,
    keys: &[&Crt],
    powers_p: &[BoxedUint],
    powers_q: &[BoxedUint],
    size: usize,
) -> Secret<Vec<Limb>> {
    let limbs = prime_limbs(keys);
    // The difference of two products, since m2 may be above p.
    let moduli: Vec<_> = keys.iter().chain(keys).map(|key| key.p()).collect();
    let powers = flat(powers_p.iter().chain(powers_q), moduli.len(), limbs);
    let inverses = keys.iter().chain(keys).map(|key| &*key.qinv);
    let inverses = flat(inverses, moduli.len(), limbs);
    let mut products = Secret::new(vec![Limb::ZERO; powers.len()]);
    engine.mul_public_power(Product {
        moduli: &moduli,
        exponent: Exponent::ONE,
        bases: &powers,
        factors: Some(&inverses),
        out: &mut products,
        times_base: None,
    });
    let recombination = Recombination {
        keys,
        products: &products,
        powers_q,
        size,
    };
    with_limbs(limbs, recombination)
}

/// So many numbers in a flat buffer with `limbs` limbs each.
fn flat<'a>(
    numbers: impl Iterator<Item = &'a BoxedUint>,
    count: usize,
    limbs: usize,
) -> Secret<Vec<Limb>> {
    let mut flat = Secret::new(vec![Limb::ZERO; count * limbs]);
    for (place, number) in flat.chunks_exact_mut(limbs).zip(numbers) {
        let number = number.as_limbs();
        place[..number.len()].copy_from_slice(number);
    }
    flat
}

fn prime_limbs(keys: &[&Crt]) -> usize {
    keys[0].p.modulus().as_ref().as_limbs().len()
}

struct Recombination<'a> {
    keys: &'a [&'a Crt],
    /// `m1 * qinv mod p` of all lanes, then `m2 * qinv mod p`.
    products: &'a [Limb],
    powers_q: &'a [BoxedUint],
    size: usize,
}

impl WithLimbs for Recombination<'_> {
    type Output = Secret<Vec<Limb>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        let limbs = prime_limbs(self.keys);
        let mut combined = Secret::new(vec![Limb::ZERO; self.keys.len() * self.size]);
        let (products_1, products_2) = self.products.split_at(self.keys.len() * limbs);
        let mut lanes = products_1
            .chunks_exact(limbs)
            .zip(products_2.chunks_exact(limbs))
            .zip(self.powers_q)
            .zip(combined.chunks_exact_mut(self.size));
        for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let p = Monty::<LIMBS>::widened(&run[0].p);
            let q = Secret::new(load::<LIMBS>(run[0].q.modulus().as_ref()));
            for (((product_1, product_2), power_q), place) in lanes.by_ref().take(run.len()) {
                let [a, b] = [product_1, product_2].map(|limbs| Secret::new(load_limbs(limbs)));
                let [mut h, m2] = [Secret::new(Uint::ZERO), Secret::new(load(power_q))];
                p.sub(&a, &b, &mut h);
                let (low, high) = h.widening_mul(&q);
                let (low, carry) = low.carrying_add(&m2, Limb::ZERO);
                let (high, _) = high.carrying_add(&Uint::ZERO, carry);
                let (low, high) = (Secret::new(low), Secret::new(high));
                let limbs = low.as_limbs().iter().chain(high.as_limbs());
                place
                    .iter_mut()
                    .zip(limbs)
                    .for_each(|(to, from)| *to = *from);
            }
        }
        combined
    }
}

#[cfg(test)]
mod tests;
