//! Public exponents, as squarings and products with odd powers of the base.

use alloc::vec::Vec;

use crypto_bigint::Unsigned;

/// The largest window, in bits: 32 odd powers of the base.
const LARGEST_WINDOW: u32 = 6;

/// A public exponent, prepared as a sequence of squarings and products: see
/// [`batch_mod_exp_vartime`](crate::BatchModExpVartime::batch_mod_exp_vartime).
///
/// Use [`ModExp`](crate::ModExp) for secret exponents: the order of multiplications reveals this
/// one, `Debug` prints it, and nothing wipes it.
#[derive(Clone, Debug)]
pub struct PublicExponent {
    first: Option<usize>,
    steps: Vec<Step>,
    odd_powers: usize,
}

/// Some squarings, then at most one product.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// The number of squarings.
    pub squarings: u32,
    /// The factor is the base to the power of `2 * odd + 1`.
    pub odd: Option<usize>,
}

impl PublicExponent {
    /// Prepares `exponent` in sliding windows of the size with the fewest products (Handbook of
    /// Applied Cryptography, algorithm 14.85). A short exponent, or one with few bits set, needs no
    /// table: 65537 takes 16 squarings and a product.
    ///
    /// The exponent may be 0, for powers of 1. The running time depends on it.
    #[must_use]
    pub fn new_vartime<U: Unsigned>(exponent: &U) -> Self {
        let windows = (2..=LARGEST_WINDOW).map(|bits| Self::with_window(exponent, bits));
        let products = |exponent: &Self| {
            let steps = exponent.steps.iter().filter(|step| step.odd.is_some());
            // The square of the base, then one product for each further odd power.
            steps.count() + exponent.odd_powers - usize::from(exponent.odd_powers == 1)
        };
        let binary = Self::with_window(exponent, 1);
        windows.fold(binary, |best, other| {
            match products(&other) < products(&best) {
                true => other,
                false => best,
            }
        })
    }

    fn with_window<U: Unsigned>(exponent: &U, window_bits: u32) -> Self {
        let is_set = |bit: u32| exponent.bit_vartime(bit);
        let (mut first, mut steps, mut odd_powers) = (None, Vec::new(), 0);
        let (mut squarings, mut end) = (0, exponent.bit_width_vartime());
        while end > 0 {
            if !is_set(end - 1) {
                (squarings, end) = (squarings + 1, end - 1);
                continue;
            }
            // A window reaches from a set bit down to a set bit.
            let lowest = end.saturating_sub(window_bits);
            let start = (lowest..end).find(|bit| is_set(*bit)).unwrap_or(end - 1);
            let value = (start..end)
                .rev()
                .fold(0, |value, bit| 2 * value + usize::from(is_set(bit)));
            let odd = value / 2;
            odd_powers = odd_powers.max(odd + 1);
            squarings += end - start;
            match first {
                None => first = Some(odd),
                Some(_) => steps.push(Step {
                    squarings,
                    odd: Some(odd),
                }),
            }
            (squarings, end) = (0, start);
        }
        if first.is_some() && squarings > 0 {
            let odd = None;
            steps.push(Step { squarings, odd });
        }
        Self {
            first,
            steps,
            odd_powers,
        }
    }

    /// The index of the odd power that the computation starts with; `None` if the exponent is 0.
    #[doc(hidden)]
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.first
    }

    #[doc(hidden)]
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The number of odd powers of the base in the table: the base, its cube, and so on.
    #[doc(hidden)]
    #[must_use]
    pub fn odd_powers(&self) -> usize {
        self.odd_powers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto_bigint::{U64, U256};

    /// Recomputes the exponent from its steps.
    fn value(exponent: &PublicExponent) -> U256 {
        let odd = |odd: usize| U256::from(2 * odd as u64 + 1);
        let first = exponent.first().map_or(U256::ZERO, odd);
        exponent.steps().iter().fold(first, |value, step| {
            let value = value << step.squarings;
            step.odd
                .map_or(value, |factor| value.wrapping_add(&odd(factor)))
        })
    }

    #[test]
    fn steps_are_the_exponent() {
        let large =
            U256::from_be_hex("fedcba98765432100123456789abcdefdeadbeefcafebabe8000000000000001");
        let numbers = (0..2000u64).map(U256::from);
        let shifted = (0..256).map(|bits| large >> bits);
        for number in numbers.chain(shifted).chain([U256::MAX, large << 77]) {
            for bits in 1..=LARGEST_WINDOW {
                let exponent = PublicExponent::with_window(&number, bits);
                assert_eq!(value(&exponent), number);
                assert!(exponent.odd_powers() <= 1 << (bits - 1));
            }
            assert_eq!(value(&PublicExponent::new_vartime(&number)), number);
        }
    }

    #[test]
    fn short_ones_take_no_table() {
        for (number, squarings) in [(3u64, 1), (17, 4), (65_537, 16)] {
            let exponent = PublicExponent::new_vartime(&U64::from(number));
            let odd = Some(0);
            assert_eq!(exponent.steps(), [Step { squarings, odd }]);
            assert_eq!((exponent.first(), exponent.odd_powers()), (Some(0), 1));
        }
        assert_eq!(PublicExponent::new_vartime(&U64::ZERO).first(), None);
    }
}
