//! The engine on lanes: what it computes in groups, and what apart from them.

use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::batch::Form;
use batch_modexp_core::engine::{Comparison, Engine, Moduli, SecretPowers};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::powers::PowerEngine;
use crypto_bigint::{Choice, Limb};

use super::convert::flat;
use super::products::{self, ProductCounts, Run};
use super::{Lanes, PowerLanes, ladder, residues};

/// Computes groups of instances on the lanes `L`, and the last instances of a batch on `R` where that
/// takes less time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneEngine<L, R> {
    pub(super) lanes: L,
    last: Option<R>,
    pub(super) profile: Profile,
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

    /// The lanes for pairs, if they compute products modulo these moduli.
    fn pairs_for(&self, moduli: Moduli<'_>) -> Option<R> {
        let bits = moduli.first().map_or(0, ModulusRef::width);
        let are_last = self.profile.last(bits, moduli.len()) == moduli.len();
        self.last.filter(|_| self.profile.has_pairs && are_last)
    }
}

impl<L: PowerLanes + Sync, R: Lanes + Sync> SimdEngine for LaneEngine<L, R> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn multiply(&self, form: Form, run: &mut dyn Run<'_>) {
        products::multiply(self.lanes, form, run);
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
        let bits = powers.moduli.first().map_or(0, ModulusRef::width);
        let count = powers.moduli.len();
        let (in_groups, last) = powers.split_at(count - self.profile.last(bits, count));
        ladder::powers(self.lanes, in_groups);
        if let Some(lanes) = self.last {
            ladder::powers(lanes, last);
        }
    }

    fn run_products(&self, moduli: Moduli<'_>, factors: [&[Limb]; 2], out: &mut [Limb]) {
        match self.pairs_for(moduli) {
            Some(pairs) => residues::products(pairs, moduli, factors, out),
            None => residues::products(self.lanes, moduli, factors, out),
        }
    }

    fn run_public_powers(
        &self,
        moduli: Moduli<'_>,
        exponent: &PublicExponent,
        bases: &[Limb],
        out: &mut [Limb],
    ) {
        let Some(first) = moduli.first() else { return };
        let size = first.limbs.len();
        let (bases, out) = (flat(bases, size), out.chunks_exact_mut(size));
        match self.pairs_for(moduli) {
            Some(pairs) => ladder::public_powers(pairs, moduli, exponent, bases, out),
            None => ladder::public_powers(self.lanes, moduli, exponent, bases, out),
        }
    }

    fn run_remainders(&self, moduli: Moduli<'_>, numbers: &[Limb], out: &mut [Limb]) {
        match self.pairs_for(moduli) {
            Some(pairs) => residues::remainders(pairs, moduli, numbers, out),
            None => residues::remainders(self.lanes, moduli, numbers, out),
        }
    }

    fn run_powers_agree(&self, comparison: &Comparison<'_>) -> Option<Vec<Choice>> {
        Some(
            match self.pairs_for(&comparison.primes[..comparison.primes.len() / 2]) {
                Some(pairs) => residues::powers_agree(pairs, comparison),
                None => residues::powers_agree(self.lanes, comparison),
            },
        )
    }
}

/// The cost of a group of lanes, at any width: the unit of cost.
pub(crate) const GROUP: u64 = 1000;

/// The measured constants of one engine. All choices by them depend on public numbers only.
#[derive(Clone, Copy)]
pub(crate) struct Profile {
    /// The engine's name, for users.
    pub(crate) name: &'static str,
    /// The number of lanes in a group.
    pub(crate) lanes: usize,
    /// The cost of this many last instances of a batch, of this width in bits, apart from groups;
    /// where that is an option.
    pub(crate) last_cost: fn(u32, usize) -> Option<u64>,
    /// Whether those instances are pairs, which also compute products, remainders and public powers
    /// if there are so few.
    pub(crate) has_pairs: bool,
    /// The widest modulus, in bits, for which [`Serial`](batch_modexp_core::Serial) computes one
    /// instance faster than a group of lanes. Two instances are faster in lanes at every width.
    pub(crate) single_on_serial: u32,
    /// From how many products on lanes are faster than `Serial`.
    pub(crate) products: &'static [ProductCounts],
    /// See [`fewest_for_buckets`](batch_modexp_core::powers::PowerEngine::fewest_for_buckets).
    /// Measured on a Zen 5 with exponents of 128 bits and moduli of 256 to 4096 bits.
    pub(crate) fewest_for_buckets: fn(u32) -> usize,
    /// See [`Engine::trial_division_bound`](batch_modexp_core::engine::Engine::trial_division_bound).
    pub(crate) trial_division_bound: u32,
}

/// Only the name: the rest is the same for all of this name.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Profile {
    /// The same engine without another way for the last instances than a group of lanes.
    pub(super) fn in_groups(self) -> Self {
        Self {
            last_cost: |_, _| None,
            ..self
        }
    }

    /// How many of `count` powers of equal width are computed apart from groups, on the lanes for
    /// the last instances: those that would leave lanes empty, where that takes less time.
    pub(crate) fn last(&self, bits: u32, count: usize) -> usize {
        let left_over = count % self.lanes;
        match (self.last_cost)(bits, left_over) {
            Some(cost) if cost < GROUP => left_over,
            _ => 0,
        }
    }

    /// How many of them, none or the last one, are faster on
    /// [`Serial`](batch_modexp_core::Serial) than in a group.
    pub(crate) fn on_serial(&self, bits: u32, count: usize) -> usize {
        let is_single = count % self.lanes == 1 && self.last(bits, count) == 0;
        usize::from(is_single && bits <= self.single_on_serial)
    }

    /// Whether [`Serial`](batch_modexp_core::Serial) is faster at products, remainders, or powers with
    /// a public exponent, modulo `count` moduli of equal width. `is_one` tells that it is one product
    /// for each modulus, rather than a power.
    ///
    /// Lanes are prepared for their moduli, which does not pay for a few products. Pairs are as fast
    /// as `Serial` from 1024 bits on.
    pub(crate) fn products_on_serial(&self, bits: u32, count: usize, is_one: bool) -> bool {
        const FEWEST_POWERS: usize = 2;
        const FEWEST_PRODUCTS: usize = 16;
        let fewest = match is_one {
            false if self.has_pairs => 1,
            false => FEWEST_POWERS,
            true if self.has_pairs && bits >= 1024 => 1,
            true => FEWEST_PRODUCTS,
        };
        count < fewest
    }

    /// See [`BatchModExp::relative_time`](batch_modexp_core::BatchModExp::relative_time).
    pub(crate) fn relative_time(&self, bits: u32, count: usize) -> u64 {
        let left_over = count % self.lanes;
        let group = GROUP * u64::from(left_over > 0);
        let last = (self.last_cost)(bits, left_over).map_or(group, |cost| cost.min(group));
        GROUP * (count / self.lanes) as u64 + last
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::adx;
    use crate::fma::PROFILE as FMA;
    use crate::ifma::{PROFILE as IFMA, PROFILE_OF_FOUR as IFMA_FOUR};
    use batch_modexp_core::width::MAX_BITS;

    /// Checks the largest number of instances that are computed apart from groups of lanes.
    fn check(profile: &Profile, expected: &[(u32, usize)]) {
        for &(bits, most) in expected {
            for count in 0..40 {
                let left_over = count % profile.lanes;
                let expected = if left_over <= most { left_over } else { 0 };
                assert_eq!(
                    profile.last(bits, count),
                    expected,
                    "{count} of {bits} bits"
                );
                let on_serial = left_over == 1 && expected == 0 && bits <= profile.single_on_serial;
                assert_eq!(profile.on_serial(bits, count), usize::from(on_serial));
            }
        }
    }

    #[test]
    fn the_last_follow_from_the_width() {
        let (pairs, words) = (&IFMA, &FMA);
        check(pairs, &[(256, 0), (384, 2), (512, 0), (960, 2)]);
        check(pairs, &[(1024, 4), (2048, 4), (4096, 4), (4160, 0)]);
        check(words, &[(256, 0), (512, 3), (576, 0), (768, 1), (1024, 2)]);
        check(words, &[(1536, 2), (2048, 2), (3072, 1), (16_384, 1)]);
        let words = &IFMA_FOUR;
        check(words, &[(256, 0), (512, 1), (576, 0), (1024, 1)]);
        check(words, &[(2048, 1), (2112, 0), (16_384, 1)]);
        check(&FMA.in_groups(), &[(512, 0), (2048, 0)]);
    }

    #[test]
    fn words_serve_what_they_get() {
        for bits in (64..=MAX_BITS).step_by(64) {
            for words in [FMA, IFMA_FOUR] {
                assert!(words.last(bits, 1) == 0 || bits >= adx::MIN_BITS);
            }
        }
    }

    #[test]
    fn more_take_no_less() {
        for profile in [FMA, IFMA_FOUR, FMA.in_groups(), IFMA] {
            for bits in (64..=MAX_BITS).step_by(64) {
                let time = |count| profile.relative_time(bits, count);
                assert!((0..40).map(time).is_sorted(), "{bits}");
                let groups = [0, 1, 4].map(|groups| time(groups * profile.lanes));
                assert_eq!(groups, [0, GROUP, 4 * GROUP]);
            }
        }
    }

    #[test]
    fn wider_moduli_and_ordinary_products_need_no_more() {
        for table in [FMA.products, IFMA.products] {
            for pair in table.windows(2) {
                assert!(pair[0].bits < pair[1].bits);
                let [narrow, wide] = [&pair[0], &pair[1]];
                for (narrow, wide) in [(narrow.shared, wide.shared), (narrow.mixed, wide.mixed)] {
                    assert!(wide[0] <= narrow[0] && wide[1] <= narrow[1]);
                    assert!(wide[0] <= wide[1] && narrow[0] <= narrow[1]);
                }
            }
        }
    }
}

/// Implements the traits of backends for a type whose function `simd` gives its engine, as a trait
/// object. `simd` must be `#[inline(never)]`, so that kernels stay in this crate.
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
                batch_modexp_core::batch::batch_mod_exp(self.simd(), batch, exponent_bits, out)
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
                $crate::lanes::products::batch_mod_mul(batch, out, |run| {
                    self.simd()
                        .multiply(batch_modexp_core::batch::Form::Ordinary, run);
                    Ok(())
                })
            }

            fn batch_monty_mul(
                &self,
                batch: &[batch_modexp_core::ModMul<'_, U>],
                out: &mut [U],
            ) -> Result<(), Self::Error> {
                $crate::lanes::products::batch_mod_mul(batch, out, |run| {
                    self.simd()
                        .multiply(batch_modexp_core::batch::Form::Montgomery, run);
                    Ok(())
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
