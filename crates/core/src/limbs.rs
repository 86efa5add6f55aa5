//! Numbers as limbs, least significant limb first: comparisons and bits, in constant time.

use core::hint::black_box;

use crypto_bigint::{Choice, CtEq, Limb, Word};

/// Whether two numbers of equal length are equal.
#[must_use]
pub fn ct_eq(a: &[Limb], b: &[Limb]) -> Choice {
    let pairs = a.iter().zip(b);
    let difference = pairs.fold(Limb::ZERO, |bits, (a, b)| bits | (*a ^ *b));
    difference.ct_eq(&Limb::ZERO)
}

/// Whether `a` is below `b`, of equal length.
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

/// Bits `low .. low + bits` of `limbs`, zero beyond the end; `bits` is at most 63.
///
/// Indices and shifts depend only on `low` and `bits`, which are public.
#[inline(always)]
#[must_use]
pub fn bits_at(limbs: &[Limb], low: u32, bits: u32) -> u64 {
    let limb = |index: u32| limbs.get(index as usize).map_or(0, |limb| limb.0);
    let (index, shift) = (low / Limb::BITS, low % Limb::BITS);
    // The shift is by one more than `BITS - 1 - shift`, which would be by `BITS` where `shift` is
    // 0.
    let pair = |index| limb(index) >> shift | limb(index + 1) << 1 << (Limb::BITS - 1 - shift);
    #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
    let value = match Limb::BITS {
        32 => (pair(index) as u64) | (pair(index + 1) as u64) << 32,
        _ => pair(index) as u64,
    };
    value & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use crypto_bigint::U256;

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

    /// As the limbs of lanes, with zeros beyond the end.
    #[test]
    fn long_digits_are_the_number() {
        let number =
            U256::from_be_hex("fedcba98765432100123456789abcdefdeadbeefcafebabe8000000000000001");
        for bits in [51, 52, 63] {
            let digits = (0..U256::BITS / bits + 2).rev();
            let digits = digits.map(|i| bits_at(number.as_limbs(), i * bits, bits));
            let sum = digits.fold(U256::ZERO, |sum, digit| (sum << bits) | U256::from(digit));
            assert_eq!(sum, number);
        }
    }
}
