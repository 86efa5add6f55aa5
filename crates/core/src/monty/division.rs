//! Remainders by division of limbs, constant-time in every value.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Choice, CtEq, CtLt, Limb, WideWord, Word};

use crate::secret::Secret;
use crate::width::scrubbed;

/// `value mod modulus`, as wide as the modulus, for any modulus but 0, also an even one. Callers run
/// it in [`scrubbed`].
///
/// Long division (Knuth, *The Art of Computer Programming*, volume 2, algorithm 4.3.1D). The value
/// and the modulus are shifted up until the highest bit of the modulus is set. The shift is secret:
/// it is made of steps of public size, each under a mask.
#[must_use]
pub fn remainder(value: &[Limb], modulus: &[Limb]) -> Secret<Vec<Limb>> {
    divide(value, modulus, 1, value.len())
}

/// `2^exponent` modulo a number of at least `min_bits` bits that is no power of two, or modulo any
/// number but 0 if `min_bits` is 0. The exponent and `min_bits` are public; more of them save time.
#[must_use]
pub fn power_of_two(exponent: u32, modulus: &[Limb], min_bits: u32) -> Secret<Vec<Limb>> {
    let highest = (exponent / Limb::BITS) as usize;
    let mut power = vec![Limb::ZERO; highest + 1];
    power[highest] = Limb::ONE << (exponent % Limb::BITS);
    debug_assert!(min_bits == 0 || highest_bit(modulus) >= min_bits);
    let digits = match min_bits {
        0 => power.len(),
        // Without so many digits of the radix the power is at most 2^(min_bits - 1).
        _ => (exponent + 1).saturating_sub(min_bits).div_ceil(Limb::BITS) as usize,
    };
    scrubbed(|| divide(&power, modulus, min_bits.max(1), digits))
}

/// `value mod modulus`, for a modulus of at least `min_bits` bits, as is public. The quotient has at
/// most `digits` digits of a limb, as is public too: the value without its `digits` lowest limbs is
/// below the modulus.
fn divide(value: &[Limb], modulus: &[Limb], min_bits: u32, digits: usize) -> Secret<Vec<Limb>> {
    let (len, size) = (value.len(), modulus.len());
    let mut rest = Secret::new(vec![Limb::ZERO; len + size]);
    rest[..len].copy_from_slice(value);
    let mut divisor = Secret::new(modulus.to_vec());
    // Powers of two whose sum is at least the longest shift.
    let longest = size as u32 * Limb::BITS - min_bits;
    let steps = || (0..longest.checked_ilog2().map_or(0, |log| log + 1)).map(|step| 1 << step);
    let mut shift = Secret::new(0);
    for step in steps().rev() {
        let fits = mask(!highest_bits(&divisor, step));
        shift_up(&mut divisor, step, fits);
        shift_up(&mut rest, step, fits);
        *shift |= step & fits as u32;
    }
    let reciprocal = reciprocal(divisor[size - 1].0);
    for start in (0..digits).rev() {
        divide_step(&mut rest[start..=start + size], &divisor, *reciprocal);
    }
    for step in steps() {
        let is_shifted = mask((*shift & step).ct_ne(&0));
        shift_down(&mut rest[..size], step, is_shifted);
    }
    Secret::new(rest[..size].to_vec())
}

/// Reduces `rest`, which has a limb more than the divisor, modulo a divisor with its highest bit
/// set. The upper limbs of `rest` are below the divisor.
fn divide_step(rest: &mut [Limb], divisor: &[Limb], reciprocal: Word) {
    let size = divisor.len();
    // At most 2 above the quotient of the whole numbers.
    let [low, high] = [rest[size - 1].0, rest[size].0];
    let quotient = quotient(high, low, divisor[size - 1].0, reciprocal);
    let quotient = Secret::new(Limb(quotient));
    let (mut carry, mut borrow) = (Limb::ZERO, Limb::ZERO);
    for (limb, divisor) in rest.iter_mut().zip(divisor) {
        let product;
        (product, carry) = quotient.carrying_mul_add(*divisor, Limb::ZERO, carry);
        (*limb, borrow) = limb.borrowing_sub(product, borrow);
    }
    (rest[size], _) = rest[size].borrowing_sub(carry, borrow);
    for _ in 0..2 {
        // All ones if the rest is negative.
        let sign = Choice::from_u8_lsb((rest[size].0 >> (Limb::BITS - 1)) as u8);
        let negative = Limb(mask(sign));
        let mut carry = Limb::ZERO;
        for (limb, divisor) in rest.iter_mut().zip(divisor) {
            (*limb, carry) = limb.carrying_add(*divisor & negative, carry);
        }
        (rest[size], _) = rest[size].carrying_add(Limb::ZERO, carry);
    }
}

/// The length of a number in bits. Not constant-time: only for a debug assertion.
fn highest_bit(limbs: &[Limb]) -> u32 {
    let bits = (1..).zip(limbs).filter(|(_, limb)| limb.0 != 0);
    bits.last()
        .map_or(0, |(len, limb)| len * Limb::BITS - limb.0.leading_zeros())
}

/// With B = 2^`Word::BITS`, the reciprocal `(B^2 - 1) / divisor - B`, rounded down, of a divisor with
/// its highest bit set. By long division, bit by bit.
fn reciprocal(divisor: Word) -> Secret<Word> {
    let (mut rest, mut reciprocal) = (Secret::new(!divisor), Secret::new(0));
    for _ in 0..Word::BITS {
        let carry = (*rest >> (Word::BITS - 1)).wrapping_neg();
        *rest = *rest << 1 | 1;
        let fits = carry | !is_less(*rest, divisor);
        *rest = rest.wrapping_sub(divisor & fits);
        *reciprocal = *reciprocal << 1 | fits & 1;
    }
    reciprocal
}

/// `(high * B + low) / divisor`, rounded down, or the largest word if it does not fit into one.
/// `high` is at most the divisor.
///
/// Möller and Granlund, *Improved Division by Invariant Integers* (2011), algorithm 4.
fn quotient(high: Word, low: Word, divisor: Word, reciprocal: Word) -> Word {
    let number = WideWord::from(high) << Word::BITS | WideWord::from(low);
    let product = (WideWord::from(reciprocal) * WideWord::from(high)).wrapping_add(number);
    let mut quotient = ((product >> Word::BITS) as Word).wrapping_add(1);
    let mut rest = low.wrapping_sub(quotient.wrapping_mul(divisor));
    let is_above = is_less(product as Word, rest);
    quotient = quotient.wrapping_sub(is_above & 1);
    rest = rest.wrapping_add(is_above & divisor);
    quotient = quotient.wrapping_add(!is_less(rest, divisor) & 1);
    quotient | !is_less(high, divisor)
}

/// All ones if `a` is below `b`.
fn is_less(a: Word, b: Word) -> Word {
    mask(Limb(a).ct_lt(&Limb(b)))
}

/// All ones if `choice` is true. From a mask that is not made of a [`Choice`], such as a borrow, the
/// compiler makes a branch.
fn mask(choice: Choice) -> Word {
    Word::from(choice.to_u8()).wrapping_neg()
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
                if bits < 2 || number.count_ones() == 1 {
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
                    let rest = remainder(&value, &modulus);
                    assert_eq!(rest.len(), modulus.len());
                    assert_eq!(big(&rest), big(&value) % big(&modulus));
                }
            }
        }
    }
}
