//! Requests on flat numbers: on the engine itself, or on [`Serial`] where that is faster.

use alloc::vec::Vec;

use batch_modexp_core::Serial;
use batch_modexp_core::engine::{Comparison, Engine, Moduli, Product, SecretPowers};
use batch_modexp_core::width::width;
use crypto_bigint::{Choice, Limb};

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

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        self.for_products(moduli, true)
            .inner()
            .run_remainders(moduli, numbers, out);
    }

    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        self.inner().run_comparison(comparison)
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
