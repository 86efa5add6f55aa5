//! The engine on lanes: groups of instances, then the last instances of a batch. It makes a backend
//! of the type that holds it.

use alloc::vec::Vec;

use batch_modexp_core::checks::Form;
use batch_modexp_core::engine::{Comparison, Engine, Exponent, Moduli, SecretPowers};
use batch_modexp_core::fixed_base::{Table, TableForm};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::{
    FixedPowers, IndexedProducts, MultiPowers, PowerEngine, PublicPowers,
};
use crypto_bigint::{Choice, Limb};

use super::convert::flat;
use super::fixed_base::{self, FixedBaseLanes};
use super::mul::{self, Run};
use super::public_exp::public_powers;
use super::{Lanes, indexed, multi_exp, pow, powers_agree, reduce};
use crate::profile::Profile;

/// Computes groups of instances on the lanes `L`, and the last instances of a batch on `R` where that
/// takes less time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneEngine<L, R> {
    pub(super) lanes: L,
    last: Option<R>,
    profile: Profile,
}

/// A [`LaneEngine`] of any lanes.
pub(crate) trait SimdEngine: Engine + PowerEngine {
    /// The constants of this engine.
    fn profile(&self) -> &Profile;

    /// Computes the products of a run.
    fn multiply(&self, form: Form, run: &mut dyn Run<'_>);
}

impl<L: Lanes, R: Lanes> LaneEngine<L, R> {
    /// Without `last`, the last instances are in a group of lanes too.
    pub(crate) fn new(lanes: L, last: Option<R>, profile: Profile) -> Self {
        let profile = match last {
            Some(_) => profile,
            None => profile.in_groups(),
        };
        Self {
            lanes,
            last,
            profile,
        }
    }

    /// How many of these equally wide moduli are not computed in groups.
    fn last_of(&self, moduli: Moduli<'_>) -> usize {
        let bits = moduli.first().map_or(0, |modulus| modulus.bits());
        self.profile.last(bits, moduli.len())
    }

    /// The lanes for products modulo so few moduli that none of them is computed in groups.
    fn last_for_products(&self, moduli: Moduli<'_>) -> Option<R> {
        let are_last = self.profile.has_pairs && self.last_of(moduli) == moduli.len();
        self.last.filter(|_| are_last)
    }
}

impl<L: FixedBaseLanes + Sync, R: Lanes + Sync> SimdEngine for LaneEngine<L, R> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn multiply(&self, form: Form, run: &mut dyn Run<'_>) {
        mul::multiply(self.lanes, form, run);
    }
}

impl<L: Lanes + Sync, R: Lanes + Sync> Engine for LaneEngine<L, R> {
    fn name(&self) -> &'static str {
        self.profile.name
    }

    fn trial_division_bound(&self) -> u32 {
        self.profile.trial_division_bound
    }

    fn run_pow(&self, powers: SecretPowers<'_>) {
        let in_groups = powers.moduli.len() - self.last_of(powers.moduli);
        let (in_groups, others) = powers.split_at(in_groups);
        pow::pow(self.lanes, in_groups);
        if let Some(last) = self.last {
            pow::pow(last, others);
        }
    }

    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        match self.last_for_products(moduli) {
            Some(last) => mul::products(last, moduli, factors, out),
            None => mul::products(self.lanes, moduli, factors, out),
        }
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        let Some(first) = moduli.first() else { return };
        let size = first.limbs.len();
        let (bases, out) = (flat(bases, size), out.chunks_exact_mut(size));
        let exponent = &exponent.prepare();
        match self.last_for_products(moduli) {
            Some(last) => public_powers(last, moduli, exponent, bases, out),
            None => public_powers(self.lanes, moduli, exponent, bases, out),
        }
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        match self.last_for_products(moduli) {
            Some(last) => reduce::reduce(last, moduli, numbers, out),
            None => reduce::reduce(self.lanes, moduli, numbers, out),
        }
    }

    fn run_comparison(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        Some(match self.last_for_products(comparison.factors[0]) {
            Some(last) => powers_agree::powers_agree(last, comparison),
            None => powers_agree::powers_agree(self.lanes, comparison),
        })
    }
}

/// All of it in groups of lanes, also the last instances.
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

    fn lanes(&self) -> usize {
        L::COUNT
    }

    fn fewest_for_buckets(&self, bits: u32) -> usize {
        (self.profile.fewest_for_buckets)(bits)
    }

    fn multi_powers(&self, powers: MultiPowers<'_, '_>) {
        multi_exp::powers(self.lanes, powers);
    }

    fn powers_vartime(&self, powers: PublicPowers<'_, '_>) {
        let base = |i: usize| powers.bases[i];
        let out = powers.out.iter_mut().map(|out| &mut **out);
        public_powers(self.lanes, powers.moduli, powers.exponent, base, out);
    }

    fn enter(&self, modulus: ModulusRef<'_>, numbers: &[&[Limb]], out: &mut [u64]) {
        indexed::enter(self.lanes, modulus, numbers, out);
    }

    fn indexed_products(&self, products: IndexedProducts<'_>) {
        indexed::multiply(self.lanes, products);
    }

    fn leave(&self, modulus: ModulusRef<'_>, numbers: &[u64], out: &mut [Limb]) {
        indexed::leave(self.lanes, modulus, numbers, out);
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
