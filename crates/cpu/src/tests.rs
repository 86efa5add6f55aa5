//! Products, powers and remainders of every engine, compared with num-bigint.

// On targets without lanes.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(unused_macros, unused_mut)
)]

#[cfg(target_arch = "x86_64")]
mod fixed_base;
mod remainders;

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::engine::{Comparison, Engine};
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::{PublicExponent, Serial};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd, Word};
use num_bigint::BigUint;

use crate::AnyEngine;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::simd::each_simd_backend;

/// Runs `f` with all engines of this machine, and with emulated ones.
pub(super) fn for_each_engine(mut f: impl FnMut(&str, &dyn Engine)) {
    f("serial", &Serial);
    #[cfg(target_arch = "x86_64")]
    {
        let eight = ifma::testing::eight_on_portable_unit();
        f("portable ifma", eight.engine());
        let four = ifma::testing::four_on_portable_unit();
        f("portable ifma, four lanes", four.engine());
        if let Some(four) = ifma::testing::four_by_evex() {
            f("ifma, four lanes", four.engine());
        }
    }
    macro_rules! run {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = crate::$Backend::new() {
                f(stringify!($name), backend.engine());
            }
        };
    }
    each_simd_backend!(run);
    f("any engine", &AnyEngine::fastest());
}

/// Covers the engines that [`for_each_engine`] leaves out.
#[cfg(target_arch = "x86_64")]
#[test]
fn engines_that_this_processor_lacks() {
    let four = ifma::testing::four_by_evex();
    crate::need::available("avx512ifma", four.ok_or("no AVX-512 IFMA of 256 bits"));
    macro_rules! run {
        ($name:ident: $Backend:ident) => {
            let backend = crate::$Backend::new().ok_or("the processor lacks the instructions");
            crate::need::available(stringify!($name), backend);
        };
    }
    each_simd_backend!(run);
}

/// [`AnyEngine::all`] has every backend of the list for tests, and the list has every engine.
#[test]
fn all_engines_are_in_the_list() {
    let mut names = vec!["serial"];
    macro_rules! run {
        ($name:ident: $Backend:ident) => {
            if crate::$Backend::new().is_some() {
                names.push(stringify!($name));
            }
        };
    }
    each_simd_backend!(run);
    // The compiler asks for a new engine here. It also belongs in `each`, and in the list for tests.
    let name = |engine| match engine {
        AnyEngine::Serial => "serial",
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        AnyEngine::Fma(_) => "fma",
        #[cfg(target_arch = "x86_64")]
        AnyEngine::Ifma(_) => "ifma",
    };
    let mut all: Vec<_> = AnyEngine::all().map(name).collect();
    all.sort_unstable();
    names.sort_unstable();
    assert_eq!(all, names);
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): reproducible test data.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn limbs(&mut self, count: usize) -> Vec<Limb> {
        (0..count).map(|_| Limb(self.next() as _)).collect()
    }

    /// An odd modulus of `limbs` limbs with `zeros` leading zero bits.
    pub(super) fn modulus(&mut self, limbs: usize, zeros: u32) -> BoxedMontyParams {
        let mut number = BoxedUint::zero_with_precision(limbs as u32 * Limb::BITS);
        number.as_mut_limbs().copy_from_slice(&self.limbs(limbs));
        let top = &mut number.as_mut_limbs()[limbs - 1];
        *top = Limb((top.0 | 1 << (Limb::BITS - 1)) >> zeros);
        number.as_mut_limbs()[0] |= Limb::ONE;
        BoxedMontyParams::new(Odd::new(number).unwrap())
    }
}

fn value(limbs: &[Limb]) -> BigUint {
    let limbs = limbs.iter().rev();
    limbs.fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
}

/// Writes the low limbs of a number, for any limb width.
fn set_value(limbs: &mut [Limb], value: &BigUint) {
    let octets = value.to_bytes_le();
    let mut octets = octets.into_iter();
    limbs.fill_with(|| {
        let word = [(); Limb::BYTES].map(|()| octets.next().unwrap_or(0));
        Limb(Word::from_le_bytes(word))
    });
}

fn modulus_of(modulus: ModulusRef<'_>) -> BigUint {
    value(modulus.limbs)
}

/// The modulus of each number, one of two.
fn lanes(count: usize, moduli: &[BoxedMontyParams; 2]) -> Vec<ModulusRef<'_>> {
    let of = |lane| ModulusRef::of(moduli[usize::from(lane % 7 == 3 || lane >= 12)].as_ref());
    (0..count).map(of).collect()
}

#[test]
fn products_and_public_powers() {
    let mut random = Random(1);
    let exponents = [1u64, 2, 3, 65_537, u64::MAX].map(BoxedUint::from);
    let widths = [(1, 0), (4, 1), (16, 0), (17, 40), (33, 5)];
    for (limbs, zeros) in widths {
        let moduli = [(); 2].map(|()| random.modulus(limbs, zeros));
        for (exponent, count) in exponents.iter().zip([1, 3, 8, 17, 9]) {
            let moduli = lanes(count, &moduli);
            let mut bases = random.limbs(count * limbs);
            let mut factors = random.limbs(count * limbs);
            // Edge cases: 0, 1, all ones, n - 1.
            bases[..limbs].fill(Limb::ZERO);
            factors[(count - 1) * limbs..].fill(Limb::MAX);
            bases[(count - 1) * limbs..].fill(Limb::MAX);
            for_each_engine(|name, engine| {
                let big = value(exponent.as_limbs());
                let mut powers = vec![(PublicExponent::new_vartime(exponent), big.clone())];
                if big.bit(0) && big > BigUint::from(1u8) {
                    powers.push((PublicExponent::one_less(exponent.as_limbs()), big - 1u8));
                }
                let number = |limbs_: &[Limb], lane: usize| value(&limbs_[lane * limbs..][..limbs]);
                for (power, big) in &powers {
                    let found = engine.public_powers(&moduli, power, &bases);
                    for (lane, modulus) in moduli.iter().enumerate() {
                        let n = modulus_of(*modulus);
                        let expected = number(&bases, lane).modpow(big, &n);
                        let found = number(&found, lane);
                        assert_eq!(found, expected, "{name}, {limbs} limbs, lane {lane}");
                    }
                }
                let found = engine.products(&moduli, &bases, &factors);
                for (lane, modulus) in moduli.iter().enumerate() {
                    let expected = number(&bases, lane) * number(&factors, lane);
                    let found = number(&found, lane);
                    let expected = expected % modulus_of(*modulus);
                    assert_eq!(found, expected, "{name}, {limbs} limbs, lane {lane}");
                }
            });
        }
    }
}

#[test]
fn powers_modulo_two_narrow_factors() {
    check_powers_modulo_two_factors(&[
        (4, 1, [1, u64::MAX]),
        (8, 0, [2, 1]),
        (16, 0, [3, 2]),
        (16, 2, [65_537, 3]),
        (17, 40, [u64::MAX, 65_537]),
    ]);
}

#[test]
fn powers_modulo_two_medium_factors() {
    check_powers_modulo_two_factors(&[(20, 63, [1, u64::MAX]), (24, 0, [2, 1])]);
}

#[test]
fn powers_modulo_two_wide_factors() {
    check_powers_modulo_two_factors(&[(32, 0, [3, 2]), (33, 5, [65_537, 3])]);
}

/// Right powers agree for all masks; powers that are wrong modulo one factor or both do not. A case
/// is the factors' limbs, their leading zero bits, and exponents. Three tests share the cases, since
/// emulated engines take long.
fn check_powers_modulo_two_factors(cases: &[(usize, u32, [u64; 2])]) {
    let mut random = Random(6);
    let cases = cases.iter().flat_map(|(half, zeros, exponents)| {
        let exponents = exponents.map(BoxedUint::from).into_iter();
        exponents.map(|exponent| (*half, *zeros, exponent))
    });
    for (half, zeros, exponent) in cases {
        for (size, count) in [(2 * half, 9), (2 * half - 1, 17), (half, 3)] {
            let factors = [(); 2].map(|()| [(); 2].map(|()| random.modulus(half, zeros)));
            let factors = factors.each_ref().map(|factors| lanes(count, factors));
            let mut bases = random.limbs(count * size);
            bases[..size].fill(Limb::ZERO);
            bases[(count - 1) * size..].fill(Limb::MAX);
            let number = |limbs: &[Limb], lane: usize| value(&limbs[lane * size..][..size]);
            let n = |lane: usize| modulus_of(factors[0][lane]) * modulus_of(factors[1][lane]);
            let power = |lane: usize| {
                let power = number(&bases, lane).modpow(&value(exponent.as_limbs()), &n(lane));
                // A number that is congruent, not reduced, and fits agrees too.
                let widest = BigUint::from(1u8) << (size as u32 * Limb::BITS);
                (power < widest).then_some(power)
            };
            let mut expected = vec![Limb::MAX; count * size];
            let is_right: Vec<bool> = (0..count)
                .map(|lane| {
                    let place = &mut expected[lane * size..][..size];
                    let power = power(lane);
                    if let Some(power) = &power {
                        set_value(place, power);
                    }
                    power.is_some()
                })
                .collect();
            let primes = factors.concat();
            let ones = vec![1; 2 * count];
            let masks: Vec<_> = random.limbs(2 * count);
            let masks: Vec<_> = masks.iter().map(|limb| limb.0 as u16).collect();
            let largest = vec![u16::MAX; 2 * count];
            let all_masks = [None, Some(&ones), Some(&masks), Some(&largest)];
            for masks in all_masks.map(|masks| masks.map(Vec::as_slice)) {
                for_each_engine(|name, engine| {
                    let agree = |bases: &[Limb], expected: &[Limb]| {
                        let powers = Comparison {
                            primes: &primes,
                            exponent: &PublicExponent::new_vartime(&exponent),
                            bases,
                            expected,
                            masks,
                        };
                        let verdicts = engine.run_powers_agree(&powers)?;
                        let verdicts = verdicts.iter().map(|verdict| verdict.to_bool());
                        Some(verdicts.collect::<Vec<_>>())
                    };
                    let Some(right) = agree(&bases, &expected) else {
                        return;
                    };
                    assert_eq!(right, is_right, "{name}, {half} limbs");
                    // Numbers that are wrong modulo both factors, modulo the first and modulo the
                    // second.
                    let [both, first, second] = [0, 1, 2].map(|i| (count / 2 + i) % count);
                    let (mut wrong, mut others) = (expected.clone(), is_right.clone());
                    wrong[(both + 1) * size - 1] ^= Limb::ONE;
                    for (lane, factor) in [second, first].into_iter().zip(&factors) {
                        let place = &mut wrong[lane * size..][..size];
                        let sum = value(place) + modulus_of(factor[lane]);
                        set_value(place, &sum);
                    }
                    for lane in [both, first, second] {
                        others[lane] = false;
                    }
                    assert_eq!(agree(&bases, &wrong), Some(others), "{name}, {half} limbs");
                });
            }
        }
    }
}

#[test]
fn no_powers_modulo_two_factors() {
    let powers = Comparison {
        primes: &[],
        exponent: &PublicExponent::new_vartime(&BoxedUint::one()),
        bases: &[],
        expected: &[],
        masks: None,
    };
    for_each_engine(|name, engine| {
        assert!(engine.powers_agree(&[], &powers).is_empty(), "{name}");
        let agree = engine.run_powers_agree(&powers);
        assert!(agree.is_none_or(|verdicts| verdicts.is_empty()), "{name}");
    });
}

/// Checks several runs in one call, and an empty one.
#[test]
fn every_engine_takes_runs() {
    let mut random = Random(4);
    let moduli = [(); 2].map(|()| random.modulus(5, 0));
    let moduli: Vec<_> = (0..30)
        .map(|lane| ModulusRef::of(moduli[lane / 20].as_ref()))
        .collect();
    let (bases, factors) = (random.limbs(30 * 5), random.limbs(30 * 5));
    for_each_engine(|name, engine| {
        let products = engine.products(&moduli, &bases, &factors);
        let numbers = |limbs: &[Limb]| -> Vec<_> { limbs.chunks_exact(5).map(value).collect() };
        let operands = numbers(&bases).into_iter().zip(numbers(&factors));
        let lanes = numbers(&products).into_iter().zip(operands).zip(&moduli);
        for ((product, (base, factor)), modulus) in lanes {
            assert_eq!(product, base * factor % modulus_of(*modulus), "{name}");
        }
        assert!(engine.products(&[], &[], &[]).is_empty());
    });
}
