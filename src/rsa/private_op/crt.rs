//! Reduction modulo p and q, and recombination: the steps before and after the two halves of a CRT
//! exponentiation (RFC 8017, section 5.2.1, step 2.b; Garner's recombination).
//!
//! An [`Engine`] computes modulo primes; the rest uses `Uint<LIMBS>`. Constant-time in every value.

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::{Engine, Exponent, limbs};
use batch_modexp_core::monty::Monty;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::{WithLimbs, load, load_limbs, with_limbs};
use crypto_bigint::{Limb, Uint};

use crate::rsa::key::Crt;

/// Computes `values[i] mod p` for all i, then `values[i] mod q` for all i, each as wide as the
/// primes.
///
/// All primes must be equally wide, and all values equally long.
pub(super) fn reduce(engine: &dyn Engine, keys: &[&Crt], values: &[Limb]) -> Secret<Vec<Limb>> {
    let numbers = Secret::new(values.repeat(2));
    engine.remainders(&both(keys, Crt::p, Crt::q), &numbers)
}

/// Computes the numbers below n, of `limbs` limbs each, that are `halves[i]` modulo p and
/// `halves[keys.len() + i]` modulo q: `m2 + q * h` with `h = (m1 - m2) * qinv mod p`.
///
/// The halves must be reduced and as wide as the primes. If one of them is wrong, the result is
/// some number below n.
pub(super) fn recombine(
    engine: &dyn Engine,
    keys: &[&Crt],
    halves: &[Limb],
    limbs: usize,
) -> Secret<Vec<Limb>> {
    let prime_limbs = prime_limbs(keys);
    // A difference of two products, because m2 may be above p.
    let moduli = both(keys, Crt::p, Crt::p);
    let mut inverses = Secret::new(vec![Limb::ZERO; halves.len()]);
    let qinvs = both(keys, |crt| &*crt.qinv, |crt| &*crt.qinv);
    for (inverse, qinv) in inverses.chunks_exact_mut(prime_limbs.max(1)).zip(qinvs) {
        let qinv = qinv.as_limbs();
        inverse[..qinv.len()].copy_from_slice(qinv);
    }
    let products = engine.public_power(&moduli, Exponent::ONE, halves, Some(&inverses));
    let recombination = Recombination {
        keys,
        products: &products,
        halves_q: &halves[halves.len() / 2..],
        limbs,
    };
    with_limbs(prime_limbs, recombination)
}

/// The values modulo p of all keys, then those modulo q.
pub(super) fn both<'a, T>(
    keys: &[&'a Crt],
    of_p: impl Fn(&'a Crt) -> &'a T,
    of_q: impl Fn(&'a Crt) -> &'a T,
) -> Vec<&'a T> {
    let of_p = keys.iter().map(|key| of_p(key));
    of_p.chain(keys.iter().map(|key| of_q(key))).collect()
}

fn prime_limbs(keys: &[&Crt]) -> usize {
    keys.first().map_or(0, |key| limbs(key.p()))
}

struct Recombination<'a> {
    keys: &'a [&'a Crt],
    /// `m1 * qinv mod p` of all items, then `m2 * qinv mod p`.
    products: &'a [Limb],
    halves_q: &'a [Limb],
    limbs: usize,
}

impl WithLimbs for Recombination<'_> {
    type Output = Secret<Vec<Limb>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        let limbs = prime_limbs(self.keys).max(1);
        let mut combined = Secret::new(vec![Limb::ZERO; self.keys.len() * self.limbs]);
        let (products_1, products_2) = self.products.split_at(self.products.len() / 2);
        let mut items = products_1
            .chunks_exact(limbs)
            .zip(products_2.chunks_exact(limbs))
            .zip(self.halves_q.chunks_exact(limbs))
            .zip(combined.chunks_exact_mut(self.limbs));
        for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let p = Monty::<LIMBS>::widened(&run[0].p);
            let q = Secret::new(load::<LIMBS>(run[0].q.modulus().as_ref()));
            for (((product_1, product_2), half_q), place) in items.by_ref().take(run.len()) {
                let [a, b] = [product_1, product_2].map(|limbs| Secret::new(load_limbs(limbs)));
                let [mut h, m2] = [Secret::new(Uint::ZERO), Secret::new(load_limbs(half_q))];
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
