//! Compares with num-bigint.

use alloc::vec::Vec;

use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd, Word};
use num_bigint::BigUint;

use super::*;

/// Numbers of `limbs` limbs: some with long runs of equal bits, which make carries run far, and
/// others.
fn numbers(limbs: usize) -> Vec<BoxedUint> {
    let bits = limbs as u32 * Limb::BITS;
    let words = |word: fn(Word) -> Word| {
        let mut number = BoxedUint::zero_with_precision(bits);
        for (limb, i) in number.as_mut_limbs().iter_mut().zip(1..) {
            *limb = Limb(word(i));
        }
        number
    };
    let one = BoxedUint::one_with_precision(bits);
    let mut numbers = Vec::from([
        BoxedUint::zero_with_precision(bits),
        one.clone(),
        BoxedUint::max(bits),
        BoxedUint::max(bits).wrapping_sub(&one).wrapping_sub(&one),
        words(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as Word)),
        words(|i| (i + 5).wrapping_pow(31)),
    ]);
    // Short moduli, with leading zeros.
    let short = |number: &BoxedUint| number.shr(bits / 2 + 3);
    let more: Vec<_> = numbers[2..].iter().map(short).collect();
    numbers.extend(more);
    numbers
}

fn big(limbs: &[Limb]) -> BigUint {
    let words = limbs.iter().rev();
    words.fold(BigUint::ZERO, |sum, limb| (sum << Limb::BITS) + limb.0)
}

/// Calls `check` for each odd modulus among the numbers of `limbs` limbs.
fn with_moduli(limbs: usize, check: impl Fn(ModulusRef<'_>, BigUint)) {
    for modulus in numbers(limbs) {
        let m = big(modulus.as_limbs());
        if let Some(odd) = Odd::new(modulus).into_option() {
            let params = BoxedMontyParams::new(odd);
            check(ModulusRef::of(params.as_ref()), m);
        }
    }
}

/// The constants are those of crypto-bigint.
#[test]
fn constants() {
    for limbs in 1..=33 {
        with_moduli(limbs, |expected, number| {
            let modulus = |min_bits| Modulus::new(expected.limbs, min_bits);
            // 1 is a power of two.
            let exact = match number.bits() {
                1 => 0,
                bits => bits as u32,
            };
            for modulus in [modulus(0), modulus(exact), expected.into()] {
                let found = modulus.by_ref();
                assert_eq!([found.limbs, found.r2], [expected.limbs, expected.r2]);
                assert_eq!(found.mod_inv, expected.mod_inv);
            }
        });
    }
}

#[test]
fn every_operation() {
    for limbs in [1, 2, 3, 5, 9] {
        let r = BigUint::from(1u8) << (limbs as u32 * Limb::BITS);
        let values = numbers(limbs);
        with_moduli(limbs, |modulus, m| {
            let mut out = vec![Limb::MAX; limbs];
            for a in &values {
                let (a, value) = (a.as_limbs(), big(a.as_limbs()));
                modulus.remainder(a, &mut out);
                assert_eq!(big(&out), &value % &m);
                modulus.to_montgomery(a, &mut out);
                assert_eq!(big(&out), &value * &r % &m);
                modulus.to_montgomery(&a[..limbs / 2], &mut out);
                assert_eq!(big(&out), big(&a[..limbs / 2]) * &r % &m);
                for b in &values {
                    let b = b.as_limbs();
                    for long in [&[a, b][..], &[a, &b[..1]], &[a, b, &a[..1]]] {
                        let long = long.concat();
                        modulus.remainder(&long, &mut out);
                        assert_eq!(big(&out), big(&long) % &m);
                    }

                    let mut below = vec![Limb::MAX; limbs];
                    modulus.remainder(b, &mut below);
                    modulus.remainder(a, &mut out);
                    let mut difference = vec![Limb::MAX; limbs];
                    modulus.sub(&out, &below, &mut difference);
                    assert_eq!(big(&difference), (big(&out) + &m - big(&below)) % &m);
                    // out * R = a * b.
                    modulus.mul(a, &below, &mut out);
                    assert!(big(&out) < m);
                    assert_eq!(big(&out) * &r % &m, &value * big(&below) % &m);
                }
            }
        });
    }
}

/// Powers with public exponents, short ones and one with a table of odd powers.
#[test]
fn public_powers() {
    let values = numbers(4);
    for exponent in [0, 1, 3, 6, 65_536, 65_537, 0xfedc_ba98_7654_3211] {
        let prepared = PublicExponent::new_vartime(&U64::from_u64(exponent));
        let len = 4 * (2 + prepared.chain().odd_powers);
        with_moduli(4, |modulus, m| {
            let mut scratch = vec![Limb::MAX; len];
            for base in values.iter().map(BoxedUint::as_limbs) {
                let mut out = vec![Limb::MAX; 4];
                for base in [base, &base[..3], &[]] {
                    modulus.public_pow(base, &prepared, &mut scratch, &mut out);
                    assert_eq!(big(&out), big(base).modpow(&exponent.into(), &m));
                }
            }
        });
    }
}

#[test]
fn in_place() {
    let values = numbers(4);
    with_moduli(4, |modulus, m| {
        let mut numbers = vec![Limb::ZERO; 12];
        let [mut value, mut spare, expected] = parts(&mut numbers);
        modulus.remainder(values[4].as_limbs(), value);
        modulus.mul(value, value, expected);
        modulus.square_times(1, &mut value, &mut spare);
        assert_eq!(value, expected);
        modulus.multiply(&mut value, values[5].as_limbs(), &mut spare);
        let product = big(expected) * big(values[5].as_limbs()) % &m;
        assert_eq!((big(value) << (4 * Limb::BITS)) % &m, product);
    });
}

#[test]
fn powers_by_exponents_of_every_length() {
    let values = numbers(4);
    let exponent = values[4].as_limbs();
    with_moduli(4, |modulus, m| {
        for base in values.iter().map(BoxedUint::as_limbs) {
            for exponent_bits in (0..100).chain(253..=256).filter(|bits| bits % 7 < 3) {
                let e = big(exponent) % (BigUint::from(1u8) << exponent_bits);
                let mut out = vec![Limb::MAX; 4];
                for base in [base, &base[..3], &[]] {
                    modulus.pow(base, exponent, exponent_bits, &mut out);
                    assert_eq!(big(&out), big(base).modpow(&e, &m));
                }
            }
        }
    });
}
