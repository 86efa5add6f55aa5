//! Instances of a batch that are computed as a batch of their own.

use alloc::vec::Vec;
use core::mem;

use crypto_bigint::Unsigned;
use zeroize::Zeroize;

use super::ModExp;
use crate::Error;
use crate::secret::Secret;
use crate::width::clear;

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
