//! Tests of the bounds in docs/rns.md with the worst operands of every stage, for every modulus of
//! every base.
//!
//! If a word of the kernels could overflow, the model's sum would panic.

use num_bigint::BigUint;
use rns_bases::model::{Columns, Model, Modulus};
use rns_bases::{Bases, WIDTHS};

/// The upper bounds for a width, as the words with the greatest bytes under them.
#[derive(Clone, Copy)]
struct Limits {
    /// Of residues in base B.
    residue: u32,
    /// Of quotient digits.
    digit: u32,
    /// Of what `fold` returns.
    folded: u32,
    /// Of what `fold_for_product` returns.
    factor: u32,
    /// Of the arguments of `fold_for_product`.
    sums: Columns,
    /// Of the arguments of `reduce`, as a multiple of `2^56`.
    product: u64,
}

/// Residues are below 2.5 m, and quotient digits below 1.3125 m.
const UP_TO_72: Limits = Limits {
    residue: 0x4fff_ffff,
    digit: 0x29ff_ffff,
    folded: (1 << 29) + (1 << 28) - 1,
    factor: (1 << 29) + (1 << 28) - 1,
    sums: Columns {
        low: u32::MAX,
        high: (1 << 30) - 1,
    },
    product: 1 << 5,
};
/// Products take the results of `fold_loosely`.
const UP_TO_36: Limits = Limits {
    factor: 0u32.wrapping_sub(1 << 30) - 1,
    sums: Columns {
        low: (1 << 31) - 1,
        high: (1 << 29) - 1,
    },
    product: 3 << 5,
    ..UP_TO_72
};
/// Residues are below 3.8 m, and quotient digits below 1.48 m. Sums are split.
const ABOVE_72: Limits = Limits {
    residue: 0x79ff_ffff,
    digit: 0x2fff_ffff,
    folded: 0x50ff_ffff,
    factor: 0x50ff_ffff,
    sums: Columns {
        low: (1 << 26) - 1,
        high: (1 << 30) - 1,
    },
    product: 69,
};

fn limits(bases: &Bases) -> Limits {
    match bases.count() {
        0..=36 => UP_TO_36,
        37..=72 => UP_TO_72,
        _ => ABOVE_72,
    }
}

fn models() -> impl Iterator<Item = (Bases, Model)> {
    let bases = WIDTHS.iter().map(|&(bits, _)| Bases::new(bits).unwrap());
    bases.map(|bases| {
        let model = Model::new(&bases);
        (bases, model)
    })
}

fn moduli() -> impl Iterator<Item = (Limits, Modulus)> {
    models().flat_map(|(bases, model)| {
        let moduli = [model.base_a(), model.base_b()].concat();
        moduli.into_iter().map(move |m| (limits(&bases), m))
    })
}

/// Checks sums that `fold_for_product` may get.
fn check_fold_for_product(limits: Limits, model: &Model, m: Modulus, columns: Columns) {
    assert!(columns.low <= limits.sums.low && columns.high <= limits.sums.high);
    let folded = model.fold_for_product(m, columns);
    assert!(folded <= limits.factor, "{folded:#x}");
    assert!(is_congruent(m, folded, columns));
}

fn check_fold(limits: Limits, m: Modulus, columns: Columns) {
    let folded = m.fold(columns.low, columns.high);
    assert!(folded <= limits.folded, "{folded:#x}");
    assert!(is_congruent(m, folded, columns));
}

fn is_congruent(m: Modulus, folded: u32, columns: Columns) -> bool {
    let value = u64::from(columns.low) + (u64::from(columns.high) << 16);
    u64::from(folded) % u64::from(m.value()) == value % u64::from(m.value())
}

#[test]
fn extensions_of_the_greatest_residues() {
    for (bases, model) in models() {
        let limits = limits(&bases);
        let columns = model.columns_in_a(&vec![limits.residue; bases.count()]);
        for (&m, columns) in model.base_a().iter().zip(columns) {
            check_fold_for_product(limits, &model, m, columns);
        }
        let columns = model.columns_in_b(&vec![limits.digit; bases.count()]);
        for (&m, columns) in model.base_b().iter().zip(columns) {
            check_fold_for_product(limits, &model, m, columns);
        }
        let words = model.from_words(&vec![u32::MAX; bases.bits as usize / 32]);
        assert!(words.iter().all(|&residue| residue <= limits.folded));
    }
}

/// More than the low and the high part of an exact quotient.
const QUOTIENT: [u64; 2] = [(1 << 24) + (1 << 17), 1 << 24];

/// The greatest sums of `rows` residues with this greatest word, without the exact quotient, if every
/// byte of the matrix is as great as possible. The highest byte of a constant below `2^29` is below
/// 32.
fn greatest_sums(limits: Limits, rows: usize, word: u32) -> [u64; 2] {
    let bytes: u64 = word.to_le_bytes().map(u64::from).iter().sum();
    let column = rows as u64 * bytes * 255;
    let highest = rows as u64 * bytes * 31;
    if limits.sums.low == ABOVE_72.sums.low {
        let low = column + (255 << 8);
        return [low, column + (highest << 8) + (column >> 8)];
    }
    [column + (column << 8), column + (highest << 8)]
}

/// No sum overflows, of residues or, on entering, of words.
#[test]
fn sums_have_room() {
    for (bases, _) in models() {
        let limits = limits(&bases);
        let words = bases.bits as usize / 32;
        let [low, high] = greatest_sums(limits, words, u32::MAX);
        let is_narrow = bases.count() <= 36;
        assert!(low <= limits.sums.low.into() || is_narrow && low < 1 << 32);
        assert!(
            high < if (37..=72).contains(&bases.count()) {
                1 << 29
            } else {
                1 << 30
            }
        );
        let [low, high] = greatest_sums(limits, bases.count(), limits.residue);
        let [low, high] = [low + QUOTIENT[0], high + QUOTIENT[1]];
        assert!(low <= limits.sums.low.into() && high <= limits.sums.high.into());
    }
}

#[test]
fn greatest_folds() {
    for (limits, m) in moduli() {
        let is_wide = limits.sums.low == ABOVE_72.sums.low;
        for low in [u32::MAX, u32::MAX << 16, (1 << 26) - 1, 0xffff] {
            for high in [(1 << 30) - 1, (1 << 30) - (1 << 13), (1 << 29) - 1, 8191] {
                let is_small = low <= limits.sums.low && (m.distance < 1 << 11 || high < 1 << 29);
                if is_small || is_wide && low <= limits.sums.low {
                    check_fold(limits, m, Columns { low, high });
                }
            }
        }
    }
}

#[test]
fn greatest_loose_folds() {
    for (bases, model) in models().filter(|(bases, _)| !(37..=72).contains(&bases.count())) {
        let limits = limits(&bases);
        for m in [model.base_a(), model.base_b()].concat() {
            for low in [limits.sums.low, limits.sums.low & 0xffff_0000, 0xffff, 0] {
                for high in [limits.sums.high, limits.sums.high - 0x1fff, 0x1fff, 0] {
                    check_fold_for_product(limits, &model, m, Columns { low, high });
                }
            }
        }
    }
}

/// `z^2 + q M` in base B, and X Y in base A.
#[test]
fn greatest_products() {
    for (bases, model) in models() {
        let limits = limits(&bases);
        let bound = u128::from(limits.product) << 56;
        let distances = model.base_a().iter().chain(model.base_b());
        let distance = distances.map(|m| u64::from(m.distance)).max().unwrap();
        // With few moduli, factors are below the result of `fold_loosely` of any sums.
        let [low, high] = greatest_sums(limits, bases.count(), limits.residue);
        let [low, high] = [low + QUOTIENT[0], high + QUOTIENT[1]];
        let loose = u128::from(low + (0x1fff << 16) + (high >> 13) * distance);
        let factor = loose.min(limits.factor.into());
        let residue = u128::from(limits.residue);
        assert!(factor * factor < bound);
        assert!(residue * residue + factor * (1 << 29) < bound);
        assert!(bases.count() > 36 || distance < 1_400);
        assert!(bases.count() > 72 || distance < 2_900);
        assert!(distance < 5_700);
    }
    for (limits, m) in moduli() {
        let greatest = (limits.product << 11) - 1;
        // The truncated parts are as great as possible.
        for top in [greatest, greatest - 1, greatest / 2, 12_345, 1, 0] {
            for low in [(1u64 << 45) - 1, (1 << 45) - (1 << 29), (1 << 29) - 1, 0] {
                let x = top << 45 | low;
                let reduced = m.reduce(x);
                assert!(is_below(limits, reduced, m), "{x:#x}");
                assert_eq!(
                    u64::from(reduced) % u64::from(m.value()),
                    x % u64::from(m.value())
                );
            }
        }
    }
}

/// Whether a residue is below 2.5 m or 3.8 m.
fn is_below(limits: Limits, residue: u32, m: Modulus) -> bool {
    let tenths = if limits.residue == UP_TO_72.residue {
        25
    } else {
        38
    };
    u64::from(residue) * 10 < u64::from(m.value()) * tenths
}

#[test]
fn greatest_constants() {
    for (limits, m) in moduli() {
        let value = u64::from(m.value());
        for factor in [m.value() - 1, m.value() - 2, m.value() / 2, 1, 0] {
            let quotient = m.quotient_of_factor(factor);
            assert_eq!(u64::from(quotient), (u64::from(factor) << 32) / value);
            for x in [limits.residue, limits.residue - 1, 1, 0] {
                let product = m.times_constant(x, factor, quotient);
                assert!(product <= limits.digit, "{product:#x}");
                let expected = u64::from(x) * u64::from(factor) % value;
                assert_eq!(u64::from(product) % value, expected);
            }
        }
        assert_eq!(m.inverse(0), 0);
        for x in [1, 2, m.value() - 1, limits.folded] {
            assert_eq!(u64::from(m.inverse(x)) * u64::from(x) % value, 1);
        }
        assert!(m.reduce_word(u32::MAX) < (1 << 29) + (1 << 16));
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
                let residue = canonical + (limits(&bases).residue - canonical) / m * m;
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
