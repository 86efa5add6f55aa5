//! Tests of the bounds in docs/rns.md with the worst operands of every stage, for every modulus of
//! every base.
//!
//! If a word of the kernels could overflow, the model's sum would panic.

use num_bigint::BigUint;
use rns_bases::model::{Columns, Model, Modulus};
use rns_bases::{Bases, WIDTHS};

/// Upper bounds for residues in base B, which are below 2.5 m, and for quotient digits, below
/// 1.3125 m: the words with the greatest bytes under these limits.
const GREATEST_RESIDUE: u32 = 0x4fff_ffff;
const GREATEST_DIGIT: u32 = 0x29ff_ffff;
/// Upper bounds for the results of `fold` and `fold_loosely`.
const GREATEST_FOLDED: u32 = (1 << 29) + (1 << 28) - 1;
const GREATEST_LOOSE: u32 = 0u32.wrapping_sub(1 << 30) - 1;
/// The greatest sums that `fold_loosely` accepts.
const LOOSE_SUMS: Columns = Columns {
    low: (1 << 31) - 1,
    high: (1 << 29) - 1,
};

fn folds_loosely(bases: &Bases) -> bool {
    bases.count() <= 36
}

fn models() -> impl Iterator<Item = (Bases, Model)> {
    let bases = WIDTHS.iter().map(|&(bits, _)| Bases::new(bits).unwrap());
    bases.map(|bases| {
        let model = Model::new(&bases);
        (bases, model)
    })
}

fn moduli() -> impl Iterator<Item = Modulus> {
    models().flat_map(|(_, model)| [model.base_a(), model.base_b()].concat())
}

fn below_two_and_a_half(value: u32, m: Modulus) -> bool {
    u64::from(value) * 2 < u64::from(m.value()) * 5
}

/// Checks sums that `fold_for_product` may get.
fn check_fold_for_product(bases: &Bases, model: &Model, m: Modulus, columns: Columns) {
    if folds_loosely(bases) {
        assert!(columns.low <= LOOSE_SUMS.low && columns.high <= LOOSE_SUMS.high);
        let folded = model.fold_for_product(m, columns);
        let value = u64::from(columns.low) + (u64::from(columns.high) << 16);
        assert!(folded <= GREATEST_LOOSE, "{folded:#x}");
        assert_eq!(
            u64::from(folded) % u64::from(m.value()),
            value % u64::from(m.value())
        );
    } else {
        check_fold(m, columns);
        let folded = model.fold_for_product(m, columns);
        assert_eq!(folded, m.fold(columns.low, columns.high));
    }
}

fn check_fold(m: Modulus, columns: Columns) {
    let Columns { low, high } = columns;
    assert!(high < 1 << 30);
    let folded = m.fold(low, high);
    let value = u64::from(low) + (u64::from(high) << 16);
    assert!(folded <= GREATEST_FOLDED, "{folded:#x}");
    assert_eq!(
        u64::from(folded) % u64::from(m.value()),
        value % u64::from(m.value())
    );
}

#[test]
fn extensions_of_the_greatest_residues() {
    for (bases, model) in models() {
        let columns = model.columns_in_a(&vec![GREATEST_RESIDUE; bases.count()]);
        for (&m, columns) in model.base_a().iter().zip(columns) {
            check_fold_for_product(&bases, &model, m, columns);
        }
        let columns = model.columns_in_b(&vec![GREATEST_DIGIT; bases.count()]);
        for (&m, columns) in model.base_b().iter().zip(columns) {
            check_fold_for_product(&bases, &model, m, columns);
        }
        let words = model.from_words(&vec![u32::MAX; bases.bits as usize / 32]);
        assert!(words.iter().all(|&residue| residue <= GREATEST_FOLDED));
    }
}

/// No sum of residues overflows: all are below those with the greatest possible matrix bytes.
#[test]
fn sums_have_room() {
    for (bases, _) in models() {
        let bytes = u64::from(
            GREATEST_RESIDUE
                .to_le_bytes()
                .map(u32::from)
                .iter()
                .sum::<u32>(),
        );
        let rows = bases.count() as u64 * bytes;
        let quotient_low = (1 << 8) + (1 << 24) + (1 << 16);
        let low = rows * 255 * 257 + quotient_low + (1 << 24);
        // The highest byte of a constant below 2^29 is below 32.
        let high = rows * (255 + 31 * 256) + (1 << 24);
        assert!(low < 1 << 32);
        assert!(high < 1 << 30);
        if folds_loosely(&bases) {
            assert!(low <= LOOSE_SUMS.low.into() && high <= LOOSE_SUMS.high.into());
        }
    }
}

#[test]
fn greatest_folds() {
    for m in moduli() {
        for low in [u32::MAX, u32::MAX << 16, 0xffff] {
            for high in [(1 << 30) - 1, (1 << 30) - (1 << 13), (1 << 13) - 1] {
                if m.distance < 1 << 11 || high < 1 << 29 {
                    check_fold(m, Columns { low, high });
                }
            }
        }
    }
}

#[test]
fn greatest_loose_folds() {
    for (bases, model) in models().filter(|(bases, _)| folds_loosely(bases)) {
        for m in [model.base_a(), model.base_b()].concat() {
            for low in [LOOSE_SUMS.low, 0xffff_0000 >> 1, 0xffff, 0] {
                for high in [LOOSE_SUMS.high, LOOSE_SUMS.high - 0x1fff, 0x1fff, 0] {
                    check_fold_for_product(&bases, &model, m, Columns { low, high });
                }
            }
        }
    }
}

#[test]
fn greatest_products() {
    let greatest = u64::from(GREATEST_RESIDUE);
    // z^2 + q M in base B; (X Y) in base A is less.
    assert!(greatest * greatest + u64::from(GREATEST_FOLDED) * (1 << 29) < 1 << 61);
    // Where factors come from `fold_loosely`, X Y in base A is greater.
    for (bases, model) in models().filter(|(bases, _)| folds_loosely(bases)) {
        let m = *(model.base_a().iter().chain(model.base_b()))
            .max_by_key(|m| m.distance)
            .unwrap();
        assert!(m.distance < 1_400);
        let rows = bases.count() as u64 * (3 * 255 + 0x4f);
        let low = rows * 255 * 257 + (1 << 24) + (1 << 17);
        let high = rows * (255 + 31 * 256) + (1 << 24);
        let loose = low + (0x1fff << 16) + (high >> 13) * u64::from(m.distance);
        assert!(u128::from(loose) * u128::from(loose) < 3 << 61);
        assert!(u128::from(greatest * greatest) + u128::from(loose) * (1 << 29) < 3 << 61);
    }
    for m in moduli() {
        let tops = match m.distance < 1_400 {
            true => [(3u64 << 16) - 1, (3 << 16) - 2, (1 << 16) - 1, 12_345, 1, 0],
            false => [(1 << 16) - 1, (1 << 16) - 2, 1 << 15, 12_345, 1, 0],
        };
        // The truncated parts are as great as possible.
        for top in tops {
            for low in [(1u64 << 45) - 1, (1 << 45) - (1 << 29), (1 << 29) - 1, 0] {
                let x = top << 45 | low;
                let reduced = m.reduce(x);
                assert!(below_two_and_a_half(reduced, m), "{x:#x}");
                assert_eq!(
                    u64::from(reduced) % u64::from(m.value()),
                    x % u64::from(m.value())
                );
            }
        }
    }
}

#[test]
fn greatest_constants() {
    for m in moduli() {
        let value = u64::from(m.value());
        for factor in [m.value() - 1, m.value() - 2, m.value() / 2, 1, 0] {
            let quotient = m.quotient_of_factor(factor);
            assert_eq!(u64::from(quotient), (u64::from(factor) << 32) / value);
            for x in [GREATEST_RESIDUE, GREATEST_RESIDUE - 1, 1, 0] {
                let product = m.times_constant(x, factor, quotient);
                assert!(product <= GREATEST_DIGIT, "{product:#x}");
                let expected = u64::from(x) * u64::from(factor) % value;
                assert_eq!(u64::from(product) % value, expected);
            }
        }
        assert_eq!(m.inverse(0), 0);
        for x in [1, 2, m.value() - 1, GREATEST_FOLDED] {
            assert_eq!(u64::from(m.inverse(x)) * u64::from(x) % value, 1);
        }
        assert!(m.reduce_word(u32::MAX) < (1 << 29) + (1 << 15));
    }
}

/// The quotient of the extension from base B, by definition: `sum z_j kappa_j / b_j` is the
/// quotient plus the number divided by B.
#[test]
fn quotients_are_exact() {
    for (bases, model) in models() {
        let (a, b) = (bases.product_a(), bases.product_b());
        // The greatest number that occurs: six sums of products of 2 n moduli each, of all ones.
        let greatest = (BigUint::from(12 * bases.count()) << bases.bits) - 1u32;
        for number in [greatest, BigUint::from(0u32)] {
            let mut terms = BigUint::ZERO;
            let mut z = Vec::new();
            for &m in &bases.b {
                let inverse = |x: &BigUint| x.modpow(&BigUint::from(m - 2), &BigUint::from(m));
                let canonical = u32::try_from(&number * inverse(&(&a % m)) % m).unwrap();
                // The greatest possible representative.
                let residue = canonical + (GREATEST_RESIDUE - canonical) / m * m;
                let kappa = &a * inverse(&(&b / m % m)) % m;
                terms += kappa * residue * (&b / m);
                z.push(residue);
            }
            let Columns { low, high } = model.quotient(&z);
            let theta = BigUint::from(low) + (BigUint::from(high) << 16u32);
            assert_eq!(terms, theta * &b + &number);
        }
    }
}
