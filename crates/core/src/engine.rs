//! Engines, which compute on the calling thread with one instruction set.

use alloc::vec::Vec;

use crypto_bigint::Choice;

use crate::requests::{Powers, Product, Reduction, SecretPowers};

/// Arithmetic on flat numbers: everything that RSA computes.
///
/// Callers use the provided methods. They check the lengths of a request before they hand it to the `run_` method, which
/// each engine implements. All of it is constant-time in every secret of the [requests](crate::requests).
///
/// The crates of this workspace alone implement it, and `batch-modexp` does not offer it, so that nobody else's code checks
/// results of private operations.
pub trait Engine: Sync {
    /// The name for users.
    fn name(&self) -> &'static str;

    /// Powers with secret exponents: see [`SecretPowers`].
    ///
    /// # Panics
    ///
    /// Those of [`SecretPowers::assert_lengths`].
    fn pow(&self, powers: SecretPowers<'_>) {
        powers.assert_lengths();
        self.run_pow(powers);
    }

    /// Products with public powers: see [`Product`].
    ///
    /// # Panics
    ///
    /// Those of [`Product::assert_lengths`].
    fn mul_public_power(&self, product: Product<'_>) {
        product.assert_lengths();
        self.run_product(product);
    }

    /// Remainders: see [`Reduction`].
    ///
    /// # Panics
    ///
    /// Those of [`Reduction::assert_lengths`].
    fn reduce(&self, reduction: Reduction<'_>) {
        reduction.assert_lengths();
        self.run_reduction(reduction);
    }

    /// For each lane whether `bases[i]^exponent` is `expected[i]` modulo both factors. `None` from an engine without
    /// SIMD lanes, on which the same modulo the products of the factors is faster.
    ///
    /// # Panics
    ///
    /// Those of [`Powers::assert_lengths`], and where there are lanes, if the factors are too short for the numbers.
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
