//! Batches of a caller's numbers, and which products are faster in lanes.

use core::ptr;

use batch_modexp_core::batch::{Form, batch_mod_exp, check_products};
use batch_modexp_core::width::{MAX_BITS, clear, width};
use batch_modexp_core::{BatchModExp, BatchModMul, Error, ModExp, ModMul, Serial};
use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use super::AnyEngine;
use crate::lanes::batch;
use crate::profile::ProductCounts;

impl<U: Unsigned> BatchModExp<U> for AnyEngine {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        batch_mod_exp(self, batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        self.simd().map_or(1, |simd| simd.profile().lanes)
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        match self.simd() {
            Some(simd) => simd.profile().relative_time(bits, count),
            None => count as u64,
        }
    }
}

impl<U: Unsigned> BatchModMul<U> for AnyEngine {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Ordinary, batch, out)
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        run(self, Form::Montgomery, batch, out)
    }
}

/// Computes runs of equally wide moduli in lanes if they are long enough, else on [`Serial`].
fn run<U: Unsigned>(
    engine: &AnyEngine,
    form: Form,
    batch: &[ModMul<'_, U>],
    out: &mut [U],
) -> Result<(), Error> {
    check_products(batch, out, MAX_BITS).inspect_err(|_| clear(out))?;
    let mut start = 0;
    for run in batch.chunk_by(|a, b| modulus_bits(a.params) == modulus_bits(b.params)) {
        let moduli = run.iter().map(|instance| instance.params);
        let in_lanes = engine
            .simd()
            .filter(|simd| is_faster(simd.profile().products, form, moduli));
        let places = &mut out[start..][..run.len()];
        let computed = match (in_lanes, form) {
            (Some(simd), _) => batch::batch_mod_mul(run, places, |run| simd.multiply(form, run)),
            (None, Form::Ordinary) => Serial.batch_mod_mul(run, places),
            (None, Form::Montgomery) => Serial.batch_monty_mul(run, places),
        };
        computed
            .map_err(|error| error.in_batch_at(start))
            .inspect_err(|_| clear(out))?;
        start += run.len();
    }
    Ok(())
}

/// Whether these products modulo equally wide moduli are faster in lanes.
fn is_faster<'a, U: Unsigned>(
    table: &[ProductCounts],
    form: Form,
    moduli: impl ExactSizeIterator<Item = &'a MontyParams<U>> + Clone,
) -> bool {
    let (count, others) = (moduli.len(), moduli.clone().skip(1));
    let bits = moduli.clone().next().map_or(0, modulus_bits);
    let Some(fewest) = table.iter().rev().find(|fewest| fewest.bits <= bits) else {
        return false;
    };
    // A group of lanes is prepared for its moduli: at most twice for each change.
    let changes = moduli.zip(others).filter(|(a, b)| !ptr::eq(*a, *b)).count();
    let [ordinary, montgomery] = match 16 * changes > count {
        true => fewest.mixed,
        false => fewest.shared,
    };
    count
        >= match form {
            Form::Ordinary => ordinary,
            Form::Montgomery => montgomery,
        }
}

/// The width of a modulus in bits.
fn modulus_bits<U: Unsigned>(modulus: &MontyParams<U>) -> u32 {
    width(modulus.modulus().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::FMA;
    use alloc::vec::Vec;
    use crypto_bigint::BoxedUint;
    use crypto_bigint::Odd;
    use crypto_bigint::modular::BoxedMontyParams;

    /// Whether this many instances use lanes, by the table of `Fma`.
    fn goes_to_lanes(bits: u32, count: usize, form: Form, moduli: usize) -> bool {
        let modulus = BoxedUint::max(bits);
        let params = || BoxedMontyParams::new(Odd::new(modulus.clone()).unwrap());
        let params: Vec<_> = (0..moduli).map(|_| params()).collect();
        let batch: Vec<_> = (0..count)
            .map(|i| ModMul::new(&modulus, &modulus, params[i * moduli / count].as_ref()))
            .collect();
        is_faster(
            FMA.products,
            form,
            batch.iter().map(|instance| instance.params),
        )
    }

    #[test]
    fn the_choice_follows_from_public_numbers() {
        use Form::{Montgomery, Ordinary};
        for (bits, count, form, moduli, expected) in [
            (448, 1000, Ordinary, 1, false),
            (512, 255, Ordinary, 1, false),
            (512, 256, Ordinary, 1, true),
            (512, 256, Montgomery, 1, false),
            (960, 256, Ordinary, 16, true),
            (960, 256, Ordinary, 256, false),
            (2048, 4, Ordinary, 1, true),
            (2048, 7, Ordinary, 7, false),
            (2048, 8, Montgomery, 8, true),
            (16_384, 3, Ordinary, 1, true),
        ] {
            let actual = goes_to_lanes(bits, count, form, moduli);
            assert_eq!(
                actual, expected,
                "{count} of {bits} bits, {form:?}, {moduli}"
            );
        }
    }
}
