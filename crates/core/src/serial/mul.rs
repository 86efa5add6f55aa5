//! Products, one after the other.

use core::{mem, ptr};

use crypto_bigint::{BoxedUint, Uint, Unsigned};

use crate::Serial;
use crate::checks::{Form, check_products};
use crate::monty::Monty;
use crate::secret::Secret;
use crate::width;
use crate::width::{WithLimbs, clear, scrubbed, with_limbs};
use crate::{BatchModMul, Error, ModMul};

impl<const LIMBS: usize> BatchModMul<Uint<LIMBS>> for Serial {
    type Error = Error;

    fn batch_mod_mul(
        &self,
        batch: &[ModMul<'_, Uint<LIMBS>>],
        out: &mut [Uint<LIMBS>],
    ) -> Result<(), Error> {
        fixed(Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(
        &self,
        batch: &[ModMul<'_, Uint<LIMBS>>],
        out: &mut [Uint<LIMBS>],
    ) -> Result<(), Error> {
        fixed(Form::Montgomery, batch, out)
    }
}

impl BatchModMul<BoxedUint> for Serial {
    type Error = Error;

    fn batch_mod_mul(
        &self,
        batch: &[ModMul<'_, BoxedUint>],
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        boxed(Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(
        &self,
        batch: &[ModMul<'_, BoxedUint>],
        out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        boxed(Form::Montgomery, batch, out)
    }
}

fn fixed<const LIMBS: usize>(
    form: Form,
    batch: &[ModMul<'_, Uint<LIMBS>>],
    out: &mut [Uint<LIMBS>],
) -> Result<(), Error> {
    check_products(batch, out, u32::MAX).inspect_err(|_| clear(out))?;
    scrubbed::<LIMBS, _>(|| {
        let mut out = out.iter_mut();
        let mut product = Secret::new(Uint::ZERO);
        for run in batch.chunk_by(same_modulus) {
            let modulus = Monty::new(run[0].params);
            for (ModMul { a, b, .. }, out) in run.iter().zip(&mut out) {
                multiply(&modulus, form, a, b, &mut product);
                // The old content of `out` is wiped with `product`: by the next result, or at the
                // end.
                mem::swap(out, &mut product);
            }
        }
    });
    Ok(())
}

fn boxed(
    form: Form,
    batch: &[ModMul<'_, BoxedUint>],
    mut out: &mut [BoxedUint],
) -> Result<(), Error> {
    check_products(batch, out, width::MAX_BITS).inspect_err(|_| clear(out))?;
    for batch in batch.chunk_by(|a, b| limbs(a) == limbs(b)) {
        let (head, tail) = out.split_at_mut(batch.len());
        let same_width = SameWidth {
            form,
            batch,
            out: head,
        };
        with_limbs(limbs(&batch[0]), same_width);
        out = tail;
    }
    Ok(())
}

/// The width of an instance in limbs.
fn limbs(instance: &ModMul<'_, BoxedUint>) -> usize {
    instance.params.modulus().as_ref().as_limbs().len()
}

fn same_modulus<U: Unsigned>(a: &ModMul<'_, U>, b: &ModMul<'_, U>) -> bool {
    ptr::eq(a.params, b.params)
}

/// Consecutive instances whose moduli are equally wide.
struct SameWidth<'a> {
    form: Form,
    batch: &'a [ModMul<'a, BoxedUint>],
    out: &'a mut [BoxedUint],
}

impl WithLimbs for SameWidth<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let width = limbs(&self.batch[0]);
        let mut out = self.out.iter_mut();
        let mut product = Secret::new(Uint::ZERO);
        for run in self.batch.chunk_by(same_modulus) {
            let modulus = Monty::<LIMBS>::narrow(run[0].params);
            for (instance, out) in run.iter().zip(&mut out) {
                let a = Secret::new(width::load_high(instance.a, width));
                let b = Secret::new(width::load(instance.b));
                multiply(&modulus, self.form, &a, &b, &mut product);
                width::store(&product, width, out);
            }
        }
    }
}

/// The product of `a`, shifted to the top limbs as [`Monty::narrow`] requires, and `b`.
fn multiply<const LIMBS: usize>(
    modulus: &Monty<LIMBS>,
    form: Form,
    a: &Uint<LIMBS>,
    b: &Uint<LIMBS>,
    out: &mut Uint<LIMBS>,
) {
    match form {
        Form::Montgomery => modulus.mul(a, b, out),
        Form::Ordinary => {
            let mut form_of_b = Secret::new(Uint::ZERO);
            modulus.enter(b, &mut form_of_b);
            modulus.mul(a, &form_of_b, out);
        }
    }
}
