//! The greatest common divisor of two odd secret numbers.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use batch_modexp_core::monty::low_64_bits;
use batch_modexp_core::secret::Secret;
use crypto_bigint::{CtEq, Limb, Word};

/// Steps on approximations between two updates of the numbers.
const STEPS: u32 = 30;
/// Bits in an approximation. So a difference of two of them fits in an `i64`.
const APPROXIMATION_BITS: u32 = 62;

/// The greatest common divisor of `a` and `b`, odd numbers of at most `bits` bits, as wide as `a`.
/// Constant-time: the number of steps depends only on `bits`.
///
/// Source: T. Pornin, "Optimized Binary GCD for Modular Inversion" (2020), algorithm 2 with k = 31. An
/// approximation has the highest 32 and the lowest 30 bits of a number. [`STEPS`] steps of the binary
/// algorithm on approximations give factors. These then update the numbers. (crypto-bigint's function
/// ends in a branch on its result.)
pub(super) fn gcd(a: &[Limb], b: &[Limb], bits: u32) -> Secret<Vec<Limb>> {
    let words = |limbs: &[Limb]| {
        let words = limbs.chunks((u64::BITS / Limb::BITS) as usize);
        Secret::new(words.map(low_64_bits).collect::<Vec<_>>())
    };
    let len = a.len();
    let (mut a, mut b) = (words(a), words(b));
    // The lengths of both are together at most `left` bits, unless a is 0: then b is the result,
    // and stays as it is.
    let mut left = 2 * bits;
    while left > 0 {
        let size = a.len().min(left.div_ceil(u64::BITS) as usize);
        let (a, b) = (&mut a[..size], &mut b[..size]);
        let factors = Secret::new(factors(approximations(a, b)));
        update(a, b, &factors);
        left = left.saturating_sub(STEPS);
    }
    // As long as it will be: a vector that grows leaves copies.
    let mut divisor = Secret::new(vec![Limb::ZERO; len]);
    let words_of_limbs = divisor.chunks_mut((u64::BITS / Limb::BITS) as usize);
    for (limbs, word) in words_of_limbs.zip(b.iter()) {
        for (limb, shift) in limbs.iter_mut().zip((0..).step_by(Limb::BITS as usize)) {
            *limb = Limb((word >> shift) as Word);
        }
    }
    divisor
}

/// The approximations of two numbers: their lowest bits, and those below the highest bit that one of
/// them has. Numbers of up to 62 bits are their own approximations.
fn approximations(a: &[u64], b: &[u64]) -> Secret<[u64; 2]> {
    // The highest word of both that is not zero in one of them, and the word below. The highest
    // bit of `top` is where the approximations begin.
    let mut top = 1 << (APPROXIMATION_BITS - 1) | a[0] | b[0];
    let mut highest = Secret::new([[a[0], 0], [b[0], 0]]);
    for i in 1..a.len() {
        let either = a[i] | b[i];
        let is_zero = mask_if_zero(either);
        top = choose(is_zero, top, either);
        for (highest, number) in highest.iter_mut().zip([a, b]) {
            highest[0] = choose(is_zero, highest[0], number[i]);
            highest[1] = choose(is_zero, highest[1], number[i - 1]);
        }
    }
    for shift in [32, 16, 8, 4, 2, 1] {
        let fits = mask_if_zero(top >> (u64::BITS - shift));
        top = choose(fits, top << shift, top);
        for [high, low] in &mut *highest {
            *high = choose(fits, *high << shift | *low >> (u64::BITS - shift), *high);
            *low = choose(fits, *low << shift, *low);
        }
    }
    let [[highest_a, _], [highest_b, _]] = *highest;
    let join = |high: u64, low: u64| {
        let high_bits = APPROXIMATION_BITS - STEPS;
        high >> (u64::BITS - high_bits) << STEPS | low & ((1 << STEPS) - 1)
    };
    Secret::new([join(highest_a, a[0]), join(highest_b, b[0])])
}

/// [`STEPS`] steps on approximations of a and b. Returns the factors of a and b in 2^30 times the
/// next a, then those in 2^30 times the next b. They are at most 2^30.
fn factors(approximations: Secret<[u64; 2]>) -> [[i64; 2]; 2] {
    let [mut a, mut b] = approximations.map(|number| number as i64);
    let (mut of_a, mut of_b) = ([1, 0], [0, 1]);
    for _ in 0..STEPS {
        let is_odd = (a & 1).wrapping_neg();
        // All ones if a is odd and less than b: then they are exchanged.
        let is_less = is_odd & ((a - b) >> (i64::BITS - 1));
        let exchange = |a: &mut i64, b: &mut i64| {
            let difference = (*a ^ *b) & is_less;
            *a ^= difference;
            *b ^= difference;
        };
        exchange(&mut a, &mut b);
        a = (a - (b & is_odd)) >> 1;
        for (of_a, of_b) in of_a.iter_mut().zip(&mut of_b) {
            exchange(of_a, of_b);
            *of_a -= *of_b & is_odd;
            *of_b *= 2;
        }
    }
    [of_a, of_b]
}

/// Replaces both numbers by the absolute values of their combinations, divided by 2^30.
fn update(a: &mut [u64], b: &mut [u64], factors: &[[i64; 2]; 2]) {
    let mut carries = [0i128; 2];
    let mut below = [0u64; 2];
    for i in 0..a.len() {
        let digits = [a[i], b[i]];
        for (row, [of_a, of_b]) in factors.iter().enumerate() {
            let product = |factor: i64, digit: u64| i128::from(factor) * i128::from(digit);
            let sum = carries[row] + product(*of_a, digits[0]) + product(*of_b, digits[1]);
            carries[row] = sum >> u64::BITS;
            let out = if row == 0 { &mut *a } else { &mut *b };
            let low = mem::replace(&mut below[row], sum as u64);
            if i > 0 {
                out[i - 1] = low >> STEPS | (sum as u64) << (u64::BITS - STEPS);
            }
        }
    }
    for (row, out) in [a, b].into_iter().enumerate() {
        let high = carries[row] as u64;
        let last = out.len() - 1;
        out[last] = below[row] >> STEPS | high << (u64::BITS - STEPS);
        let sign = high >> (u64::BITS - 1);
        let mut carry = sign;
        for digit in out {
            let (sum, carried) = (*digit ^ sign.wrapping_neg()).overflowing_add(carry);
            (*digit, carry) = (sum, carried.into());
        }
    }
}

/// All ones if `value` is zero. From a mask that is not made of a [`Choice`](crypto_bigint::Choice)
/// the compiler makes a branch.
fn mask_if_zero(value: u64) -> u64 {
    u64::from(value.ct_eq(&0).to_u8()).wrapping_neg()
}

/// `a` if `mask` is all ones, `b` if it is zero.
fn choose(mask: u64, a: u64, b: u64) -> u64 {
    b ^ (a ^ b) & mask
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// Euclid's algorithm.
    fn expected(a: &BigUint, b: &BigUint) -> BigUint {
        let (mut a, mut b) = (a.clone(), b.clone());
        while b != BigUint::ZERO {
            (a, b) = (b.clone(), a % b);
        }
        a
    }

    fn limbs(number: &BigUint, len: usize) -> Vec<Limb> {
        let mut limbs = vec![Limb::ZERO; len];
        for (limb, i) in limbs.iter_mut().zip(0u32..) {
            let shifted = number >> (i * Limb::BITS);
            *limb = Limb((shifted & BigUint::from(Word::MAX)).try_into().unwrap());
        }
        limbs
    }

    fn check(a: &BigUint, b: &BigUint, bits: u32) {
        let len = bits.div_ceil(Limb::BITS) as usize;
        let divisor = gcd(&limbs(a, len), &limbs(b, len), bits);
        assert_eq!(*divisor, limbs(&expected(a, b), len), "{a} {b}");
        let divisor = gcd(&limbs(b, len), &limbs(a, len), bits);
        assert_eq!(*divisor, limbs(&expected(a, b), len), "{b} {a}");
    }

    fn power_of_two(bits: u32) -> BigUint {
        BigUint::from(1u8) << bits
    }

    #[test]
    fn short_numbers() {
        for (a, b) in [
            (1u32, 1u32),
            (1, 99),
            (105, 105),
            (3 * 5 * 7, 5 * 7 * 11),
            (u32::MAX, 65_537),
            (u32::MAX, u32::MAX - 2),
        ] {
            for bits in [32, 64, 512] {
                check(&a.into(), &b.into(), bits);
            }
        }
    }

    /// Numbers near powers of two, whose differences are short, and multiples of each other.
    #[test]
    fn edges() {
        for bits in [64u32, 128, 512, 1024, 1536, 4096] {
            let all_ones = power_of_two(bits) - 1u8;
            let mut numbers = vec![
                all_ones.clone(),
                BigUint::from(1u8),
                &all_ones - 2u8,
                power_of_two(bits - 1) + 1u8,
                power_of_two(bits - 1) - 1u8,
            ];
            for shift in [1, 29, 30, 31, 32, 33, 61, 62, 63] {
                numbers.push(power_of_two(shift) - 1u8);
                numbers.push(power_of_two(shift) + 1u8);
                numbers.push(&all_ones - power_of_two(shift));
                numbers.push(power_of_two(bits - shift) + 1u8);
                numbers.push(power_of_two(bits - shift) - 1u8);
            }
            numbers.push(power_of_two(bits / 2) - 1u8);
            numbers.push(power_of_two(bits / 2) + 1u8);
            for (i, a) in numbers.iter().enumerate() {
                for b in &numbers[i..] {
                    check(a, b, bits);
                }
            }
        }
    }

    /// Consecutive Fibonacci numbers take Euclid's algorithm the most steps.
    #[test]
    fn fibonacci_numbers() {
        let (mut a, mut b) = (BigUint::from(1u8), BigUint::from(1u8));
        while b.bits() < 1024 {
            let odd = |number: &BigUint| number >> number.trailing_zeros().unwrap_or(0);
            check(&odd(&a), &odd(&b), 1024);
            (a, b) = (b.clone(), a + b);
        }
    }

    /// Random numbers of random lengths, with and without a common factor.
    #[test]
    fn random_numbers() {
        let mut rng = chacha20::ChaCha20Rng::seed_from_u64(8);
        for round in 0..2_000u32 {
            let bits = [64, 512, 1024, 2048][round as usize % 4];
            let mut draw = |most: u32| {
                let mut octets = vec![0; (most / 8) as usize];
                rng.fill_bytes(&mut octets);
                let len = rng.next_u32() % most;
                let number = BigUint::from_bytes_be(&octets) & (power_of_two(len) - 1u8);
                number | BigUint::from(1u8)
            };
            let common = draw(bits / 2);
            check(
                &(draw(bits / 2) * &common),
                &(draw(bits / 2) * &common),
                bits,
            );
            check(&draw(bits), &draw(bits), bits);
        }
    }
}
