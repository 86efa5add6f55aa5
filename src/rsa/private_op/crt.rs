//! Into residues modulo p and q, and back: the parts of a CRT exponentiation around its two halves
//! (RFC 8017, section 5.2.1, step 2.b; Garner's recombination).
//!
//! All of it in Montgomery arithmetic on `Uint<LIMBS>`: constant-time in every value, and nothing secret
//! in heap memory but the results.

use alloc::vec;
use alloc::vec::Vec;
use core::{iter, ptr};

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Choice, CtEq, Limb, Uint};

use super::group::{Values, crt};
use crate::monty::Monty;
use crate::rsa::KeyHandle;
use crate::rsa::key::Crt;
use crate::secret::Secret;
use crate::width::{WithLimbs, load, store, with_limbs};

/// `values[i] mod keys[i].p` for all i, then `values[i] mod keys[i].q` for all i, each as wide as its
/// prime.
///
/// All primes must be equally wide; `keys` must not be empty. The values are in a flat buffer, `size` limbs each.
pub(super) fn split(keys: &[&Crt], values: &[Limb], size: usize) -> Values {
    with_limbs(prime_limbs(keys), Split { keys, values, size })
}

/// The numbers below n, in a flat buffer with `size` limbs each, that are `powers_p[i]` modulo p and `powers_q[i]`
/// modulo q.
///
/// Both powers must be reduced and as wide as the primes. If one of them is wrong, the result is some
/// number below n.
pub(super) fn combine(
    keys: &[&Crt],
    powers_p: &[BoxedUint],
    powers_q: &[BoxedUint],
    size: usize,
) -> Secret<Vec<Limb>> {
    with_limbs(
        prime_limbs(keys),
        Combine {
            keys,
            powers_p,
            powers_q,
            size,
        },
    )
}

fn prime_limbs(keys: &[&Crt]) -> usize {
    keys[0].p.modulus().as_ref().as_limbs().len()
}

/// For each key whether n is the product of p and q. They are secret; whether it is need not be.
pub(super) fn are_factors(keys: &[&KeyHandle]) -> Vec<Choice> {
    match keys.first() {
        Some(first) => with_limbs(prime_limbs(&[crt(first)]), AreFactors { keys }),
        None => Vec::new(),
    }
}

struct AreFactors<'a> {
    keys: &'a [&'a KeyHandle],
}

impl WithLimbs for AreFactors<'_> {
    type Output = Vec<Choice>;

    fn run<const LIMBS: usize>(self) -> Vec<Choice> {
        let mut verdicts = Vec::with_capacity(self.keys.len());
        for run in self.keys.chunk_by(|a, b| ptr::eq(a.parts(), b.parts())) {
            let (key, n) = (crt(&run[0]), run[0].parts().n.modulus().as_ref());
            let p: Secret<Uint<LIMBS>> = Secret::new(load(key.p().modulus().as_ref()));
            let q: Secret<Uint<LIMBS>> = Secret::new(load(key.q().modulus().as_ref()));
            let (low, high) = p.widening_mul(&q);
            let n = n.as_limbs().iter().copied().chain(iter::repeat(Limb::ZERO));
            let product = low.as_limbs().iter().chain(high.as_limbs());
            let difference = product
                .zip(n)
                .fold(Limb::ZERO, |bits, (a, b)| bits | (*a ^ b));
            verdicts.extend(run.iter().map(|_| difference.ct_eq(&Limb::ZERO)));
        }
        verdicts
    }
}

struct Split<'a> {
    keys: &'a [&'a Crt],
    values: &'a [Limb],
    size: usize,
}

impl WithLimbs for Split<'_> {
    type Output = Values;

    fn run<const LIMBS: usize>(self) -> Values {
        let limbs = prime_limbs(self.keys);
        let mut residues = Secret::new(Vec::with_capacity(2 * self.keys.len()));
        for prime in [Crt::p as fn(&Crt) -> &MontyParams<BoxedUint>, Crt::q] {
            let mut values = self.values.chunks_exact(self.size);
            for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
                let prime = Monty::<LIMBS>::widened(prime(run[0]));
                let mut residue = Secret::new(Uint::ZERO);
                for value in values.by_ref().take(run.len()) {
                    prime.reduce(value, &mut residue);
                    let mut boxed = BoxedUint::zero_with_precision(limbs as u32 * Limb::BITS);
                    store(&residue, limbs, &mut boxed);
                    residues.push(boxed);
                }
            }
        }
        residues
    }
}

struct Combine<'a> {
    keys: &'a [&'a Crt],
    powers_p: &'a [BoxedUint],
    powers_q: &'a [BoxedUint],
    size: usize,
}

impl WithLimbs for Combine<'_> {
    type Output = Secret<Vec<Limb>>;

    fn run<const LIMBS: usize>(self) -> Self::Output {
        let mut combined = Secret::new(vec![Limb::ZERO; self.keys.len() * self.size]);
        let mut places = combined.chunks_exact_mut(self.size);
        let mut powers = self.powers_p.iter().zip(self.powers_q);
        for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let p = Monty::<LIMBS>::widened(&run[0].p);
            let q = Secret::new(load(run[0].q.modulus().as_ref()));
            let qinv = Secret::new(load(&run[0].qinv));
            let lanes = powers.by_ref().zip(places.by_ref());
            for ((power_p, power_q), place) in lanes.take(run.len()) {
                let (m1, m2) = (Secret::new(load(power_p)), Secret::new(load(power_q)));
                let (low, high) = garner(&m1, &m2, &p, &q, &qinv);
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

/// `m2 + q * ((m1 - m2) * qinv mod p)`, low and high half. The sum is below p * q.
fn garner<const LIMBS: usize>(
    m1: &Uint<LIMBS>,
    m2: &Uint<LIMBS>,
    p: &Monty<LIMBS>,
    q: &Uint<LIMBS>,
    qinv: &Uint<LIMBS>,
) -> (Uint<LIMBS>, Uint<LIMBS>) {
    let [mut a, mut b, mut h] = [(); 3].map(|()| Secret::new(Uint::ZERO));
    // Entering Montgomery form reduces m2, which may be above p, modulo p; the product with qinv, which is in
    // ordinary form, leaves it.
    p.enter(m1, &mut a);
    p.enter(m2, &mut b);
    p.sub(&a, &b, &mut h);
    p.mul(&h, qinv, &mut a);
    let (low, high) = a.widening_mul(q);
    let (low, carry) = low.carrying_add(m2, Limb::ZERO);
    let (high, _) = high.carrying_add(&Uint::ZERO, carry);
    (low, high)
}

#[cfg(test)]
mod tests;
