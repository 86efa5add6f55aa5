//! Base blinding (Chaum, 1982; Kocher, 1996): `(m * r^e)^d * r^-1 = m^d` for a fresh random r.
//!
//! Costs one exponentiation by e for each lane, which the backend does, and one inversion for each run
//! of lanes with the same key, shared by Montgomery's trick (Montgomery, 1987, section 10.3.1).

use alloc::vec::Vec;
use core::ptr;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Uint};

use super::host::{Values, public_op};
use super::private_op::PrivateOp;
use crate::secret::Secret;
use crate::width::{WithLimbs, fixed_params, load, store, with_limbs};
use crate::{BatchModExp, Error};

/// The factors for a group of lanes: `r^e` and `r^-1` for those that are blinded, 1 for the others. All of
/// them in Montgomery form: multiplied by R modulo n.
pub(super) struct Blinding(Option<Factors>);

struct Factors {
    blinding: Values,
    unblinding: Values,
}

impl Blinding {
    /// Computes the factors. All moduli of `group` are equally wide, and all e equally long.
    ///
    /// Fails with [`Error::Rng`] if a random number has no inverse.
    pub(super) fn new<B>(backend: &B, group: &[PrivateOp<'_>]) -> Result<Self, Error>
    where
        B: BatchModExp<BoxedUint, Error = Error> + ?Sized,
    {
        if group.iter().all(|op| op.blind.is_none()) {
            return Ok(Self(None));
        }
        let random: Values = Secret::new(group.iter().map(random_or_one).collect());
        let powers = public_op(backend, group, &random)?;
        Self::from_powers(group, random, powers)
    }

    /// The same from the random numbers and their powers `r^e`.
    pub(super) fn from_powers(
        group: &[PrivateOp<'_>],
        random: Values,
        mut blinding: Values,
    ) -> Result<Self, Error> {
        let mut unblinding = random;
        for (run, powers) in runs(group, &mut blinding) {
            with_limbs(
                limbs(run),
                Enter {
                    params: params(run),
                    values: powers,
                },
            );
        }
        for (run, numbers) in runs(group, &mut unblinding) {
            with_limbs(
                limbs(run),
                Invert {
                    params: params(run),
                    values: numbers,
                },
            )?;
        }
        Ok(Self(Some(Factors {
            blinding,
            unblinding,
        })))
    }

    /// Multiplies every value by its `r^e`.
    pub(super) fn blind(&self, group: &[PrivateOp<'_>], values: &mut [BoxedUint]) {
        if let Self(Some(factors)) = self {
            multiply(group, values, &factors.blinding);
        }
    }

    /// Multiplies every value by its `r^-1`.
    pub(super) fn unblind(&self, group: &[PrivateOp<'_>], values: &mut [BoxedUint]) {
        if let Self(Some(factors)) = self {
            multiply(group, values, &factors.unblinding);
        }
    }
}

/// The random number of a lane, or 1 if it is not blinded.
pub(super) fn random_or_one(op: &PrivateOp<'_>) -> BoxedUint {
    let one = || BoxedUint::one_with_precision(op.block.bits_precision());
    op.blind.cloned().unwrap_or_else(one)
}

/// Multiplies `values[i]` by the number that `factors[i]` is the Montgomery form of, modulo the modulus of lane
/// i.
fn multiply(group: &[PrivateOp<'_>], values: &mut [BoxedUint], factors: &[BoxedUint]) {
    let mut factors = factors;
    for (run, values) in runs(group, values) {
        let (head, tail) = factors.split_at(run.len());
        with_limbs(
            limbs(run),
            Multiply {
                params: params(run),
                values,
                factors: head,
            },
        );
        factors = tail;
    }
}

/// The lanes in runs of one key, with their values.
fn runs<'a, 'b>(
    group: &'a [PrivateOp<'b>],
    mut values: &'a mut [BoxedUint],
) -> impl Iterator<Item = (&'a [PrivateOp<'b>], &'a mut [BoxedUint])> {
    group
        .chunk_by(|a, b| ptr::eq(a.key.parts(), b.key.parts()))
        .map(move |run| {
            let (head, tail) = core::mem::take(&mut values).split_at_mut(run.len());
            values = tail;
            (run, head)
        })
}

fn params<'a>(run: &[PrivateOp<'a>]) -> &'a MontyParams<BoxedUint> {
    run[0].key.parts().n.as_ref()
}

fn limbs(run: &[PrivateOp<'_>]) -> usize {
    params(run).modulus().as_ref().as_limbs().len()
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
