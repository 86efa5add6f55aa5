//! Batches with a separate exponent length for each instance.

use alloc::vec::Vec;
use core::mem;

use crypto_bigint::Unsigned;
use zeroize::Zeroize;

use super::{BatchModExp, ModExp};
use crate::Error;
use crate::secret::Secret;
use crate::width::{clear, width};

/// Batches with a separate public bound on the exponent length of each instance. Implemented for
/// every backend whose error is [`Error`].
pub trait BatchModExpEach<U: Unsigned>: BatchModExp<U, Error = Error> {
    /// Writes `batch[i].base ^ (batch[i].exponent mod 2^exponent_bits[i]) mod
    /// batch[i].params.modulus()` to `out[i]`.
    ///
    /// Works like [`batch_mod_exp`](BatchModExp::batch_mod_exp), which has one bound for all
    /// instances.
    ///
    /// Instances are sorted by the width of their modulus and by `exponent_bits`. Those that agree
    /// in both form one batch for the backend. A short exponent or a narrow modulus therefore costs
    /// what it costs alone, wherever it stands. The backend computes these batches one after the
    /// other, and a few large ones keep it busier than many small ones. It pays to round bounds up
    /// to a few lengths. The bounds are public, like the widths.
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchModExpEach, ModExp, backend::Serial};
    /// use crypto_bigint::{Odd, U256, modular::MontyParams};
    ///
    /// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
    /// let (base, short, long) = (U256::from(2u32), U256::from(20u32), U256::MAX);
    /// let batch = [ModExp::new(&base, &short, &params), ModExp::new(&base, &long, &params)];
    ///
    /// let mut out = [U256::ZERO; 2];
    /// Serial.batch_mod_exp_each(&batch, &[5, 256], &mut out)?;
    /// assert_eq!(out[0], U256::from(48_573u32)); // 2^20 = 1,048,576
    /// # Ok::<(), batch_modexp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`batch_mod_exp`](BatchModExp::batch_mod_exp), with positions in this batch. All of
    /// `out` is then zero.
    ///
    /// # Panics
    ///
    /// If `batch`, `exponent_bits` and `out` differ in length.
    fn batch_mod_exp_each(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: &[u32],
        out: &mut [U],
    ) -> Result<(), Error> {
        assert!(
            batch.len() == exponent_bits.len() && batch.len() == out.len(),
            "a batch, its exponent lengths and its output must have the same length"
        );
        let class = |index: &usize| {
            let modulus = batch[*index].params.modulus().as_ref();
            (width(modulus), exponent_bits[*index])
        };
        let mut order: Vec<usize> = (0..batch.len()).collect();
        // A stable sort: neighbours with the same modulus stay neighbours.
        order.sort_by_key(class);
        order
            .chunk_by(|a, b| class(a) == class(b))
            .try_for_each(|at| {
                gathered(batch, at, out, |instances, results| {
                    self.batch_mod_exp(instances, exponent_bits[at[0]], results)
                })
            })
            .inspect_err(|_| clear(out))
    }
}

impl<U: Unsigned, B: BatchModExp<U, Error = Error> + ?Sized> BatchModExpEach<U> for B {}

/// Computes the instances at the indices `at` with `compute`, and moves their results to `out`.
///
/// # Errors
///
/// Those of `compute`, with indices in the whole batch. `out` is then unchanged.
pub fn gathered<U: Unsigned, T>(
    batch: &[ModExp<'_, U>],
    at: &[usize],
    out: &mut [U],
    compute: impl FnOnce(&[ModExp<'_, U>], &mut [U]) -> Result<T, Error>,
) -> Result<T, Error> {
    let instances: Vec<_> = at.iter().map(|&index| batch[index]).collect();
    let zero = |instance: &ModExp<'_, U>| U::zero_like(instance.params.modulus().as_ref());
    let mut results = Secret::new(Numbers(instances.iter().map(zero).collect()));
    let computed =
        compute(&instances, &mut results.0).map_err(|error| error.with_index(|index| at[index]))?;
    // The old content of `out` is wiped with the results.
    for (&index, result) in at.iter().zip(&mut results.0) {
        mem::swap(&mut out[index], result);
    }
    Ok(computed)
}

/// Numbers that are wiped on drop: `Unsigned` does not require `Zeroize`.
struct Numbers<U: Unsigned>(Vec<U>);

impl<U: Unsigned> Zeroize for Numbers<U> {
    fn zeroize(&mut self) {
        clear(&mut self.0);
    }
}
