//! Products of many powers with public exponents, on every CPU backend, compared with num-bigint.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use batch_modexp::{Error, MultiExpVartime};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{BoxedUint, Odd, U512, U1024};
use num_bigint::{BigRng010 as _, BigUint};

use crate::edge_cases::{all_ones, moduli, power_of_two, rng};
use crate::reference::{boxed_params, to_big, to_boxed, to_fixed};

/// With 192 terms some engines use buckets, all of them on one thread from 2048 bits on. With fewer
/// terms they share squarings. One in twenty [terms] has an exponent of 0, and does not count.
const MANY: usize = 208;

/// Bases and exponents.
type Terms = Vec<(BigUint, BigUint)>;

/// Random terms with bases of `width` bits, some of them edge cases, and exponents of up to `bits`
/// bits. No base shares a factor with the modulus, so that no factor of the product hides another.
fn terms(rng: &mut ChaCha20Rng, count: usize, modulus: &BigUint, width: u32, bits: u32) -> Terms {
    let bases = [
        1u8.into(),
        modulus - 1u8,
        (modulus + 1u8) % power_of_two(width),
        all_ones(width),
    ];
    let exponents = [
        all_ones(bits),
        BigUint::ZERO,
        1u8.into(),
        power_of_two(bits - 1),
    ];
    let term = |i: usize| {
        let base = match i % 7 {
            3 => bases[i / 7 % bases.len()].clone(),
            _ => rng.random_biguint(width.into()),
        };
        let base = if is_coprime(&base, modulus) {
            base
        } else {
            2u8.into()
        };
        let exponent = match i % 5 {
            4 => exponents[i / 5 % exponents.len()].clone(),
            // Of differing lengths.
            rest => rng.random_biguint(u64::from(bits) * (4 - rest as u64) / 4),
        };
        (base, exponent)
    };
    (0..count).map(term).collect()
}

/// Results of one backend's test, for the tests of the others, which have the same numbers.
type Found<K, V> = LazyLock<Mutex<HashMap<K, V>>>;

fn is_coprime(base: &BigUint, modulus: &BigUint) -> bool {
    static FOUND: Found<(BigUint, BigUint), bool> = LazyLock::new(Mutex::default);
    let mut found = FOUND.lock().unwrap();
    let pair = (base.clone(), modulus.clone());
    *found
        .entry(pair)
        .or_insert_with(|| base.modinv(modulus).is_some())
}

/// A random odd number of exactly `width` bits.
fn random_modulus(rng: &mut ChaCha20Rng, width: u32) -> BigUint {
    rng.random_biguint(width.into()) | power_of_two(width - 1) | BigUint::from(1u8)
}

fn expected(terms: &Terms, modulus: &BigUint) -> BigUint {
    static FOUND: Found<(Terms, BigUint), BigUint> = LazyLock::new(Mutex::default);
    let product = || {
        let powers = terms
            .iter()
            .map(|(base, exponent)| base.modpow(exponent, modulus));
        powers.fold(BigUint::from(1u8), |product, power| {
            product * power % modulus
        }) % modulus
    };
    let mut found = FOUND.lock().unwrap();
    let case = (terms.clone(), modulus.clone());
    found.entry(case).or_insert_with(product).clone()
}

#[track_caller]
fn check(backend: &impl MultiExpVartime, terms: &Terms, modulus: &BigUint, width: u32) -> BigUint {
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
    let expected = expected(terms, modulus);
    assert_eq!(
        to_big(&product),
        expected,
        "{} terms, modulus {modulus:x}",
        terms.len()
    );
    assert_eq!(product.bits_precision(), width);
    expected
}

/// The same, and the product is neither 0 nor 1, as that of wrong factors could be too.
#[track_caller]
fn check_nontrivial(backend: &impl MultiExpVartime, terms: &Terms, modulus: &BigUint, width: u32) {
    let product = check(backend, terms, modulus, width);
    assert!(product > BigUint::from(1u8), "{} terms", terms.len());
}

/// Runs all tests of this file.
pub fn all(backend: &impl MultiExpVartime) {
    numbers_of_terms(backend);
    edge_cases(backend);
    single_terms(backend);
    duplicates(backend);
    wide_moduli(backend);
    thousands(backend);
    lengths(backend);
    mixed_lengths(backend);
    exponents_of_zero(backend);
    one_long_exponent(backend);
    fixed_width(backend);
    bad_input_is_an_error(backend);
}

fn numbers_of_terms(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 256);
    check(backend, &Terms::new(), &modulus, 256);
    for count in [1, 2, 7, 8, 9, 16, 17, 64, MANY - 1, MANY, 300, 5000] {
        check_nontrivial(
            backend,
            &terms(&mut rng, count, &modulus, 256, 128),
            &modulus,
            256,
        );
    }
}

/// In buckets, these are more sets than are in memory at a time.
fn one_long_exponent(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 2048);
    for count in [20, 3 * MANY] {
        let mut terms = terms(&mut rng, count, &modulus, 2048, 24);
        terms[10].1 = rng.random_biguint(10_000);
        check_nontrivial(backend, &terms, &modulus, 2048);
    }
}

fn edge_cases(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    for width in [64, 192, 1024, 2048] {
        for modulus in moduli(&mut rng, width) {
            for count in [5, MANY + 3] {
                let terms = terms(&mut rng, count, &modulus, width, 70);
                let product = check(backend, &terms, &modulus, width);
                assert!(product > BigUint::from(1u8) || modulus.bits() < 16);
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

fn single_terms(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    for width in [64, 256, 2048, 3072] {
        let modulus = random_modulus(&mut rng, width);
        for bits in [1, 5, 64, 65, 300] {
            let exponent = rng.random_biguint(bits - 1) | power_of_two(bits as u32 - 1);
            // Powers of 0, 0 and 1.
            for base in [BigUint::ZERO, modulus.clone(), &modulus + 1u8] {
                check(backend, &vec![(base, exponent.clone())], &modulus, width);
            }
            for base in [
                &modulus - 2u8,
                all_ones(width),
                rng.random_biguint(width.into()),
            ] {
                let terms = vec![(base, exponent.clone())];
                check_nontrivial(backend, &terms, &modulus, width);
            }
        }
    }
}

/// Equal terms, and terms with equal bases.
fn duplicates(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 512);
    for count in [20, MANY + 50] {
        let mut terms = vec![terms(&mut rng, 1, &modulus, 512, 100).remove(0); count];
        check_nontrivial(backend, &terms, &modulus, 512);
        for (_, exponent) in &mut terms[count / 2..] {
            *exponent = rng.random_biguint(90);
        }
        check_nontrivial(backend, &terms, &modulus, 512);
    }
}

fn wide_moduli(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    for width in [3072, 4096] {
        let modulus = random_modulus(&mut rng, width);
        for (count, bits) in [(1, 200), (3, 130), (9, 30), (17, 20), (MANY, 8)] {
            let terms = terms(&mut rng, count, &modulus, width, bits);
            check_nontrivial(backend, &terms, &modulus, width);
        }
    }
}

fn lengths(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let all = &[1, 2, 13, 63, 64, 65, 256, 700][..];
    for (width, many, lengths) in [(512, MANY + 20, all), (2048, 2 * MANY + 20, &[13, 65])] {
        let modulus = random_modulus(&mut rng, width);
        for &bits in lengths {
            for count in [6, many] {
                let terms = terms(&mut rng, count, &modulus, width, bits);
                check_nontrivial(backend, &terms, &modulus, width);
            }
        }
    }
}

/// Enough terms for buckets on every engine, also on two threads.
fn thousands(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    for (width, count) in [(512, 6800), (1024, 1700)] {
        let modulus = random_modulus(&mut rng, width);
        let terms = terms(&mut rng, count, &modulus, width, 40);
        check_nontrivial(backend, &terms, &modulus, width);
    }
}

/// Neighbouring exponents of very different lengths, 0 among them.
fn mixed_lengths(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 512);
    for lengths in [&[3, 0, 700, 64, 128, 0, 65, 1][..], &[0, 0, 128, 0, 0]] {
        for count in [5, 10, 33, 100, MANY - 1, MANY + 60, 2 * MANY] {
            let mut terms = terms(&mut rng, count, &modulus, 512, 1);
            for ((_, exponent), length) in terms.iter_mut().zip(lengths.iter().cycle()) {
                *exponent = rng.random_biguint(*length);
            }
            check_nontrivial(backend, &terms, &modulus, 512);
        }
    }
}

fn exponents_of_zero(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 256);
    for count in [1, 9, MANY, 2 * MANY] {
        let random = || (rng.random_biguint(256), BigUint::ZERO);
        let mut terms: Terms = std::iter::repeat_with(random).take(count).collect();
        let product = check(backend, &terms, &modulus, 256);
        assert_eq!(product, 1u8.into());
        // 0^0 is 1.
        terms[0].0 = BigUint::ZERO;
        check(backend, &terms, &modulus, 256);
        terms.push((rng.random_biguint(256), rng.random_biguint(40)));
        check_nontrivial(backend, &terms, &modulus, 256);
    }
    check(
        backend,
        &vec![(BigUint::ZERO, BigUint::ZERO)],
        &1u8.into(),
        256,
    );
}

fn fixed_width(backend: &impl MultiExpVartime) {
    let mut rng = rng();
    let modulus = random_modulus(&mut rng, 1024);
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
