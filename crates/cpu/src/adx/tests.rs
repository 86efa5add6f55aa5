mod portable;

use alloc::vec;
use alloc::vec::Vec;

use num_bigint::BigUint;

use self::portable::Portable;
use super::*;
use crate::lanes::testing::{
    Random, check_select, check_step, check_windows, neg_inv, number, pack, unpack,
};

/// Widths of one to many tiles, full and partial.
const WIDTHS: [u32; 10] = [320, 512, 576, 1024, 1088, 1536, 2048, 3072, 4096, 16_384];

fn unit() -> Option<Words<Token>> {
    let token = Token::detect().ok_or("this processor has no BMI2 and ADX");
    crate::need::available("adx", token).map(Words)
}

#[test]
fn windows() {
    check_windows::<Words<Portable>>(&[(100, 3), (500, 4), (501, 5), (1024, 5), (2048, 5)]);
}

/// Random tiles; words are often all zeros or all ones.
fn random_tiles(random: &mut Random, count: usize) -> Vec<Tile> {
    let mut tiles = vec![[0; TILE]; count];
    for pair in tiles.as_flattened_mut().as_chunks_mut().0 {
        let word = match random.next() % 4 {
            0 => 0,
            1 => u64::MAX,
            _ => random.next(),
        };
        *pair = [word as u32, (word >> 32) as u32];
    }
    tiles
}

fn value(tiles: &[Tile]) -> BigUint {
    BigUint::from_slice(tiles.as_flattened())
}

fn power_of_two(tiles: usize) -> BigUint {
    BigUint::from(1u8) << (32 * TILE * tiles)
}

/// Checks each operation against its definition.
fn check_operations<U: Unit>(unit: U, rounds: usize) {
    let mut random = Random(8);
    let ones = [[u32::MAX; TILE]; 8];
    for round in 0..rounds {
        let count = 1 + round % 4;
        let mut tiles = |count: usize| match round % 3 {
            0 => ones[..count].to_vec(),
            _ => random_tiles(&mut random, count),
        };
        let (a, b, sum) = (tiles(count), tiles(1), tiles(count + 1));

        let mut result = sum.clone();
        unit.multiply_add(&mut result, &a, &b[0]);
        let product = value(&a) * value(&b);
        let expected = &product + value(&sum);
        assert_eq!(value(&result), expected % power_of_two(count + 1));
        unit.multiply(&mut result, &a, &b[0]);
        assert_eq!(value(&result), product);

        let mut result = sum.clone();
        unit.square_add(&mut result, &a);
        let words: Vec<BigUint> = a
            .as_flattened()
            .as_chunks()
            .0
            .iter()
            .map(|pair| word(*pair).into())
            .collect();
        let mut product = BigUint::ZERO;
        for i in 0..8 {
            for j in i + 1..words.len() {
                product += (&words[i] * &words[j]) << (64 * (i + j));
            }
        }
        let expected = &product + value(&sum);
        assert_eq!(value(&result), expected % power_of_two(count + 1));
        unit.square(&mut result, &a);
        assert_eq!(value(&result), product);

        let doubled = tiles(2 * count);
        let mut result = doubled.clone();
        unit.double_and_add_squares(&mut result, &a);
        let mut expected = value(&doubled) * 2u8;
        for (i, pair) in a.as_flattened().as_chunks().0.iter().enumerate() {
            expected += BigUint::from(word(*pair)).pow(2) << (128 * i);
        }
        assert_eq!(value(&result), expected % power_of_two(2 * count));

        let subtrahend = tiles(count);
        for take in [0u8, 1] {
            let mut result = a.clone();
            unit.subtract(&mut result, &a, &subtrahend, take.into());
            let expected = power_of_two(count) + value(&a) - value(&subtrahend) * take;
            assert_eq!(value(&result), expected % power_of_two(count));
        }

        let mut modulus = tiles(count);
        modulus[0][0] |= 1;
        let inverse = value(&modulus)
            .modinv(&(BigUint::from(1u8) << 128))
            .unwrap();
        let neg_inv = u128::try_from(inverse).unwrap().wrapping_neg();
        for carry in [0, 1] {
            let mut result = sum.clone();
            let out = unit.eliminate(&mut result, &modulus, neg_inv, carry);
            let total = value(&sum) + value(&result[..1]) * value(&modulus);
            assert_eq!(&total % power_of_two(1), BigUint::ZERO);
            let total = total + power_of_two(count) * carry;
            let result = value(&result[1..]) + power_of_two(count) * out;
            assert_eq!(result, total / power_of_two(1));
        }
    }
}

/// Checks products and squares of numbers of all sizes below `R`, modulo extreme and random moduli.
fn check_products<T: Unit>(unit: Words<T>, bits: u32, rounds: u64) {
    let limbs = Words::<T>::limb_count(bits);
    let r = BigUint::from(1u8) << (32 * limbs);
    let one = BigUint::from(1u8);
    let mut random = Random(u64::from(bits));
    let mut scratch = vec![0; Words::<T>::scratch_len(limbs)];
    let mut out = vec![0; limbs];
    for round in 0..rounds {
        let modulus = match round % 4 {
            0 => (&one << bits) - 1u8,
            1 => number::<Words<T>>(&mut random, bits) | &one | &one << (bits - 1),
            2 => number::<Words<T>>(&mut random, bits) | &one,
            _ => BigUint::from(2 * (random.next() >> 40) + 1),
        };
        let [a, b] = [0, 1].map(|factor| match (round / 4 + factor) % 3 {
            0 => &r - 1u8,
            1 => number::<Words<T>>(&mut random, 32 * limbs as u32),
            _ => &modulus - 1u8,
        });
        let moduli = [modulus];
        let (packed_m, neg_inv) = (
            pack::<Words<T>>(&moduli, limbs),
            neg_inv::<Words<T>>(&moduli),
        );
        let mut constants = [0; 4];
        unit.prepare(&mut constants, &packed_m, &neg_inv, &mut []);
        let packed = LaneModulus {
            limbs: &packed_m,
            neg_inv: &neg_inv,
            constants: &constants,
        };
        let [modulus] = moduli;
        let [packed_a, packed_b] =
            [&a, &b].map(|x| pack::<Words<T>>(core::slice::from_ref(x), limbs));
        let check = |out: &[u32], product: BigUint| {
            let out = unpack::<Words<T>>(out, 0);
            assert_eq!(&out * &r % &modulus, &product % &modulus, "{bits} bits");
            if product < &r * &modulus {
                assert!(out < &modulus * 2u8, "{bits} bits: out of range");
            }
        };
        unit.mul(&mut out, &packed_a, &packed_b, packed, &mut scratch);
        check(&out, &a * &b);
        unit.square(&mut out, &packed_a, packed, &mut scratch);
        check(&out, &a * &a);
    }
}

#[test]
fn operations() {
    let Some(Words(token)) = unit() else { return };
    check_operations(token, 3000);
}

#[test]
fn operations_of_the_portable_unit() {
    check_operations(Portable, 100);
}

#[test]
fn products() {
    let Some(unit) = unit() else { return };
    for bits in WIDTHS {
        check_products(unit, bits, 120);
    }
}

#[test]
fn products_on_the_portable_unit() {
    for bits in WIDTHS {
        check_products(Words(Portable), bits, 12);
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
    check_select(Words(Portable), 512);
}

/// Look-ups read a part of the table before each squaring. Factors are up to twice the modulus here
/// and must be below `R`.
#[test]
fn step() {
    let Some(unit) = unit() else { return };
    for bits in [320, 448, 960, 1472] {
        check_step(unit, bits);
    }
}

#[test]
fn step_on_the_portable_unit() {
    check_step(Words(Portable), 448);
}

/// The Montgomery constants of crypto-bigint suffice.
#[test]
fn r_is_less_than_twice_as_wide() {
    for bits in (MIN_BITS..=16_384).step_by(64) {
        let r_bits = 32 * Words::<Token>::limb_count(bits) as u32;
        assert!((bits..2 * bits).contains(&r_bits), "{bits}");
    }
}
