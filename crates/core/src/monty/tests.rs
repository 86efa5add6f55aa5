//! Compares with num-bigint, at exact widths and at widths that are rounded up.

use alloc::vec::Vec;

use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{Odd, U256};
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

/// Checks every operation for moduli of `narrow` limbs in `LIMBS` limbs.
fn equals_num_bigint<const LIMBS: usize>(narrow: usize) {
    let r = BigUint::from(1u8) << (LIMBS as u32 * Limb::BITS);
    let values: Vec<Uint<LIMBS>> = numbers(LIMBS).iter().map(load).collect();
    for modulus in numbers(narrow) {
        let Some(odd) = Odd::new(modulus).into_option() else {
            continue;
        };
        let m = big(odd.as_ref().as_limbs());
        let params = BoxedMontyParams::new(odd);
        let monty = Monty::<LIMBS>::widened(params.as_ref());
        assert_eq!(big(monty.r2.as_limbs()), &r * &r % &m);
        assert_eq!(big(monty.modulus.as_limbs()), m);

        let mut out = Uint::MAX;
        let mut reduced = Uint::MAX;
        for a in &values {
            let value = big(a.as_limbs());
            monty.reduce(a.as_limbs(), &mut reduced);
            assert_eq!(big(reduced.as_limbs()), &value % &m);
            monty.enter(a, &mut out);
            assert_eq!(big(out.as_limbs()), &value * &r % &m);
            for b in &values {
                let long: Vec<_> =
                    [a.as_limbs().as_slice(), b.as_limbs(), &a.as_limbs()[..1]].concat();
                monty.reduce(&long, &mut out);
                assert_eq!(big(out.as_limbs()), big(&long) % &m);

                let mut below = Uint::MAX;
                monty.reduce(b.as_limbs(), &mut below);
                // out * R = a * b.
                monty.mul(a, &below, &mut out);
                assert!(big(out.as_limbs()) < m);
                let product = big(a.as_limbs()) * big(below.as_limbs());
                assert_eq!(big(out.as_limbs()) * &r % &m, product % &m);
            }
        }
    }
}

#[test]
fn every_operation() {
    equals_num_bigint::<1>(1);
    equals_num_bigint::<2>(2);
    equals_num_bigint::<3>(3);
    equals_num_bigint::<5>(4);
    for narrow in 7..=9 {
        equals_num_bigint::<9>(narrow);
    }
}

#[test]
fn powers_by_exponents_of_every_length() {
    let values = numbers(4);
    let exponent = &values[4];
    for modulus in &values {
        let Some(odd) = Odd::new(modulus.clone()).into_option() else {
            continue;
        };
        let params = BoxedMontyParams::new(odd);
        let monty = Monty::<4>::widened(params.as_ref());
        let m = big(modulus.as_limbs());
        for base in &values {
            for exponent_bits in (0..100).chain(253..=256).filter(|bits| bits % 7 < 3) {
                let mut out = U256::MAX;
                let limbs = exponent.as_limbs();
                monty.pow(&load(base), limbs, exponent_bits, &mut out);
                let e = big(limbs) % (BigUint::from(1u8) << exponent_bits);
                assert_eq!(big(out.as_limbs()), big(base.as_limbs()).modpow(&e, &m));
            }
        }
    }
}
