//! Remainders by division of limbs, constant-time in every value.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, CtEq, Limb, WideWord, Word};

use super::{mask, reduce_once};
use crate::secret::Secret;

/// The bits of the value that a step of the division takes. The other bits of a word hold what is
/// left because the quotient is too small.
const DIGIT_BITS: u32 = Word::BITS - SPARE_BITS;
const SPARE_BITS: u32 = 5;

/// `sqrt(2) - 1` as a fraction of 2^`Word::BITS`.
const SQRT_2_LESS_1: Word = (0x6a09_e667_f3bc_c908_u64 >> (u64::BITS - Word::BITS)) as Word;

/// `value mod modulus`, as wide as the modulus, for any modulus but 0, also an even one. Callers run
/// it in [`scrubbed`](crate::secret::scrubbed).
///
/// Long division with quotients that may be too small, so that no step needs a correction. The value
/// and the modulus are shifted up until the highest bit of the modulus is set. The shift is secret:
/// it is made of steps of public size, each under a mask.
#[must_use]
pub fn remainder_by_division(value: &[Limb], modulus: &[Limb]) -> Secret<Vec<Limb>> {
    let mut dividend = Secret::new(vec![Limb::ZERO; value.len() + modulus.len()]);
    dividend[..value.len()].copy_from_slice(value);
    divide(dividend, modulus, 1, value.len() as u32 * Limb::BITS)
}

/// `2^exponent` modulo a number of at least `min_bits` bits, or modulo any number but 0 if `min_bits`
/// is 0. The exponent and `min_bits` are public; more of them save time. Callers run it in
/// [`scrubbed`](crate::secret::scrubbed).
#[must_use]
pub fn power_of_two(exponent: u32, modulus: &[Limb], min_bits: u32) -> Secret<Vec<Limb>> {
    let highest = (exponent / Limb::BITS) as usize;
    let mut power = Secret::new(vec![Limb::ZERO; highest + 1 + modulus.len()]);
    power[highest] = Limb::ONE << (exponent % Limb::BITS);
    debug_assert!(min_bits == 0 || highest_bit(modulus) >= min_bits);
    let min_bits = min_bits.max(1);
    let low_bits = (exponent + 1).saturating_sub(min_bits);
    divide(power, modulus, min_bits, low_bits)
}

/// `dividend mod modulus`, for a modulus of at least `min_bits` bits, as is public. Without its
/// `low_bits` lowest bits, whose number is public too, the dividend is at most the modulus. Its
/// highest limbs, as many as the modulus has, are zero.
fn divide(
    mut dividend: Secret<Vec<Limb>>,
    modulus: &[Limb],
    min_bits: u32,
    low_bits: u32,
) -> Secret<Vec<Limb>> {
    let size = modulus.len();
    let mut divisor = Secret::new(modulus.to_vec());
    // Powers of two whose sum is at least the longest shift.
    let longest = size as u32 * Limb::BITS - min_bits;
    let steps = || (0..longest.checked_ilog2().map_or(0, |log| log + 1)).map(|step| 1 << step);
    let mut shift = Secret::new(0);
    for step in steps().rev() {
        let fits = mask(!highest_bits(&divisor, step));
        shift_up(&mut divisor, step, fits);
        shift_up(&mut dividend, step, fits);
        *shift |= step & fits as u32;
    }
    let digits = low_bits.div_ceil(DIGIT_BITS);
    let mut rest = Secret::new(vec![Limb::ZERO; size + 1]);
    for (limb, i) in rest[..size].iter_mut().zip(0..) {
        *limb = word_at(&dividend, digits * DIGIT_BITS + i * Limb::BITS);
    }
    let reciprocal = reciprocal(divisor[size - 1].0);
    for digit in (0..digits).rev() {
        let digit = word_at(&dividend, digit * DIGIT_BITS);
        divide_step(&mut rest, digit, DIGIT_BITS, &divisor, reciprocal);
    }
    divide_step(&mut rest, Limb::ZERO, 0, &divisor, reciprocal);
    let (highest, lower) = rest.split_last_mut().expect("it has a highest limb");
    reduce_once(&divisor, *highest, lower);
    for step in steps() {
        let is_shifted = mask((*shift & step).ct_ne(&0));
        shift_down(&mut rest[..size], step, is_shifted);
    }
    rest.truncate(size);
    rest
}

/// Appends the lowest `bits` bits of a digit, at most [`DIGIT_BITS`], to `rest`, and subtracts a
/// multiple of the divisor d, whose highest bit is set. `rest` has a limb more than d, and is below
/// `2^SPARE_BITS d` before and after, and below 2 d if `bits` is 0.
///
/// The quotient is too small, by less than 15, or by less than 2 if `bits` is 0. Let d1 be the
/// highest limb of d, and t the limb of `rest` that begins `SPARE_BITS` bits higher. The exact
/// quotient is below `2^(SPARE_BITS + bits) (t + 1) / d1`. The computed one is
/// `2^(SPARE_BITS + bits) t / d1`, less the errors of the reciprocal, below 12, and of rounding,
/// below 1.
fn divide_step(rest: &mut [Limb], digit: Limb, bits: u32, divisor: &[Limb], reciprocal: Word) {
    let (highest, rest) = rest.split_last_mut().expect("it has a highest limb");
    let second = rest[rest.len() - 1];
    let top = highest.0 << DIGIT_BITS | second.0 >> SPARE_BITS;
    let product = WideWord::from(top) * WideWord::from(reciprocal);
    let estimate = top.wrapping_add((product >> Word::BITS) as Word);
    let quotient = Limb(estimate >> (DIGIT_BITS - bits));
    // Shifted up, `rest` has the bits of the limb below at its low end.
    let shifted =
        |limb: Limb, below: Limb| Limb(limb.0 << bits | below.0 >> 1 >> (Word::BITS - 1 - bits));
    let mut below = Limb(digit.0 << (Word::BITS - 1 - bits) << 1);
    // Subtracts without borrows: for R = 2^width of the divisor, adds
    // `quotient * (R - 1 - divisor) + quotient - quotient * R`.
    let mut carry = quotient;
    for (limb, divisor) in rest.iter_mut().zip(divisor) {
        let sum = shifted(*limb, below);
        below = *limb;
        (*limb, carry) = quotient.carrying_mul_add(!*divisor, sum, carry);
    }
    *highest = shifted(*highest, below)
        .wrapping_add(carry)
        .wrapping_sub(quotient);
}

/// The bits of a number from `position` on, as many as a limb has.
fn word_at(limbs: &[Limb], position: u32) -> Limb {
    let (whole, bits) = ((position / Limb::BITS) as usize, position % Limb::BITS);
    let limb = |above: usize| limbs.get(whole + above).map_or(0, |limb| limb.0);
    Limb(limb(0) >> bits | limb(1) << 1 << (Limb::BITS - 1 - bits))
}

/// The length of a number in bits. Not constant-time: only for a debug assertion.
fn highest_bit(limbs: &[Limb]) -> u32 {
    let bits = (1..).zip(limbs).filter(|(_, limb)| limb.0 != 0);
    bits.last()
        .map_or(0, |(len, limb)| len * Limb::BITS - limb.0.leading_zeros())
}

/// With B = 2^`Word::BITS`, a number that is at most `B^2 / (divisor + 1) - B`. It is too small for
/// `B^2 / divisor - B` by less than 12. The highest bit of the divisor is set.
fn reciprocal(divisor: Word) -> Word {
    const HALF: Word = 1 << (Word::BITS - 1);
    let high_word = |a, b| ((WideWord::from(a) * WideWord::from(b)) >> Word::BITS) as Word;
    // `1 / x` for x = divisor / B, in units of 2 / B. The line `sqrt(8) - 2 x` touches the curve
    // from below, and misses it by a share of 0.172 at most. Newton's iteration squares that share:
    // five times make it less than 2^-80. Rounded down, the inverse stays too small.
    let mut inverse = SQRT_2_LESS_1.wrapping_sub(divisor);
    for _ in 0..5 {
        let missing = HALF - 1 - high_word(divisor, inverse);
        inverse += high_word(inverse, 2 * missing);
    }
    // It is too small by less than 4 units. That of `divisor + 1` is smaller by less than 2.
    inverse.saturating_sub(HALF + 2) << 1
}

/// Whether one of the highest `bits` bits is set, fewer than there are.
fn highest_bits(limbs: &[Limb], bits: u32) -> Choice {
    let (whole, bits) = ((bits / Limb::BITS) as usize, bits % Limb::BITS);
    let (low, high) = limbs.split_at(limbs.len() - whole);
    let partial = low.last().map_or(0, |limb| limb.0 & !(Word::MAX >> bits));
    let any = Secret::new(high.iter().fold(partial, |any, limb| any | limb.0));
    any.ct_ne(&0)
}

/// Shifts up by `bits` bits, at least 1, where `mask` is all ones.
fn shift_up(limbs: &mut [Limb], bits: u32, mask: Word) {
    let (whole, bits) = ((bits / Limb::BITS) as usize, bits % Limb::BITS);
    for i in (0..limbs.len()).rev() {
        let limb = |below: usize| i.checked_sub(whole + below).map_or(0, |i| limbs[i].0);
        let shifted = limb(0) << bits | limb(1) >> 1 >> (Limb::BITS - 1 - bits);
        limbs[i].0 ^= (limbs[i].0 ^ shifted) & mask;
    }
}

/// Shifts down by `bits` bits, at least 1, where `mask` is all ones.
fn shift_down(limbs: &mut [Limb], bits: u32, mask: Word) {
    let (whole, bits) = ((bits / Limb::BITS) as usize, bits % Limb::BITS);
    for i in 0..limbs.len() {
        let limb = |above: usize| limbs.get(i + whole + above).map_or(0, |limb| limb.0);
        let shifted = limb(0) >> bits | limb(1) << 1 << (Limb::BITS - 1 - bits);
        limbs[i].0 ^= (limbs[i].0 ^ shifted) & mask;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use num_bigint::BigUint;

    use super::*;

    fn big(limbs: &[Limb]) -> BigUint {
        let limbs = limbs.iter().rev();
        limbs.fold(BigUint::ZERO, |sum, limb| (sum << Limb::BITS) + limb.0)
    }

    /// Limbs with runs of equal bits, for which quotients are estimated badly, and others.
    fn numbers(len: usize) -> Vec<Vec<Limb>> {
        let limb = |i: usize, kind: usize| match kind {
            0 => Word::MAX,
            1 => Word::from(i + 1 == len) << (Limb::BITS - 1),
            2 if i + 1 == len => 1 << (Limb::BITS - 1),
            2 => Word::MAX,
            3 => Word::from(i == 0),
            4 => Word::MAX - Word::from(i + 1 == len),
            _ => (i + kind + 3).wrapping_pow(37) as Word,
        };
        let number = |kind| (0..len).map(|i| Limb(limb(i, kind))).collect();
        (0..7).map(number).collect()
    }

    #[test]
    fn powers_of_two_are_those_of_num_bigint() {
        for modulus in [1, 2, 3, 10].into_iter().flat_map(numbers) {
            let width = modulus.len() as u32 * Limb::BITS;
            // Shorter moduli too, of any number of bits.
            for shift in (0..width).step_by(13) {
                let mut modulus = modulus.clone();
                shift_down(&mut modulus, shift, Word::MAX);
                let number = big(&modulus);
                let bits = number.bits() as u32;
                if bits == 0 {
                    continue;
                }
                for exponent in [bits - 1, width, width + 7, 2 * width, 2 * width + 60] {
                    let expected = (BigUint::from(1u8) << exponent) % &number;
                    for min_bits in [0, 1, bits / 2, bits - 1, bits] {
                        let power = power_of_two(exponent, &modulus, min_bits);
                        assert_eq!(big(&power), expected, "{exponent}, {min_bits}");
                    }
                }
            }
        }
    }

    #[test]
    fn reciprocals_are_just_below() {
        let half = 1 << (Word::BITS - 1);
        let near_half = (0..1000).map(|i| half + i);
        let near_end = (0..1000).map(|i| Word::MAX - i);
        let others = (0..1000u64).map(|i| (i.wrapping_pow(37) << 7) as Word | half);
        for divisor in near_half.chain(near_end).chain(others) {
            let square = BigUint::from(1u8) << (2 * Word::BITS);
            let found = (BigUint::from(1u8) << Word::BITS) + reciprocal(divisor);
            let divisor = BigUint::from(divisor);
            assert!(&found * (&divisor + 1u8) <= square, "{divisor}");
            assert!((found + 12u8) * &divisor > square, "{divisor}");
        }
    }

    /// The rest of every step is as small as documented, also after the largest one.
    #[test]
    fn quotients_are_nearly_large_enough() {
        for mut divisor in [1, 2, 3, 10].into_iter().flat_map(numbers) {
            let size = divisor.len();
            divisor[size - 1].0 |= 1 << (Limb::BITS - 1);
            let reciprocal = reciprocal(divisor[size - 1].0);
            let d = big(&divisor);
            for bits in [0, 1, DIGIT_BITS - 1, DIGIT_BITS] {
                for least in [BigUint::ZERO, &d - 1u8, (&d << SPARE_BITS) - 1u8] {
                    let digits = least.iter_u64_digits().flat_map(|digit| {
                        (0..u64::BITS)
                            .step_by(Limb::BITS as usize)
                            .map(move |shift| Limb((digit >> shift) as Word))
                    });
                    let mut rest: Vec<_> = digits.chain([Limb::ZERO; 2 * 10]).collect();
                    rest.truncate(size + 1);
                    let digit = Limb(!(Word::MAX << bits));
                    let expected = (least << bits) + digit.0;
                    divide_step(&mut rest, digit, bits, &divisor, reciprocal);
                    let most = if bits == 0 { 2 } else { 1u32 << SPARE_BITS };
                    assert!(big(&rest) < &d * most);
                    assert_eq!(big(&rest) % &d, expected % &d);
                }
            }
        }
    }

    #[test]
    fn remainders_are_those_of_num_bigint() {
        for modulus in [1, 2, 3, 10].into_iter().flat_map(numbers) {
            // Shorter moduli too, of any number of bits.
            for bits in (0..modulus.len() as u32 * Limb::BITS).step_by(13) {
                let mut modulus = modulus.clone();
                shift_down(&mut modulus, bits, Word::MAX);
                if big(&modulus) == BigUint::ZERO {
                    continue;
                }
                let lens = [1, modulus.len(), 2 * modulus.len(), 2 * modulus.len() + 1];
                for value in lens.into_iter().flat_map(numbers) {
                    let rest = remainder_by_division(&value, &modulus);
                    assert_eq!(rest.len(), modulus.len());
                    assert_eq!(big(&rest), big(&value) % big(&modulus));
                }
            }
        }
    }
}
