//! Tests of the model against big integers.

use num_bigint::BigUint;
use rns_bases::model::{InstanceModulus, Model};
use rns_bases::{Bases, Constants, WIDTHS};

/// Numbers of `bits` bits, derived from a seed.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 32 ^ self.0 >> 17) as u32
    }

    fn number(&mut self, bits: u32) -> BigUint {
        BigUint::new((0..bits / 32).map(|_| self.word()).collect())
    }
}

struct Case {
    bases: Bases,
    model: Model,
    modulus: BigUint,
    of_modulus: InstanceModulus,
}

impl Case {
    fn new(bits: u32, modulus: BigUint) -> Self {
        let bases = Bases::new(bits).unwrap();
        let model = Model::new(&bases);
        let of_modulus = model.modulus(&words(&modulus, bits));
        Self {
            bases,
            model,
            modulus,
            of_modulus,
        }
    }

    fn enter(&self, number: &BigUint) -> Vec<u32> {
        self.model.from_words(&words(number, self.bases.bits))
    }

    /// The integer that z represents, by the Chinese remainder theorem.
    fn integer(&self, z: &[u32]) -> BigUint {
        let (a, b) = (self.bases.product_a(), self.bases.product_b());
        let terms = z.iter().zip(&self.bases.b).map(|(&z, &m)| {
            let cofactor = &b / m;
            let inverse = (&cofactor % m).modpow(&BigUint::from(m - 2), &BigUint::from(m));
            BigUint::from(z) * &a % m * inverse % m * cofactor
        });
        terms.sum::<BigUint>() % b
    }

    fn r2(&self) -> BigUint {
        (BigUint::from(1u32) << (2 * self.bases.bits)) % &self.modulus
    }
}

fn words(number: &BigUint, bits: u32) -> Vec<u32> {
    let mut words = number.to_u32_digits();
    words.resize(bits as usize / 32, 0);
    words
}

/// A narrow, an ordinary and the widest odd modulus.
fn moduli(bits: u32) -> Vec<BigUint> {
    let ones = (BigUint::from(1u32) << bits) - 1u32;
    let middle = Numbers(bits.into()).number(bits) | BigUint::from(1u32);
    vec![BigUint::from(1u32), BigUint::from(3u32), middle, ones]
}

#[test]
fn numbers_enter_and_leave() {
    for (bits, _) in WIDTHS {
        let case = Case::new(bits, moduli(bits)[2].clone());
        let ones = (BigUint::from(1u32) << bits) - 1u32;
        for number in [
            BigUint::ZERO,
            BigUint::from(1u32),
            ones,
            Numbers(7).number(bits),
        ] {
            let z = case.enter(&number);
            assert_eq!(case.integer(&z), number);
            assert_eq!(BigUint::new(case.model.to_words(&z)), number);
            let in_a = case.model.extend(&z);
            let (a, b) = (&case.bases.a, case.bases.product_b());
            for (&m, residue) in a.iter().zip(in_a) {
                assert_eq!(&b * residue % m, (BigUint::from(m) - &number % m) % m);
            }
        }
    }
}

#[test]
fn products_are_montgomery_products() {
    for (bits, _) in WIDTHS {
        for modulus in moduli(bits) {
            let case = Case::new(bits, modulus);
            let (model, m) = (&case.model, &case.modulus);
            let mut numbers = Numbers(u64::from(bits) + 1);
            let (x, y) = (numbers.number(bits), numbers.number(bits));
            let z = model.multiply(&case.enter(&x), &case.enter(&y), &case.of_modulus);
            let integer = case.integer(&z);
            let a = case.bases.product_a();
            assert_eq!(&integer * &a % m, &x * &y % m);
            assert!(integer < x * y / a + m * 2u32 * case.bases.count() as u32 + 1u32);
        }
    }
}

/// A whole computation: conversion to residues, two squarings, a product, and conversion back.
#[test]
fn powers() {
    for (bits, _) in WIDTHS {
        for modulus in moduli(bits) {
            let case = Case::new(bits, modulus);
            let (model, of_modulus) = (&case.model, &case.of_modulus);
            let square = model.a_squared(&case.enter(&case.r2()), of_modulus);
            let a = case.bases.product_a();
            assert_eq!(
                case.integer(&square) % &case.modulus,
                &a * &a % &case.modulus
            );
            let number = Numbers(3).number(bits);
            let x = model.multiply(&case.enter(&number), &square, of_modulus);
            let second = model.multiply(&x, &x, of_modulus);
            let fourth = model.multiply(&second, &second, of_modulus);
            let fifth = model.multiply(&fourth, &x, of_modulus);
            let left = model.multiply_public(&fifth, model.one(), of_modulus);
            let result = BigUint::new(model.to_words(&left));
            let multiple = match case.bases.count() {
                0..=36 => 64u32,
                37..=72 => 128,
                _ => 256,
            };
            assert!(result < &case.modulus * multiple);
            assert_eq!(
                result % &case.modulus,
                number.modpow(&BigUint::from(5u32), &case.modulus)
            );
        }
    }
}

/// A number of twice the width, such as a message that is reduced modulo a prime of its key.
#[test]
fn numbers_of_two_parts() {
    for (bits, _) in WIDTHS {
        let ones = (BigUint::from(1u32) << (2 * bits)) - 1u32;
        for modulus in moduli(bits) {
            for number in [&ones, &Numbers(11).number(2 * bits), &BigUint::ZERO] {
                let case = Case::new(bits, modulus.clone());
                let (model, of_modulus) = (&case.model, &case.of_modulus);
                let square = model.a_squared(&case.enter(&case.r2()), of_modulus);
                let upper = number >> bits;
                let lower = number - (&upper << bits);
                let parts = [lower, upper].map(|part| case.enter(&part));
                let x = model.two_parts(&parts[0], &parts[1], &square, of_modulus);
                let integer = case.integer(&x);
                // The bound for products.
                let multiple = if case.bases.count() > 72 { 215u32 } else { 97 };
                assert!(integer < BigUint::from(multiple) << bits);
                assert_eq!(
                    integer % &modulus,
                    number * case.bases.product_a() % &modulus
                );
            }
        }
    }
}

/// The factors of a modulus show the divisors that it shares with A.
#[test]
fn common_factors() {
    for (bits, count) in WIDTHS {
        let bases = Bases::new(bits).unwrap();
        for i in [0, 5, count - 1] {
            let case = Case::new(bits, BigUint::from(bases.a[i]) * 3u32);
            for (j, &factor) in case.of_modulus.factors.iter().enumerate() {
                assert_eq!(factor == 0, i == j);
            }
            let other = Case::new(bits, BigUint::from(bases.b[i]) * 3u32);
            assert!(other.of_modulus.factors.iter().all(|&factor| factor != 0));
        }
    }
}

/// The kernels compute the matrices from the distances of the moduli and kappa.
#[test]
fn matrices_follow_from_distances() {
    for (bits, _) in WIDTHS {
        let bases = Bases::new(bits).unwrap();
        let constants = Constants::new(&bases);
        let product_b = bases.product_b();
        for (j, &b) in bases.b.iter().enumerate() {
            for (i, &a) in bases.a.iter().enumerate() {
                let difference = i64::from(a) - i64::from(b);
                let inverse = |m: u32| {
                    let reduced = BigUint::from(difference.rem_euclid(i64::from(m)) as u32);
                    reduced.modpow(&BigUint::from(m - 2), &BigUint::from(m))
                };
                assert_eq!(BigUint::from(constants.a_to_b[i][j]), inverse(b));
                let expected = inverse(a) * constants.kappa[j] % a;
                assert_eq!(BigUint::from(constants.b_to_a[j][i]), expected);
            }
            let word = BigUint::from(1u32) << (32 * constants.leave[j].len());
            let cofactor = &product_b / b * constants.kappa[j] % word;
            assert_eq!(BigUint::new(constants.leave[j].clone()), cofactor);
        }
        let mut power = constants.public[0].in_b.clone();
        for row in &constants.enter {
            assert_eq!(*row, power);
            let next = |(&x, &m)| ((u64::from(x) << 32) % u64::from(m)) as u32;
            power = power.iter().zip(&bases.b).map(next).collect();
        }
    }
}
