//! Public exponents, as squarings and products with odd powers of the base.

use alloc::vec::Vec;

use crypto_bigint::{Limb, Unsigned};

/// The largest window, in bits: 32 odd powers of the base.
const LARGEST_WINDOW: u32 = 6;

/// A public exponent, prepared as a sequence of squarings and products: see
/// [`batch_mod_exp_vartime`](crate::BatchModExpVartime::batch_mod_exp_vartime).
///
/// Use [`ModExp`](crate::ModExp) for secret exponents: the order of multiplications reveals this
/// one, `Debug` prints it, and nothing wipes it.
#[derive(Clone, Debug)]
pub struct PublicExponent {
    chain: Chain,
}

/// How to compute a power: start with an odd power of the base, take the steps, then a last one.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Chain {
    /// The number of odd powers of the base to compute first, at least 1: the base, its cube, and
    /// so on. Odd power i is the base to the power of `2 * i + 1`.
    pub odd_powers: usize,
    /// The odd power to start with. `None` if the exponent is 0: the power is 1.
    pub first: Option<usize>,
    /// The steps that follow.
    pub steps: Vec<Step>,
    /// The squarings of a last step, whose factor is the base itself.
    ///
    /// This factor need not be in Montgomery form: a product with an ordinary number leaves it.
    pub last_squarings: Option<u32>,
}

/// Some squarings, then at most one product.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// The number of squarings.
    pub squarings: u32,
    /// The odd power that is the factor.
    pub odd: Option<usize>,
}

impl PublicExponent {
    /// The squarings and products.
    #[doc(hidden)]
    #[must_use]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Prepares `exponent` in sliding windows of the size with the fewest products (Handbook of
    /// Applied Cryptography, algorithm 14.85). A short exponent, or one with few bits set, needs no
    /// table: 65537 takes 16 squarings and a product.
    ///
    /// The exponent may be 0, for powers of 1. The running time depends on it.
    #[must_use]
    pub fn new_vartime<U: Unsigned>(exponent: &U) -> Self {
        let bits = exponent.bit_width_vartime();
        Self::of_bits(bits, |bit| exponent.bit_vartime(bit))
    }

    /// Like [`new_vartime`](Self::new_vartime), for an exponent in limbs, least significant first.
    #[doc(hidden)]
    #[must_use]
    pub fn of_limbs(limbs: &[Limb]) -> Self {
        Self::of_bits(bit_len(limbs), |bit| is_set(limbs, bit))
    }

    /// The exponent `odd - 1`.
    ///
    /// # Panics
    ///
    /// If `odd` is even.
    #[doc(hidden)]
    #[must_use]
    pub fn one_less(odd: &[Limb]) -> Self {
        assert!(is_set(odd, 0), "an odd number");
        Self::of_bits(bit_len(odd), |bit| bit > 0 && is_set(odd, bit))
    }

    /// The exponent with the bits that `is_set` tells, all below `bits`.
    fn of_bits(bits: u32, is_set: impl Fn(u32) -> bool) -> Self {
        let mut chain = Chain::with_window(bits, &is_set, 1);
        // A table takes at least the square and the cube of the base.
        if chain.products() > 2 {
            for window_bits in 2..=LARGEST_WINDOW {
                let other = Chain::with_window(bits, &is_set, window_bits);
                if other.products() < chain.products() {
                    chain = other;
                }
            }
        }
        Self { chain }
    }

    /// The length of the exponent in bits.
    #[doc(hidden)]
    #[must_use]
    pub fn bits(&self) -> u32 {
        let chain = &self.chain;
        let first = chain.first.map_or(0, |odd| (2 * odd + 1).ilog2() + 1);
        let squarings = chain.steps.iter().map(|step| step.squarings);
        first + squarings.sum::<u32>() + chain.last_squarings.unwrap_or(0)
    }
}

impl Chain {
    /// The number of products, and of squarings for the table.
    fn products(&self) -> usize {
        let steps = self.steps.iter().filter(|step| step.odd.is_some());
        // The square of the base, then one product for each further odd power.
        let table = self.odd_powers - usize::from(self.odd_powers == 1);
        table + steps.count() + usize::from(self.last_squarings.is_some())
    }

    fn with_window(bits: u32, is_set: impl Fn(u32) -> bool, window_bits: u32) -> Self {
        let (mut odd_powers, mut first, mut steps, mut last_squarings) =
            (1, None, Vec::new(), None);
        let (mut squarings, mut end) = (0, bits);
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
                Some(_) if odd == 0 && start == 0 => last_squarings = Some(squarings),
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
            odd_powers,
            first,
            steps,
            last_squarings,
        }
    }
}

/// The bit length of a public number.
fn bit_len(limbs: &[Limb]) -> u32 {
    let highest = limbs.iter().rposition(|limb| limb.0 != 0);
    highest.map_or(0, |i| {
        (i as u32 + 1) * Limb::BITS - limbs[i].0.leading_zeros()
    })
}

/// Whether a bit of a public number is set.
fn is_set(limbs: &[Limb], bit: u32) -> bool {
    (limbs[(bit / Limb::BITS) as usize].0 >> (bit % Limb::BITS)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto_bigint::{U64, U256};

    /// Recomputes the exponent from its steps.
    fn value(chain: &Chain) -> U256 {
        let odd = |odd: usize| U256::from(2 * odd as u64 + 1);
        let first = chain.first.map_or(U256::ZERO, odd);
        let value = chain.steps.iter().fold(first, |value, step| {
            let value = value << step.squarings;
            step.odd
                .map_or(value, |factor| value.wrapping_add(&odd(factor)))
        });
        let last = chain.last_squarings;
        last.map_or(value, |squarings| (value << squarings) | U256::ONE)
    }

    #[test]
    fn steps_are_the_exponent() {
        let large =
            U256::from_be_hex("fedcba98765432100123456789abcdefdeadbeefcafebabe8000000000000001");
        let numbers = (0..2000u64).map(U256::from);
        let shifted = (0..256).map(|bits| large >> bits);
        for number in numbers.chain(shifted).chain([U256::MAX, large << 77]) {
            for bits in 1..=LARGEST_WINDOW {
                let is_set = |bit: u32| number.bit_vartime(bit);
                let chain = Chain::with_window(number.bit_width_vartime(), is_set, bits);
                assert_eq!(value(&chain), number);
                assert!(chain.odd_powers <= 1 << (bits - 1));
            }
            let exponent = PublicExponent::new_vartime(&number);
            assert_eq!(value(&exponent.chain), number);
            assert_eq!(exponent.bits(), number.bit_width_vartime());
            let of_limbs = PublicExponent::of_limbs(number.as_limbs());
            assert_eq!(value(&of_limbs.chain), number);
            if number.bit_vartime(0) {
                let even = number.wrapping_sub(&U256::ONE);
                let one_less = PublicExponent::one_less(number.as_limbs());
                assert_eq!(value(&one_less.chain), even);
            }
        }
    }

    #[test]
    fn short_ones_take_no_table() {
        for (number, squarings) in [(3u64, 1), (17, 4), (65_537, 16)] {
            let chain = PublicExponent::new_vartime(&U64::from(number)).chain;
            assert_eq!(
                (&chain.steps[..], chain.last_squarings),
                (&[][..], Some(squarings))
            );
            assert_eq!((chain.first, chain.odd_powers), (Some(0), 1));
        }
        assert_eq!(PublicExponent::new_vartime(&U64::ZERO).chain.first, None);
    }
}
