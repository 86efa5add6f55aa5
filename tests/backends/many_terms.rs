//! Products of many powers with public exponents, on every CPU backend, compared with num-bigint.

use batch_modexp::{Error, MultiExpVartime};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{BoxedUint, Odd, U512, U1024};
use num_bigint::{BigRng010 as _, BigUint};

use crate::edge_cases::{all_ones, moduli, power_of_two, rng};
use crate::reference::{boxed_params, to_big, to_boxed, to_fixed};

/// With this many terms each has its own place in a bucket; with fewer, squarings are shared.
const MANY: usize = 192;

/// Bases and exponents.
type Terms = Vec<(BigUint, BigUint)>;

/// Random terms with bases of `width` bits, some of them edge cases, and exponents of up to `bits`
/// bits.
fn terms(rng: &mut ChaCha20Rng, count: usize, modulus: &BigUint, width: u32, bits: u32) -> Terms {
    let bases = [
        1u8.into(),
        modulus - 1u8,
        (modulus + 1u8) % power_of_two(width),
        all_ones(width),
    ];
    let exponents = [
        BigUint::ZERO,
        1u8.into(),
        power_of_two(bits - 1),
        all_ones(bits),
    ];
    let term = |i: usize| {
        let base = match i % 7 {
            0 => bases[i / 7 % bases.len()].clone(),
            _ => rng.random_biguint(width.into()),
        };
        // A factor of 0 would hide all others.
        let base = match (&base % modulus).bits() {
            0 => 1u8.into(),
            _ => base,
        };
        let exponent = match i % 5 {
            0 => exponents[i / 5 % exponents.len()].clone(),
            // Of differing lengths.
            rest => rng.random_biguint(u64::from(bits) * rest as u64 / 4),
        };
        (base, exponent)
    };
    (0..count).map(term).collect()
}

fn expected(terms: &Terms, modulus: &BigUint) -> BigUint {
    let powers = terms
        .iter()
        .map(|(base, exponent)| base.modpow(exponent, modulus));
    powers.fold(BigUint::from(1u8), |product, power| {
        product * power % modulus
    }) % modulus
}

#[track_caller]
fn check(backend: &impl MultiExpVartime, terms: &Terms, modulus: &BigUint, width: u32) {
    let params = boxed_params(modulus, width);
    let numbers = terms.iter().enumerate().map(|(i, (base, exponent))| {
        // Exponents of any width. A base may be narrower than the modulus.
        let bits = (exponent.bits() as u32).max(1).next_multiple_of(64);
        let base_bits = (base.bits() as u32).max(1).next_multiple_of(64);
        let wider = 64 * (i % 3) as u32;
        (to_boxed(base, base_bits), to_boxed(exponent, bits + wider))
    });
    let numbers: Vec<_> = numbers.collect();
    let batch: Vec<_> = numbers
        .iter()
        .map(|(base, exponent)| (base, exponent))
        .collect();
    let product = backend.multi_exp_vartime(&batch, params.as_ref()).unwrap();
    assert_eq!(
        to_big(&product),
        expected(terms, modulus),
        "{} terms, modulus {modulus:x}",
        terms.len()
    );
    assert_eq!(product.bits_precision(), width);
}

/// The same, and the product is not 0, as that of a wrong factor could be too.
#[track_caller]
fn check_not_zero(backend: &impl MultiExpVartime, terms: &Terms, modulus: &BigUint, width: u32) {
    assert_ne!(expected(terms, modulus), BigUint::ZERO);
    check(backend, terms, modulus, width);
}

/// Runs all tests of this file.
pub fn all(backend: &impl MultiExpVartime) {
    numbers_of_terms(backend);
    edge_cases(backend);
    lengths(backend);
    one_long_exponent(backend);
    fixed_width(backend);
    bad_input_is_an_error(backend);
}

fn numbers_of_terms(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = rng.random_biguint(256) | power_of_two(255) | BigUint::from(1u8);
    for count in [0, 1, 2, 7, 8, 9, 64, MANY - 1, MANY, 300, 5000] {
        check_not_zero(
            backend,
            &terms(&mut rng, count, &modulus, 256, 128),
            &modulus,
            256,
        );
    }
}

/// More sets of buckets than are in memory at a time.
fn one_long_exponent(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = rng.random_biguint(128) | power_of_two(127) | BigUint::from(1u8);
    let mut terms = terms(&mut rng, MANY, &modulus, 128, 24);
    terms[100].1 = rng.random_biguint(10_000);
    check_not_zero(backend, &terms, &modulus, 128);
}

fn edge_cases(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    for width in [64, 192, 1024, 2048] {
        for modulus in moduli(&mut rng, width) {
            for count in [5, MANY + 3] {
                check(
                    backend,
                    &terms(&mut rng, count, &modulus, width, 70),
                    &modulus,
                    width,
                );
            }
        }
        // Every number in one bucket, none in any, and a single factor of 0.
        let modulus = all_ones(width);
        for exponent in [0u32, 1, 6, 65_535] {
            for count in [3, MANY] {
                let mut terms = vec![(&modulus - 2u8, exponent.into()); count];
                check(backend, &terms, &modulus, width);
                terms[count / 2] = (BigUint::ZERO, BigUint::from(1u8));
                check(backend, &terms, &modulus, width);
            }
        }
    }
}

fn lengths(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = rng.random_biguint(512) | power_of_two(511) | BigUint::from(1u8);
    for bits in [1, 2, 13, 63, 64, 65, 256, 700] {
        for count in [6, MANY + 20] {
            check_not_zero(
                backend,
                &terms(&mut rng, count, &modulus, 512, bits),
                &modulus,
                512,
            );
        }
    }
}

fn fixed_width(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = rng.random_biguint(1024) | power_of_two(1023) | BigUint::from(1u8);
    let terms = terms(&mut rng, 200, &modulus, 1024, 128);
    let numbers: Vec<(U1024, U1024)> = terms
        .iter()
        .map(|(base, exponent)| (to_fixed(base), to_fixed(exponent)))
        .collect();
    let batch: Vec<_> = numbers
        .iter()
        .map(|(base, exponent)| (base, exponent))
        .collect();
    let params = FixedMontyParams::new(Odd::new(to_fixed::<16>(&modulus)).unwrap());
    let product = backend.multi_exp_vartime(&batch, &params).unwrap();
    assert_ne!(to_big(&product), BigUint::ZERO);
    assert_eq!(to_big(&product), expected(&terms, &modulus));

    let params = FixedMontyParams::new(Odd::new(U512::ONE).unwrap());
    let product = backend.multi_exp_vartime(&[], &params).unwrap();
    assert_eq!(product, U512::ZERO);
}

fn bad_input_is_an_error(backend: &impl MultiExpVartime) {
    let params = boxed_params(&(power_of_two(255) + 19u8), 256);
    let too_wide = boxed_params(&(power_of_two(16_447) + 1u8), 16_448);
    let [base, wide] = [256, 320].map(BoxedUint::max);
    let terms = [(&base, &wide), (&wide, &base)];
    let base_width = Error::BaseWidth {
        index: 1,
        bits: 320,
        modulus_bits: 256,
    };
    let result = backend.multi_exp_vartime(&terms, params.as_ref());
    assert_eq!(result.err(), Some(base_width));
    assert!(matches!(
        backend.multi_exp_vartime(&terms, too_wide.as_ref()),
        Err(Error::ModulusWidth { bits: 16_448, .. })
    ));
}
