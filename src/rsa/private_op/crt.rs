//! Reduction modulo p and q, and Garner's recombination (RFC 8017, section 5.2.1, step 2.b).
//!
//! Constant-time in every value.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::width::scrubbed;
use crypto_bigint::Limb;

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
/// some number.
pub(super) fn recombine(
    engine: &dyn Engine,
    keys: &[&Crt],
    halves: &[Limb],
    limbs: usize,
) -> Secret<Vec<Limb>> {
    let size = halves.len() / (2 * keys.len()).max(1);
    let mut inverses = Secret::new(vec![Limb::ZERO; halves.len()]);
    let qinvs = both(keys, |crt| crt.qinv.as_limbs(), |crt| crt.qinv.as_limbs());
    for (inverse, qinv) in inverses.chunks_exact_mut(size.max(1)).zip(qinvs) {
        inverse[..qinv.len()].copy_from_slice(qinv);
    }
    // A difference of two products, because m2 may be above p.
    let moduli = both(keys, Crt::p, Crt::p);
    let products = engine.products(&moduli, halves, &inverses);
    let (products_1, products_2) = products.split_at(halves.len() / 2);
    let halves_q = &halves[halves.len() / 2..];

    let mut h = Secret::new(vec![Limb::ZERO; size]);
    let mut combined = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
    scrubbed(|| {
        let places = combined.chunks_exact_mut(limbs.max(1));
        for ((key, i), place) in keys.iter().zip((0..).step_by(size.max(1))).zip(places) {
            let of_item = i..i + size;
            let (a, b) = (&products_1[of_item.clone()], &products_2[of_item.clone()]);
            subtract(a, b, key.p().limbs, &mut h);
            multiply_add(&h, key.q().limbs, &halves_q[of_item], place);
        }
    });
    combined
}

/// `out = a - b mod p`, for a and b below p.
fn subtract(a: &[Limb], b: &[Limb], p: &[Limb], out: &mut [Limb]) {
    let mut borrow = Limb::ZERO;
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        (*out, borrow) = a.borrowing_sub(*b, borrow);
    }
    // A borrow is 0 or all ones. The barrier hides from the compiler that there are two cases.
    let mask = black_box(borrow);
    let mut carry = Limb::ZERO;
    for (out, p) in out.iter_mut().zip(p) {
        (*out, carry) = out.carrying_add(*p & mask, carry);
    }
}

/// `out = addend + a * b`, in as many limbs as `out` has. `a` and `addend` are equally long, and
/// `out` holds zeros.
fn multiply_add(a: &[Limb], b: &[Limb], addend: &[Limb], out: &mut [Limb]) {
    for (out, addend) in out.iter_mut().zip(addend) {
        *out = *addend;
    }
    for (i, b) in b.iter().enumerate().take(out.len()) {
        let mut carry = Limb::ZERO;
        for (out, a) in out[i..].iter_mut().zip(a) {
            (*out, carry) = a.carrying_mul_add(*b, *out, carry);
        }
        // The first row that reaches this limb, which is still 0.
        if let Some(next) = out.get_mut(i + a.len()) {
            *next = carry;
        }
    }
}

/// The values modulo p of all keys, then those modulo q.
pub(super) fn both<'a, T>(
    keys: &[&'a Crt],
    of_p: impl Fn(&'a Crt) -> T,
    of_q: impl Fn(&'a Crt) -> T,
) -> Vec<T> {
    let of_p = keys.iter().map(|key| of_p(key));
    of_p.chain(keys.iter().map(|key| of_q(key))).collect()
}

#[cfg(test)]
mod tests;
