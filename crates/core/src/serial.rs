//! The portable reference backend: one instance after the other.

mod fixed_base;
mod mul;
mod numbers;
mod powers;

use core::{mem, ptr};

use crypto_bigint::{BoxedUint, Uint};

use crate::checks::check_batch;
use crate::monty::Monty;
use crate::secret::Secret;
use crate::width;
use crate::width::{WithLimbs, clear, scrubbed, with_limbs};
use crate::{BatchModExp, Error, ModExp};

/// Computes a batch on the calling thread, one instance after the other, on crypto-bigint's limbs.
///
/// The method is constant-time fixed-window exponentiation (almost Montgomery multiplication,
/// windows of up to 4 bits).
///
/// Works on every target and without `std`. Serves exponentiations with
/// `Uint` of any width; `BoxedUint`, and everything of [`BatchFixedBaseExp`](crate::BatchFixedBaseExp)
/// and the other traits of powers, up to 16,384 bits (256 limbs of 64 bits). It
/// copies each `BoxedUint` instance into a `Uint` of a fixed number of limbs, because
/// crypto-bigint's own `BoxedUint` arithmetic leaves copies of secrets in freed heap memory. Each
/// call overwrites the stack that it used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl<const LIMBS: usize> BatchModExp<Uint<LIMBS>> for Serial {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, Uint<LIMBS>>],
        exponent_bits: u32,
        out: &mut [Uint<LIMBS>],
    ) -> Result<(), Error> {
        check_batch(batch, exponent_bits, out, u32::MAX).inspect_err(|_| clear(out))?;
        scrubbed::<LIMBS, _>(|| {
            let mut power = Secret::new(Uint::ZERO);
            for (instance, out) in batch.iter().zip(out) {
                let modulus = Monty::new(instance.params);
                let exponent = instance.exponent.as_limbs();
                modulus.pow(instance.base, exponent, exponent_bits, &mut power);
                // The old content of `out` is wiped with `power`: by the next result, or at the
                // end.
                mem::swap(out, &mut power);
            }
        });
        Ok(())
    }
}

impl BatchModExp<BoxedUint> for Serial {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        mut out: &mut [BoxedUint],
    ) -> Result<(), Error> {
        check_batch(batch, exponent_bits, out, width::MAX_BITS).inspect_err(|_| clear(out))?;
        for batch in batch.chunk_by(|a, b| limbs(a) == limbs(b)) {
            let (head, tail) = out.split_at_mut(batch.len());
            with_limbs(
                limbs(&batch[0]),
                SameWidth {
                    batch,
                    exponent_bits,
                    out: head,
                },
            );
            out = tail;
        }
        Ok(())
    }
}

/// The width of an instance in limbs.
fn limbs(instance: &ModExp<'_, BoxedUint>) -> usize {
    instance.params.modulus().as_ref().as_limbs().len()
}

/// Consecutive instances whose moduli are equally wide.
struct SameWidth<'a> {
    batch: &'a [ModExp<'a, BoxedUint>],
    exponent_bits: u32,
    out: &'a mut [BoxedUint],
}

impl WithLimbs for SameWidth<'_> {
    type Output = ();

    fn run<const LIMBS: usize>(self) {
        let same_modulus = |a: &ModExp<'_, _>, b: &ModExp<'_, _>| ptr::eq(a.params, b.params);
        let mut out = self.out.iter_mut();
        let mut power = Secret::new(Uint::ZERO);
        for run in self.batch.chunk_by(same_modulus) {
            let modulus = Monty::<LIMBS>::widened(run[0].params);
            for (instance, out) in run.iter().zip(&mut out) {
                let base = Secret::new(width::load(instance.base));
                let exponent = instance.exponent.as_limbs();
                modulus.pow(&base, exponent, self.exponent_bits, &mut power);
                width::store(&power, limbs(instance), out);
            }
        }
    }
}
