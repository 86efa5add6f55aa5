//! Base blinding (Chaum, 1982; Kocher, 1996): `(m * r^e)^d * r^-1 = m^d` for a fresh random r.
//!
//! Costs one exponentiation by e for each lane, which the caller does on its backend, and one inversion for each run
//! of lanes with the same key, shared by Montgomery's trick (Montgomery, 1987, section 10.3.1).

use alloc::vec::Vec;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, RandomMod, Uint};
use rand_core::TryCryptoRng;

use super::group::{Values, modulus, runs};
use super::op::PrivateOp;
use crate::Error;
use crate::rsa::KeyHandle;
use crate::secret::Secret;
use crate::width::{WithLimbs, fixed_params, load, store, with_limbs};

/// A random number below the n of `key`. Rejection sampling shows how many candidates were rejected, which
/// says nothing about the one that was not.
pub(super) fn draw<R: TryCryptoRng + ?Sized>(
    key: &KeyHandle,
    rng: &mut R,
) -> Result<Secret<BoxedUint>, Error> {
    BoxedUint::try_random_mod_vartime(rng, key.parts().n.modulus().as_nz_ref())
        .map(Secret::new)
        .map_err(|_| Error::Rng)
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
        let (head, tail) = core::mem::take(&mut values).split_at_mut(run.len());
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
        let params = fixed_params::<LIMBS>(self.params);
        for (value, factor) in self.values.iter_mut().zip(self.factors) {
            let (a, b) = (Secret::new(load(value)), Secret::new(load(factor)));
            // One factor in Montgomery form gives the product in ordinary form.
            let product = Secret::new(product(&a, &b, &params));
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
        let params = fixed_params::<LIMBS>(self.params);
        for value in self.values {
            let number = Secret::new(load(value));
            let form = Secret::new(FixedMontyForm::new(&number, &params));
            store(form.as_montgomery(), value.as_limbs().len(), value);
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

    /// Inverts the product of all and divides the others out again. A number r taken as a Montgomery form
    /// stands for r / R, whose inverse R / r is the Montgomery form of 1 / r: nothing has to be converted on
    /// the way in.
    fn run<const LIMBS: usize>(self) -> Result<(), Error> {
        let params = fixed_params::<LIMBS>(self.params);
        let mut prefixes = Secret::new(Vec::with_capacity(self.values.len()));
        let mut all = Secret::new(*params.one());
        for value in &*self.values {
            prefixes.push(*all);
            *all = product(&all, &Secret::new(load(value)), &params);
        }

        let inverse = FixedMontyForm::from_montgomery(*all, &params).invert();
        let inverse = Secret::new(inverse.into_option().ok_or(Error::Rng)?);
        let mut suffix = Secret::new(inverse.to_montgomery());
        for (value, prefix) in self.values.iter_mut().zip(prefixes.iter()).rev() {
            let number = Secret::new(load(value));
            let quotient = product(&suffix, prefix, &params);
            let quotient = Secret::new(FixedMontyForm::from_montgomery(quotient, &params));
            *suffix = product(&suffix, &number, &params);
            store(
                &Secret::new(quotient.retrieve()),
                value.as_limbs().len(),
                value,
            );
        }
        Ok(())
    }
}

/// `a * b / R mod n` for reduced a and b.
fn product<const LIMBS: usize>(
    a: &Uint<LIMBS>,
    b: &Uint<LIMBS>,
    params: &FixedMontyParams<LIMBS>,
) -> Uint<LIMBS> {
    let a = Secret::new(FixedMontyForm::from_montgomery(*a, params));
    let b = Secret::new(FixedMontyForm::from_montgomery(*b, params));
    a.mul(&b).to_montgomery()
}
