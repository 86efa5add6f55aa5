//! Into residues modulo p and q, and back: the parts of a CRT exponentiation around its two halves
//! (RFC 8017, section 5.2.1, step 2.b; Garner's recombination).
//!
//! All of it in Montgomery arithmetic on `Uint<LIMBS>`: constant-time in every value, and nothing secret
//! in heap memory but the results.

use alloc::vec::Vec;
use core::ptr;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Limb, Uint};

use super::group::Values;
use crate::rsa::key::Crt;
use crate::secret::Secret;
use crate::width::{WithLimbs, fixed_params, load, store, with_limbs};

/// `values[i] mod keys[i].p` for all i, then `values[i] mod keys[i].q` for all i, each as wide as its
/// prime.
///
/// All primes must be equally wide; `keys` must not be empty.
pub(super) fn split(keys: &[&Crt], values: &[BoxedUint]) -> Values {
    with_limbs(prime_limbs(keys), Split { keys, values })
}

/// The numbers below n, `n_width` bits wide, that are `powers_p[i]` modulo p and `powers_q[i]` modulo q.
///
/// Both powers must be reduced and as wide as the primes. If one of them is wrong, the result is some
/// number below n.
pub(super) fn combine(
    keys: &[&Crt],
    powers_p: &[BoxedUint],
    powers_q: &[BoxedUint],
    n_width: u32,
) -> Values {
    with_limbs(
        prime_limbs(keys),
        Combine {
            keys,
            powers_p,
            powers_q,
            n_width,
        },
    )
}

fn prime_limbs(keys: &[&Crt]) -> usize {
    keys[0].p.modulus().as_ref().as_limbs().len()
}

struct Split<'a> {
    keys: &'a [&'a Crt],
    values: &'a [BoxedUint],
}

impl WithLimbs for Split<'_> {
    type Output = Values;

    fn run<const LIMBS: usize>(self) -> Values {
        let limbs = prime_limbs(self.keys);
        let mut residues = Secret::new(Vec::with_capacity(2 * self.values.len()));
        for prime in [Crt::p as fn(&Crt) -> &MontyParams<BoxedUint>, Crt::q] {
            let mut values = self.values.iter();
            for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
                let params = Secret::new(fixed_params::<LIMBS>(prime(run[0])));
                for value in values.by_ref().take(run.len()) {
                    let residue = Secret::new(reduce(value.as_limbs(), &params));
                    let mut boxed = BoxedUint::zero_with_precision(limbs as u32 * Limb::BITS);
                    store(&residue, limbs, &mut boxed);
                    residues.push(boxed);
                }
            }
        }
        residues
    }
}

/// `value mod p` by Horner's rule over digits of `LIMBS` limbs.
fn reduce<const LIMBS: usize>(value: &[Limb], p: &FixedMontyParams<LIMBS>) -> Uint<LIMBS> {
    // R^2 mod p is R in Montgomery form.
    let radix = Secret::new(FixedMontyForm::from_montgomery(*p.r2(), p));
    let mut sum = Secret::new(FixedMontyForm::zero(p));
    for chunk in value.chunks(LIMBS).rev() {
        let mut digit = Secret::new(Uint::ZERO);
        digit.as_mut_limbs()[..chunk.len()].copy_from_slice(chunk);
        *sum = sum.mul(&radix).add(&FixedMontyForm::new(&digit, p));
    }
    sum.retrieve()
}

struct Combine<'a> {
    keys: &'a [&'a Crt],
    powers_p: &'a [BoxedUint],
    powers_q: &'a [BoxedUint],
    n_width: u32,
}

impl WithLimbs for Combine<'_> {
    type Output = Values;

    fn run<const LIMBS: usize>(self) -> Values {
        let mut combined = Secret::new(Vec::with_capacity(self.keys.len()));
        let mut powers = self.powers_p.iter().zip(self.powers_q);
        for run in self.keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let p = Secret::new(fixed_params::<LIMBS>(&run[0].p));
            let q = Secret::new(load::<LIMBS>(run[0].q.modulus().as_ref()));
            let qinv = Secret::new(FixedMontyForm::new(&load(&run[0].qinv), &p));
            for (power_p, power_q) in powers.by_ref().take(run.len()) {
                let (m1, m2) = (Secret::new(load(power_p)), Secret::new(load(power_q)));
                let (low, high) = garner(&m1, &m2, &p, &q, &qinv);
                let (low, high) = (Secret::new(low), Secret::new(high));
                let mut boxed = BoxedUint::zero_with_precision(self.n_width);
                let limbs = low.as_limbs().iter().chain(high.as_limbs());
                boxed
                    .as_mut_limbs()
                    .iter_mut()
                    .zip(limbs)
                    .for_each(|(to, from)| *to = *from);
                combined.push(boxed);
            }
        }
        combined
    }
}

/// `m2 + q * ((m1 - m2) * qinv mod p)`, low and high half. The sum is below p * q.
fn garner<const LIMBS: usize>(
    m1: &Uint<LIMBS>,
    m2: &Uint<LIMBS>,
    p: &FixedMontyParams<LIMBS>,
    q: &Uint<LIMBS>,
    qinv: &FixedMontyForm<LIMBS>,
) -> (Uint<LIMBS>, Uint<LIMBS>) {
    // Entering Montgomery form reduces m2, which may be above p, modulo p.
    let difference = Secret::new(FixedMontyForm::new(m1, p).sub(&FixedMontyForm::new(m2, p)));
    let h = Secret::new(difference.mul(qinv).retrieve());
    let (low, high) = h.widening_mul(q);
    let (low, carry) = low.carrying_add(m2, Limb::ZERO);
    let (high, _) = high.carrying_add(&Uint::ZERO, carry);
    (low, high)
}
