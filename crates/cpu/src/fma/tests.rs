mod portable;

use batch_modexp_core::{BatchModExp, ModExp};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{NonZero, Odd, Uint, Word};
use num_bigint::BigUint;

use self::portable::Portable;
use super::Token;
use super::fma51::{Fma51, Limb};
use super::lanes4::Lanes4;
use crate::Fma;
use crate::lanes::testing::{
    Random, check_ladder, check_products, check_select, check_select_of_row, check_step,
    check_windows,
};

fn unit() -> Option<Lanes4<Token>> {
    let token = Token::detect().ok_or("this processor has no AVX2 and FMA, nor NEON");
    crate::need::available("fma", token).map(Lanes4)
}

#[test]
fn windows() {
    check_windows::<Lanes4<Portable>>(&[(100, 3), (512, 4), (1024, 4), (1600, 4), (2048, 5)]);
}

/// Checks that `H` and `L` of a product are those that the bounds of the columns assume.
fn check_product<T: Fma51>(t: T, a: u64, b: u64) {
    let splat = |value: u64| t.load(&Limb([(value as f64).to_bits(); 4]));
    let (high, low) = t.product(splat(a), splat(b));
    let mut limbs = [Limb::ZERO; 2];
    t.store_sums(&mut limbs[0], high);
    t.store_sums(&mut limbs[1], low);
    for lane in 0..4 {
        let high = limbs[0].0[lane].wrapping_sub(0x466 << 52);
        let low = limbs[1].0[lane].wrapping_sub((0x433 << 52) + (1 << 51)) as i64;
        assert!(
            low.unsigned_abs() <= 1 << 50,
            "{a:#x} * {b:#x}: low half {low}"
        );
        let sum = (i128::from(high) << 51) + i128::from(low);
        assert_eq!(sum, i128::from(a) * i128::from(b), "{a:#x} * {b:#x}");
    }
}

fn check_all_products<T: Fma51>(t: T, rounds: usize) {
    let mut extremes = alloc::vec![0, 1, 2, 3];
    for bits in [25, 26, 49, 50, 51] {
        extremes.extend([(1u64 << bits) - 1, 1 << bits, (1 << bits) - 2]);
    }
    for a in &extremes {
        for b in &extremes {
            check_product(t, *a, *b);
        }
    }
    // One factor doubled, as in a squaring of normalised limbs.
    for a in extremes.iter().filter(|a| **a < 1 << 51) {
        for b in extremes.iter().filter(|b| **b < 1 << 51) {
            check_product(t, 2 * *a, *b);
        }
    }
    let mut random = Random(51);
    for _ in 0..rounds {
        check_product(t, random.limb(51), random.limb(51));
    }
}

#[test]
fn halves_of_products() {
    let Some(Lanes4(token)) = unit() else { return };
    check_all_products(token, 1_000_000);
}

#[test]
fn halves_of_products_on_the_portable_unit() {
    check_all_products(Portable, 1000);
}

#[test]
fn products() {
    let Some(unit) = unit() else { return };
    for bits in (64..=1344).step_by(64) {
        check_products(unit, bits, 40);
    }
    for bits in [1536, 2048, 2112, 3072, 4096, 6144, 16_384] {
        check_products(unit, bits, 8);
    }
}

#[test]
fn products_on_the_portable_unit() {
    for bits in [64, 128, 192, 256, 512, 1024, 2048] {
        check_products(Lanes4(Portable), bits, 4);
    }
}

#[test]
fn squarings() {
    use crate::lanes::testing::check_squarings;
    let widths = [64, 192, 512, 1024, 1038, 2112, 4096];
    if let Some(unit) = unit() {
        widths
            .into_iter()
            .for_each(|bits| check_squarings(unit, bits));
    }
    let portable = Lanes4(Portable);
    (widths.into_iter()).for_each(|bits| check_squarings(portable, bits));
}

#[test]
fn look_up() {
    let Some(unit) = unit() else { return };
    for bits in [64, 512, 576, 1024, 2048] {
        check_select(unit, bits);
        check_select_of_row(unit, bits);
    }
}

#[test]
fn look_up_on_the_portable_unit() {
    check_select(Lanes4(Portable), 512);
    check_select_of_row(Lanes4(Portable), 512);
}

#[test]
fn step() {
    let Some(unit) = unit() else { return };
    for bits in [64, 512, 1024] {
        check_step(unit, bits);
        check_ladder(unit, bits);
    }
}

/// A whole batch, small enough for Miri (`.ci/run miri`).
#[test]
fn a_small_batch() {
    let fma = Fma::new().ok_or("this processor has no AVX2 and FMA, nor NEON");
    let Some(fma) = crate::need::available("fma", fma) else {
        return;
    };
    check_small_batch::<1>(fma);
    check_small_batch::<2>(fma);
    // Several bands of limbs and a partial one.
    check_small_batch::<16>(fma);
}

/// Checks a full group of lanes and one more instance.
fn check_small_batch<const LIMBS: usize>(fma: Fma) {
    let wide =
        |divisor: u64| Uint::<LIMBS>::MAX / NonZero::new(Uint::<LIMBS>::from(divisor)).unwrap();
    let moduli = [1, 3, 5, 17, 257].map(|divisor| wide(divisor) | Uint::ONE);
    let params = moduli.map(|modulus| MontyParams::new(Odd::new(modulus).unwrap()));
    let (base, exponent) = (wide(2), Uint::<LIMBS>::from(11u8));
    let batch = params
        .each_ref()
        .map(|params| ModExp::new(&base, &exponent, params));
    let mut out = [Uint::<LIMBS>::ZERO; 5];
    fma.batch_mod_exp(&batch, 4, &mut out).unwrap();
    for (out, modulus) in out.iter().zip(&moduli) {
        let [out, base, modulus] = [out, &base, modulus].map(big);
        assert_eq!(out, base.modpow(&BigUint::from(11u8), &modulus));
    }
}

fn big<const LIMBS: usize>(number: &Uint<LIMBS>) -> BigUint {
    let words = number.as_words().iter();
    words
        .rev()
        .fold(BigUint::ZERO, |number, word| (number << Word::BITS) + *word)
}
