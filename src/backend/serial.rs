//! The portable reference backend: one instance after the other through crypto-bigint.

use core::ptr;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{BoxedUint, Uint};

use super::{check_batch, clear};
use crate::secret::Secret;
use crate::width::{self, WithLimbs, fixed_params, with_limbs};
use crate::{BatchModExp, Error, ModExp};

/// Runs a batch on the calling thread through crypto-bigint's constant-time fixed-window
/// exponentiation (almost Montgomery multiplication, window 4).
///
/// Works on every target and without `std`. `BoxedUint` is served up to 16,384 bits (256 limbs) by
/// copying each instance into a `Uint` of a fixed number of limbs: crypto-bigint's own `BoxedUint`
/// arithmetic leaves copies of secrets in freed heap memory.
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
        for (instance, out) in batch.iter().zip(out) {
            *out = pow(
                instance.base,
                instance.exponent,
                exponent_bits,
                instance.params,
            );
        }
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
        for run in self.batch.chunk_by(same_modulus) {
            let params = Secret::new(fixed_params::<LIMBS>(run[0].params));
            for (instance, out) in run.iter().zip(&mut out) {
                let base = Secret::new(width::load(instance.base));
                let exponent = Secret::new(width::load(instance.exponent));
                let power = Secret::new(pow(&base, &exponent, self.exponent_bits, &params));
                width::store(&power, limbs(instance), out);
            }
        }
    }
}

/// `base ^ (exponent mod 2^exponent_bits)` in `[0, modulus)`.
fn pow<const LIMBS: usize>(
    base: &Uint<LIMBS>,
    exponent: &Uint<LIMBS>,
    exponent_bits: u32,
    params: &FixedMontyParams<LIMBS>,
) -> Uint<LIMBS> {
    let base = Secret::new(FixedMontyForm::new(base, params));
    let power = Secret::new(base.pow_amm_bounded_exp(exponent, exponent_bits));
    power.retrieve()
}
