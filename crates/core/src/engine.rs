//! Engines: each computes on the calling thread with one instruction set.

use alloc::vec::Vec;

use crypto_bigint::Choice;

use crate::requests::{Powers, Product, Reduction, SecretPowers};

/// The arithmetic that RSA needs, on flat numbers.
///
/// Callers use the provided methods. They check the lengths of a request before they pass it to the
/// `run_` method that each engine implements. All operations are constant-time in every secret of
/// the [requests](crate::requests).
///
/// Only crates of this workspace implement it; `batch-modexp` does not export it. No foreign code
/// therefore checks the results of private operations.
pub trait Engine: Sync {
    /// The engine's name, for users.
    fn name(&self) -> &'static str;

    /// Computes powers with secret exponents: see [`SecretPowers`].
    ///
    /// # Panics
    ///
    /// Those of [`SecretPowers::assert_lengths`].
    fn pow(&self, powers: SecretPowers<'_>) {
        powers.assert_lengths();
        self.run_pow(powers);
    }

    /// Computes products with public powers: see [`Product`].
    ///
    /// # Panics
    ///
    /// Those of [`Product::assert_lengths`].
    fn mul_public_power(&self, product: Product<'_>) {
        product.assert_lengths();
        self.run_product(product);
    }

    /// Computes remainders: see [`Reduction`].
    ///
    /// # Panics
    ///
    /// Those of [`Reduction::assert_lengths`].
    fn reduce(&self, reduction: Reduction<'_>) {
        reduction.assert_lengths();
        self.run_reduction(reduction);
    }

    /// Tells for each item whether `bases[i]^exponent` is `expected[i]` modulo both factors.
    ///
    /// Returns `None` from an engine without SIMD lanes: there the check modulo the product of the
    /// factors is faster.
    ///
    /// # Panics
    ///
    /// Those of [`Powers::assert_lengths`]. Engines with lanes also panic if the factors are too
    /// short for the numbers.
    fn powers_agree(&self, powers: &Powers<'_>) -> Option<Vec<Choice>> {
        powers.assert_lengths();
        self.run_powers(powers)
    }

    /// Implements [`pow`](Self::pow).
    fn run_pow(&self, powers: SecretPowers<'_>);

    /// Implements [`mul_public_power`](Self::mul_public_power).
    fn run_product(&self, product: Product<'_>);

    /// Implements [`reduce`](Self::reduce).
    fn run_reduction(&self, reduction: Reduction<'_>);

    /// Implements [`powers_agree`](Self::powers_agree).
    fn run_powers(&self, powers: &Powers<'_>) -> Option<Vec<Choice>>;
}
