//! Products of numbers, one instance in each lane.
//!
//! Let `S = 2^width` be crypto-bigint's Montgomery radix, and `R = 2^r_bits` the larger one of the
//! lanes. The product in Montgomery form is `a * b / S = a * (b * R / S) / R`: one multiplication
//! by a factor that is shifted up by `r_bits - width` bits on import. The shifted factor fits, and
//! `a * b < S * modulus` implies `a * (b * R / S) < R * modulus`, which the lanes require. Only the
//! modulus needs preparation.

use batch_modexp_core::checks::{Form, check_products};
use batch_modexp_core::width::{MAX_BITS, clear, scrubbed};
use batch_modexp_core::{Error, ModMul};
use crypto_bigint::Unsigned;

use super::Lanes;
use super::run::{Run, blocks, each_run};
use super::workspace::{Parts, Workspace};

/// [`BatchModMul`](batch_modexp_core::BatchModMul) by `multiply`, which receives run after run.
/// `multiply` should not be generic: see [`run`](super::run).
pub(crate) fn batch_mod_mul<U: Unsigned>(
    batch: &[ModMul<'_, U>],
    out: &mut [U],
    multiply: impl Fn(&mut dyn Run<'_>),
) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    each_run(batch, out, multiply);
    Ok(())
}

/// Computes the products of a run on `lanes`.
pub(crate) fn multiply<L: Lanes>(lanes: L, form: Form, run: &mut dyn Run<'_>) {
    let width = run.bits();
    let limbs = L::limb_count(width);
    let shift = match form {
        Form::Ordinary => 0,
        Form::Montgomery => limbs as u32 * L::RADIX_BITS - width,
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, limbs, 0);
        let mut prepared = 0..0;
        for block in blocks(0..run.count(), L::COUNT) {
            if !run.same_moduli(block.clone(), prepared.clone()) {
                let moduli = run.moduli(block.clone());
                match form {
                    Form::Ordinary => workspace.prepare_moduli(&moduli),
                    Form::Montgomery => workspace.import_moduli(&moduli),
                }
                prepared = block.clone();
            }
            let numbers = run.numbers(block.clone());
            workspace.load(|lane| numbers[lane][0], width, 0);
            workspace.load_factor(|lane| numbers[lane][1], width, shift);
            workspace.multiply(form);
            workspace.store(width, run.results(block).into_iter());
        }
    });
}

impl<L: Lanes> Workspace<L> {
    /// Replaces `value` by its product with `factor`.
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
