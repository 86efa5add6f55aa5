//! Requests on flat numbers: on the engine itself, or on [`Serial`] where that is faster.

use alloc::vec::Vec;

use batch_modexp_core::Serial;
use batch_modexp_core::engine::Engine;
use batch_modexp_core::requests::{Powers, Product, Reduction, SecretPowers};
use batch_modexp_core::width::width;
use crypto_bigint::Choice;

use super::AnyEngine;

impl Engine for AnyEngine {
    fn name(&self) -> &'static str {
        Self::name(*self)
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let Some(first) = powers.moduli.first() else {
            return;
        };
        let bits = width(first.modulus().as_ref());
        let (in_lanes, on_serial) = {
            let middle = self.count_in_lanes(bits, powers.moduli.len());
            powers.split_at(middle)
        };
        self.inner().run_pow(in_lanes);
        Serial.run_pow(on_serial);
    }

    fn run_product(&self, product: Product<'_>) {
        let once = product.exponent.is_one();
        self.for_products(product.moduli, once)
            .inner()
            .run_product(product);
    }

    fn run_reduction(&self, reduction: Reduction<'_>) {
        self.for_products(reduction.moduli, true)
            .inner()
            .run_reduction(reduction);
    }

    fn run_powers(&self, powers: &Powers<'_>) -> Option<Vec<Choice>> {
        self.inner().run_powers(powers)
    }
}

impl AnyEngine {
    /// The engine inside.
    fn inner(&self) -> &dyn Engine {
        match self {
            Self::Serial => &Serial,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Fma(fma) => fma,
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => ifma,
        }
    }
}
