//! Comparisons of numbers of equal length, least significant limb first, in constant time.

use core::hint::black_box;

use crypto_bigint::{Choice, CtEq, Limb, Word};

/// Whether two numbers are equal.
#[must_use]
pub fn ct_eq(a: &[Limb], b: &[Limb]) -> Choice {
    let pairs = a.iter().zip(b);
    let difference = pairs.fold(Limb::ZERO, |bits, (a, b)| bits | (*a ^ *b));
    difference.ct_eq(&Limb::ZERO)
}

/// Whether `a` is below `b`.
#[must_use]
pub fn is_below(a: &[Limb], b: &[Limb]) -> Choice {
    // With crypto-bigint's borrows, which are 0 or all ones, it takes twice as long.
    let borrow = a.iter().zip(b).fold(0, |borrow, (a, b)| {
        let (difference, is_below) = a.0.overflowing_sub(b.0);
        let (_, is_below_with_borrow) = difference.overflowing_sub(borrow);
        Word::from(is_below | is_below_with_borrow)
    });
    // The barrier hides from the compiler that there are two cases.
    Limb(black_box(borrow)).ct_eq(&Limb::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons() {
        const MAX: Word = Word::MAX;
        let numbers = [
            [0, 0],
            [1, 0],
            [7, 0],
            [MAX, 0],
            [0, 1],
            [7, 1],
            [7, 2],
            [0, MAX],
            [MAX, MAX],
        ];
        let numbers = numbers.map(|limbs| limbs.map(Limb));
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(ct_eq(a, b).to_bool(), i == j);
                assert_eq!(is_below(a, b).to_bool(), i < j);
            }
        }
    }
}
