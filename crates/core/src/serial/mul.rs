//! Products, one after the other.

use alloc::vec;

use crypto_bigint::{Limb, Unsigned};

use crate::Serial;
use crate::checks::{Form, check_products};
use crate::monty::ModulusRef;
use crate::secret::Secret;
use crate::width::{MAX_BITS, clear, place, scrubbed};
use crate::{BatchModMul, Error, ModMul};

impl<U: Unsigned> BatchModMul<U> for Serial {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        multiply(Form::Montgomery, batch, out)
    }
}

fn multiply<U: Unsigned>(form: Form, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let sizes = batch.iter().map(|instance| size(instance));
    let mut factor = Secret::new(vec![Limb::ZERO; sizes.max().unwrap_or(0)]);
    scrubbed(|| {
        for (instance, out) in batch.iter().zip(out) {
            let modulus = ModulusRef::of(instance.params);
            let factor = &mut factor[..size(instance)];
            let (a, b) = (instance.a.as_limbs(), instance.b.as_limbs());
            match form {
                Form::Ordinary => modulus.enter(b, factor),
                Form::Montgomery => {
                    factor[..b.len()].copy_from_slice(b);
                    factor[b.len()..].fill(Limb::ZERO);
                }
            }
            let out = place(out, instance.params.modulus().as_ref());
            modulus.mul(a, factor, out);
        }
    });
    Ok(())
}

/// The width of an instance in limbs.
fn size<U: Unsigned>(instance: &ModMul<'_, U>) -> usize {
    instance.params.modulus().as_ref().as_limbs().len()
}
