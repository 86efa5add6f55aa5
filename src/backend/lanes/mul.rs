//! Products of numbers, an instance a lane.
//!
//! With `S = 2^width`, crypto-bigint's Montgomery radix, and that of the lanes, `R = 2^r_bits`, which is larger, the
//! product in Montgomery form is `a * b / S = a * (b * R / S) / R`: one multiplication by a factor that is imported
//! `r_bits - width` bits further up. It has room there, and `a * b < S * modulus` is what the lanes ask for:
//! `a * (b * R / S) < R * modulus`. Nothing but the modulus is prepared for that.

use core::ptr;

use crypto_bigint::Unsigned;
use zeroize::Zeroize;

use super::workspace::{Parts, Workspace};
use super::{Lanes, MAX_BITS};
use crate::backend::{Form, check_products, clear, width};
use crate::width::scrubbed;
use crate::{Error, ModMul};

/// [`BatchModMul`](crate::BatchModMul) on the lanes of `lanes`.
pub(crate) fn batch_mod_mul<L: Lanes, U: Unsigned>(
    lanes: L,
    form: Form,
    batch: &[ModMul<'_, U>],
    mut out: &mut [U],
) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    for batch in batch.chunk_by(|a, b| modulus_bits(a) == modulus_bits(b)) {
        let (head, tail) = out.split_at_mut(batch.len());
        // The kernels spill column sums and limbs, some kilobytes of stack.
        scrubbed::<16, _>(|| same_width(lanes, form, batch, head));
        out = tail;
    }
    Ok(())
}

/// Consecutive instances whose moduli are equally wide.
fn same_width<L: Lanes, U: Unsigned>(lanes: L, form: Form, batch: &[ModMul<'_, U>], out: &mut [U]) {
    let width = modulus_bits(&batch[0]);
    let limbs = L::limb_count(width);
    let shift = match form {
        Form::Ordinary => 0,
        Form::Montgomery => limbs as u32 * L::RADIX_BITS - width,
    };
    let mut workspace = Workspace::new(lanes, limbs, 0);
    let mut prepared: &[ModMul<'_, U>] = &[];
    for (block, out) in batch.chunks(L::COUNT).zip(out.chunks_mut(L::COUNT)) {
        // Lanes to spare repeat the last instance, and their results are dropped.
        let instance_of = |lane: usize| &block[lane.min(block.len() - 1)];
        if !same_moduli(block, prepared) {
            match form {
                Form::Ordinary => workspace.prepare_moduli(|lane| instance_of(lane).params),
                Form::Montgomery => workspace.import_moduli(|lane| instance_of(lane).params),
            }
            prepared = block;
        }
        let factors_of = |lane: usize| {
            let ModMul { a, b, .. } = instance_of(lane);
            [a.as_limbs(), b.as_limbs()]
        };
        workspace.load_factors_of(factors_of, width, shift);
        workspace.multiply(form);
        resize(block, out);
        workspace.store_products(width, out);
    }
}

impl<L: Lanes> Workspace<L> {
    /// From `value` and `factor` to their product in `value`.
    fn multiply(&mut self, form: Form) {
        let lanes = self.lanes;
        let Parts {
            modulus,
            r2,
            value,
            spare,
            factor,
            scratch,
            ..
        } = self.parts();
        match form {
            Form::Ordinary => {
                lanes.mul(spare, value, r2, modulus, scratch);
                lanes.mul(value, spare, factor, modulus, scratch);
            }
            Form::Montgomery => {
                lanes.mul(spare, value, factor, modulus, scratch);
                value.copy_from_slice(spare);
            }
        }
    }
}

/// Gives every result the width of its modulus. What is replaced is wiped.
fn resize<U: Unsigned>(block: &[ModMul<'_, U>], out: &mut [U]) {
    for (instance, out) in block.iter().zip(out) {
        let modulus = instance.params.modulus().as_ref();
        if width(out) != width(modulus) {
            out.as_mut_limbs().zeroize();
            *out = U::zero_like(modulus);
        }
    }
}

/// Whether lane by lane the moduli are the same references. A shorter block may follow a longer one, since the lanes to
/// spare then hold moduli that are of no concern.
fn same_moduli<U: Unsigned>(block: &[ModMul<'_, U>], prepared: &[ModMul<'_, U>]) -> bool {
    let pairs = || block.iter().zip(prepared);
    block.len() <= prepared.len() && pairs().all(|(a, b)| ptr::eq(a.params, b.params))
}

/// The width of an instance in bits.
fn modulus_bits<U: Unsigned>(instance: &ModMul<'_, U>) -> u32 {
    width(instance.params.modulus().as_ref())
}
