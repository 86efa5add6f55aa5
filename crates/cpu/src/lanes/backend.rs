//! The engine on lanes as a backend: fixed bases, products of powers, public exponents, and the traits
//! that callers use.

use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{FixedPowers, MultiPowers, Pairs, PowerEngine, PublicPowers};
use crypto_bigint::Limb;

use super::engine::LaneEngine;
use super::fixed_base::{self, FixedBaseLanes};
use super::{Lanes, multi_exp, pairs, public_exp};

/// All of it in groups of lanes.
impl<L: FixedBaseLanes + Sync, R: Lanes + Sync> PowerEngine for LaneEngine<L, R> {
    fn table_form(&self, bits: u32) -> TableForm {
        TableForm {
            radix_bits: L::RADIX_BITS,
            limbs: L::limb_count(bits),
            largest_window: L::LARGEST_ROW_WINDOW,
        }
    }

    fn fill_rows(&self, table: &mut Table, base: &[Limb], first: &[Limb]) {
        fixed_base::fill(self.lanes, table, base, first);
    }

    fn fixed_powers(&self, powers: FixedPowers<'_, '_>) {
        fixed_base::powers(self.lanes, powers);
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        multi_exp::powers(self.lanes, powers);
    }

    fn powers_vartime(&self, powers: PublicPowers<'_, '_>) {
        let base = |i: usize| powers.bases[i];
        let out = powers.out.iter_mut().map(|out| &mut **out);
        public_exp::public_powers(self.lanes, powers.moduli, powers.exponent, base, out);
    }

    fn enter(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        pairs::enter(self.lanes, modulus, numbers, out);
    }

    fn multiply_pairs(&self, pairs: Pairs<'_>) {
        pairs::multiply(self.lanes, pairs);
    }

    fn leave(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
        pairs::leave(self.lanes, modulus, numbers, out);
    }
}

/// Implements the traits of backends for a type whose function `simd` gives its engine.
///
/// The code is generic over a caller's numbers, so Rust compiles it again in every crate that calls
/// it. Kernels take minutes to compile. So `simd` must be `#[inline(never)]`: they are reached through
/// the trait object that it returns, and stay in this crate.
macro_rules! backend {
    ($vis:vis $backend:ty) => {
        impl $backend {
            /// The engine inside.
            #[must_use]
            $vis fn engine(&self) -> &dyn batch_modexp_core::engine::Engine {
                self.simd()
            }
        }

        impl<U: crypto_bigint::Unsigned> batch_modexp_core::BatchModExp<U> for $backend {
            type Error = batch_modexp_core::Error;

            fn batch_mod_exp(
                &self,
                batch: &[batch_modexp_core::ModExp<'_, U>],
                exponent_bits: u32,
                out: &mut [U],
            ) -> Result<(), Self::Error> {
                batch_modexp_core::engine::batch_mod_exp(self.simd(), batch, exponent_bits, out)
            }

            fn granularity(&self) -> usize {
                self.simd().profile().lanes
            }

            fn relative_time(&self, bits: u32, count: usize) -> u64 {
                self.simd().profile().relative_time(bits, count)
            }
        }

        impl<U: crypto_bigint::Unsigned> batch_modexp_core::BatchModMul<U> for $backend {
            type Error = batch_modexp_core::Error;

            fn batch_mod_mul(
                &self,
                batch: &[batch_modexp_core::ModMul<'_, U>],
                out: &mut [U],
            ) -> Result<(), Self::Error> {
                $crate::lanes::mul::batch_mod_mul(batch, out, |run| {
                    self.simd()
                        .multiply(batch_modexp_core::checks::Form::Ordinary, run);
                })
            }

            fn batch_monty_mul(
                &self,
                batch: &[batch_modexp_core::ModMul<'_, U>],
                out: &mut [U],
            ) -> Result<(), Self::Error> {
                $crate::lanes::mul::batch_mod_mul(batch, out, |run| {
                    self.simd()
                        .multiply(batch_modexp_core::checks::Form::Montgomery, run);
                })
            }
        }

        impl batch_modexp_core::powers::HasPowerEngine for $backend {
            fn power_engine(&self) -> &dyn batch_modexp_core::powers::PowerEngine {
                self.simd()
            }
        }
    };
}
pub(crate) use backend;
