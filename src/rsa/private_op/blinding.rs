//! Base blinding (Chaum, 1982; Kocher, 1996): `(m * r^e)^d * r^-1 = m^d` for a fresh random r.
//!
//! Costs one exponentiation by e for each lane, which the caller does on its backend, and one inversion for each run
//! of lanes with the same key, shared by Montgomery's trick (Montgomery, 1987, section 10.3.1).

use alloc::vec::Vec;
use core::mem;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, CtLt, Odd, Uint};
use rand_core::TryCryptoRng;

use super::group::{Values, modulus, runs};
use super::op::PrivateOp;
use crate::Error;
use crate::monty::Monty;
use crate::rsa::KeyHandle;
use crate::rsa::octets::os2ip;
use crate::secret::{Secret, reveal};
use crate::width::{WithLimbs, load, store, with_limbs};

/// A random number from 1 to n - 1, of the n of `key`, drawn into buffers that are wiped.
///
/// By rejection sampling among the numbers that are as long as n, at least half of which are below it. How many
/// candidates were rejected says nothing about the one that was not, and is public.
///
/// Fails with [`Error::Rng`] if the generator fails, or if none of 128 candidates will do: then it is stuck.
pub(super) fn draw<R: TryCryptoRng + ?Sized>(
    key: &KeyHandle,
    rng: &mut R,
) -> Result<Secret<BoxedUint>, Error> {
    const ATTEMPTS: u32 = 128;
    let n = &key.parts().n;
    let mut octets = Secret::new(alloc::vec![0; key.size()]);
    let excess_bits = 8 * key.size() as u32 - key.bits();
    for _ in 0..ATTEMPTS {
        rng.try_fill_bytes(&mut octets).map_err(|_| Error::Rng)?;
        octets[0] &= 0xff >> excess_bits;
        let number = Secret::new(os2ip(&octets, n.bits_precision()));
        let (zero, below) = (number.is_zero(), number.ct_lt(n.modulus().as_ref()));
        if reveal(below & !zero) {
            return Ok(number);
        }
    }
    Err(Error::Rng)
}

/// The factors of lanes of one class, `r^e` and `r^-1`, in Montgomery form: multiplied by R modulo n.
pub(super) struct Blinding {
    blinding: Values,
    unblinding: Values,
}

impl Blinding {
    /// Makes the factors of `ops`, all of which are blinded, from the powers `r^e` of their random numbers.
    ///
    /// Fails with [`Error::Rng`] if a random number has no inverse.
    pub(super) fn new(ops: &[PrivateOp<'_>], powers: Values) -> Result<Self, Error> {
        let mut blinding = powers;
        let mut unblinding: Values =
            Secret::new(ops.iter().filter_map(|op| op.blind.cloned()).collect());
        for (params, values) in by_modulus(ops, &mut blinding) {
            with_limbs(limbs(params), Enter { params, values });
        }
        for (params, values) in by_modulus(ops, &mut unblinding) {
            with_limbs(limbs(params), Invert { params, values })?;
        }
        Ok(Self {
            blinding,
            unblinding,
        })
    }

    /// Multiplies every value by its `r^e`.
    pub(super) fn blind(&self, ops: &[PrivateOp<'_>], values: &mut [BoxedUint]) {
        multiply(ops, values, &self.blinding);
    }

    /// Multiplies every value by its `r^-1`.
    pub(super) fn unblind(&self, ops: &[PrivateOp<'_>], values: &mut [BoxedUint]) {
        multiply(ops, values, &self.unblinding);
    }
}

/// Multiplies `values[i]` by the number that `factors[i]` is the Montgomery form of, modulo the modulus of lane
/// i.
fn multiply(ops: &[PrivateOp<'_>], values: &mut [BoxedUint], mut factors: &[BoxedUint]) {
    for (params, values) in by_modulus(ops, values) {
        let (head, tail) = factors.split_at(values.len());
        with_limbs(
            limbs(params),
            Multiply {
                params,
                values,
                factors: head,
            },
        );
        factors = tail;
    }
}

/// The values of lanes in runs of one key, with its n.
fn by_modulus<'s, 'a>(
    ops: &'s [PrivateOp<'a>],
    mut values: &'s mut [BoxedUint],
) -> impl Iterator<Item = (&'a MontyParams<BoxedUint>, &'s mut [BoxedUint])> {
    runs(ops).map(move |run| {
        let (head, tail) = mem::take(&mut values).split_at_mut(run.len());
        values = tail;
        (modulus(&run[0]), head)
    })
}

fn limbs(params: &MontyParams<BoxedUint>) -> usize {
    params.modulus().as_ref().as_limbs().len()
}

struct Multiply<'a> {
    params: &'a MontyParams<BoxedUint>,
    values: &'a mut [BoxedUint],
    factors: &'a [BoxedUint],
}

impl WithLimbs for Multiply<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let n = Monty::<LIMBS>::widened(self.params);
        let mut product = Secret::new(Uint::ZERO);
        for (value, factor) in self.values.iter_mut().zip(self.factors) {
            let (a, b) = (Secret::new(load(value)), Secret::new(load(factor)));
            // One factor in Montgomery form gives the product in ordinary form.
            n.mul(&a, &b, &mut product);
            store(&product, value.as_limbs().len(), value);
        }
    }
}

/// Turns numbers into their Montgomery forms.
struct Enter<'a> {
    params: &'a MontyParams<BoxedUint>,
    values: &'a mut [BoxedUint],
}

impl WithLimbs for Enter<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let n = Monty::<LIMBS>::widened(self.params);
        let mut form = Secret::new(Uint::ZERO);
        for value in self.values {
            n.enter(&Secret::new(load(value)), &mut form);
            store(&form, value.as_limbs().len(), value);
        }
    }
}

/// Turns numbers into the Montgomery forms of their inverses.
struct Invert<'a> {
    params: &'a MontyParams<BoxedUint>,
    values: &'a mut [BoxedUint],
}

impl WithLimbs for Invert<'_> {
    type Output = Result<(), Error>;

    /// Inverts the product of all and divides the others out again.
    ///
    /// With `x_i = r_i / R`, the prefix of i numbers is `R * x_1 * .. * x_i`, which is what a Montgomery product
    /// makes of the one before and `r_i`; so nothing has to be converted on the way in. The inverse of the last
    /// one, times R^2, is `R / (x_1 * .. * x_k)`. The Montgomery form of `1 / r_i` is `1 / x_i`, which is R times
    /// less than what the division leaves.
    fn run<const LIMBS: usize>(self) -> Result<(), Error> {
        let n = Monty::<LIMBS>::widened(self.params);
        let [mut all, mut product] = [(); 2].map(|()| Secret::new(Uint::ZERO));
        n.enter(&Uint::ONE, &mut all);
        let mut prefixes = Secret::new(Vec::with_capacity(self.values.len()));
        for value in &*self.values {
            prefixes.push(*all);
            n.mul(&Secret::new(load(value)), &all, &mut product);
            mem::swap(&mut *all, &mut *product);
        }

        let mut suffix = invert(&all, &n).ok_or(Error::Rng)?;
        for (value, prefix) in self.values.iter_mut().zip(prefixes.iter()).rev() {
            let number = Secret::new(load(value));
            n.mul(prefix, &suffix, &mut all);
            n.mul(&all, &Uint::ONE, &mut product);
            store(&product, value.as_limbs().len(), value);
            n.mul(&number, &suffix, &mut product);
            mem::swap(&mut *suffix, &mut *product);
        }
        Ok(())
    }
}

/// `R^2 / value mod n`, or `None` if there is no inverse, which is no secret. By the constant-time method of
/// Bernstein and Yang ("Fast constant-time gcd computation and modular inversion", 2019), in crypto-bigint.
fn invert<const LIMBS: usize>(
    value: &Uint<LIMBS>,
    n: &Monty<LIMBS>,
) -> Option<Secret<Uint<LIMBS>>> {
    let modulus = Odd::new(*n.modulus()).expect("an odd modulus");
    let inverse = value.invert_odd_mod(&modulus);
    let exists = reveal(inverse.is_some());
    let inverse = Secret::new(inverse.to_inner_unchecked());
    let [mut form, mut squared] = [(); 2].map(|()| Secret::new(Uint::ZERO));
    n.enter(&inverse, &mut form);
    n.enter(&form, &mut squared);
    exists.then_some(squared)
}

#[cfg(test)]
mod tests;
