use alloc::vec;
use alloc::vec::Vec;

use num_bigint::BigUint;

use super::super::avx512::Token;
use super::super::madd52::Limb8;
use super::super::testing::portable::{EIGHT, Portable};
use super::*;
use crate::lanes::testing::{
    Random, check_products, check_select, check_step, neg_inv, number, pack, unpack,
};

/// The shortest and the longest quarters, and those of RSA's primes and moduli.
const WIDTHS: [u32; 9] = [64, 512, 576, 1024, 1536, 2048, 3072, 4096, MAX_BITS - 2];

fn unit() -> Option<Pairs<Token>> {
    let token = Token::detect().ok_or("this processor has no AVX-512 IFMA");
    crate::need::available("avx512ifma", token).map(Pairs)
}

#[test]
fn there_is_room_and_little_waste() {
    for bits in (64..=MAX_BITS).step_by(2) {
        let limbs = Pairs::<Portable<Limb8>>::limb_count(bits) as u32;
        assert!(limbs * RADIX_BITS >= bits + 2, "{bits}");
        assert!(
            limbs <= 8 || limbs - 4 < (bits + 2).div_ceil(RADIX_BITS),
            "{bits}"
        );
    }
}

#[test]
fn products() {
    let Some(unit) = unit() else { return };
    for bits in (64..=4096).step_by(64) {
        check_products(unit, bits, 40);
    }
    check_products(unit, MAX_BITS, 40);
}

#[test]
fn products_on_the_portable_unit() {
    for bits in WIDTHS {
        check_products(Pairs(EIGHT), bits, 8);
    }
}

#[test]
fn squarings() {
    use crate::lanes::testing::check_squarings;
    for bits in WIDTHS {
        if let Some(unit) = unit() {
            check_squarings(unit, bits);
        }
        check_squarings(Pairs(EIGHT), bits);
    }
}

#[test]
fn look_up() {
    let Some(unit) = unit() else { return };
    for bits in WIDTHS {
        check_select(unit, bits);
    }
}

#[test]
fn look_up_on_the_portable_unit() {
    check_select(Pairs(EIGHT), 512);
    check_select(Pairs(EIGHT), 2048);
}

#[test]
fn step() {
    let Some(unit) = unit() else { return };
    for bits in [512, 1024] {
        check_step(unit, bits);
    }
}

#[test]
fn step_on_the_portable_unit() {
    check_step(Pairs(EIGHT), 512);
}

/// The same number as columns: each limb borrows from the one above, as much as `borrowed` chooses
/// of the available amount.
fn as_columns(limbs: &[Pair], mut borrowed: impl FnMut(u64) -> u64) -> Vec<Pair> {
    let mut columns = limbs.to_vec();
    for i in (1..limbs.len()).rev() {
        for lane in 0..2 {
            let borrowed = borrowed(columns[i].0[lane]);
            columns[i].0[lane] -= borrowed;
            columns[i - 1].0[lane] += borrowed << RADIX_BITS;
        }
    }
    columns
}

/// Checks factors whose limbs are column sums, also with a carry that runs through all limbs.
fn check_columns<T: Across>(unit: Pairs<T>, bits: u32, rounds: u64) {
    let limbs = Pairs::<T>::limb_count(bits);
    let one = BigUint::from(1u8);
    let r = &one << (limbs as u32 * RADIX_BITS);
    let mut random = Random(u64::from(bits));
    for round in 0..rounds {
        let moduli: Vec<BigUint> = (0..2)
            .map(|_| number::<Pairs<T>>(&mut random, bits) | &one << (bits - 1) | &one)
            .collect();
        let mut factors = || -> Vec<BigUint> {
            (0..2)
                .map(|lane| match (round + lane) % 4 {
                    // A number that borrows everywhere, with all ones down to the lowest limb,
                    // which equals the base.
                    0 => &one << (bits - 1),
                    1 => (&one << bits) - 1u8 - (random.next() & 3),
                    2 => &moduli[lane as usize] * 2u8 - 1u8,
                    _ => number::<Pairs<T>>(&mut random, bits),
                })
                .collect()
        };
        let numbers = [factors(), factors()];
        let [a, b] = numbers.each_ref().map(|x| {
            as_columns(&pack::<Pairs<T>>(x, limbs), |there| match round / 4 % 2 {
                0 => there.min(1),
                _ => there.min(random.next() % 512),
            })
        });
        for (lane, number) in numbers[0].iter().enumerate() {
            assert_eq!(unpack::<Pairs<T>>(&a, lane), *number);
        }
        let modulus = pack::<Pairs<T>>(&moduli, limbs);
        let neg_inv = neg_inv::<Pairs<T>>(&moduli);
        let mut constants = [Pair::ZERO; 2];
        unit.prepare(&mut constants, &modulus, &neg_inv, &mut []);
        let modulus = LaneModulus {
            limbs: &modulus,
            neg_inv: &neg_inv,
            constants: &constants,
        };
        let mut out = vec![Pair::ZERO; limbs];
        let check = |out: &[Pair], a: &[Pair], b: &[Pair]| {
            for (lane, modulus) in moduli.iter().enumerate() {
                let [out, a, b] = [out, a, b].map(|x| unpack::<Pairs<T>>(x, lane));
                assert!(out < modulus * 2u8, "{bits} bits: out of range");
                assert_eq!(out * &r % modulus, a * b % modulus, "{bits} bits");
            }
        };
        unit.mul(&mut out, &a, &b, modulus, &mut []);
        check(&out, &a, &b);
        unit.square(&mut out, &a, modulus, &mut []);
        check(&out, &a, &a);

        // Several squarings at once equal squarings one by one.
        let (mut value, mut spare) = (a.clone(), vec![Pair::ZERO; limbs]);
        let mut one_by_one = a.clone();
        for _ in 0..5 {
            unit.square(&mut out, &one_by_one, modulus, &mut []);
            one_by_one.copy_from_slice(&out);
        }
        let (value, spare) = (&mut &mut value[..], &mut &mut spare[..]);
        unit.square_times(value, spare, 5, modulus, &mut []);
        assert_eq!(*value, one_by_one);
    }
}

#[test]
fn columns_are_operands() {
    let Some(unit) = unit() else { return };
    for bits in WIDTHS {
        check_columns(unit, bits, 60);
    }
}

#[test]
fn columns_are_operands_on_the_portable_unit() {
    for bits in WIDTHS {
        check_columns(Pairs(EIGHT), bits, 6);
    }
}

/// Checks the inverses from which quotients are computed.
#[test]
fn two_limbs_of_the_inverse() {
    let mut random = Random(9);
    for _ in 0..100 {
        let moduli: Vec<BigUint> = (0..2)
            .map(|_| number::<Pairs<Portable<Limb8>>>(&mut random, 256) | BigUint::from(1u8))
            .collect();
        let limbs = Pairs::<Portable<Limb8>>::limb_count(256);
        let mut constants = [Pair::ZERO; 2];
        let packed = pack::<Pairs<Portable<Limb8>>>(&moduli, limbs);
        let neg_inv = neg_inv::<Pairs<Portable<Limb8>>>(&moduli);
        Pairs(EIGHT).prepare(&mut constants, &packed, &neg_inv, &mut []);
        let base = BigUint::from(1u8) << (2 * RADIX_BITS);
        for (lane, modulus) in moduli.iter().enumerate() {
            let inverse = unpack::<Pairs<Portable<Limb8>>>(&constants, lane);
            assert_eq!((inverse * modulus + 1u8) % &base, BigUint::ZERO);
        }
    }
}

#[test]
fn pairs_serve_what_they_get() {
    for bits in (64..=batch_modexp_core::width::MAX_BITS).step_by(64) {
        assert!(
            crate::ifma::PROFILE.last(bits, 2) == 0 || bits <= MAX_BITS,
            "{bits}"
        );
    }
}
