//! Trial division by many small primes at once, without divisions.
//!
//! A number is the sum of its words, each times a power of the base. The sum of its words times the
//! residues of these powers is a multiple of a prime if the number is. A sum is a multiple of a
//! prime if its product with the prime's inverse modulo 2^64 is small. The sums take most of the
//! time, so primes are grouped, and one sum serves a group, modulo the product of its primes.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::monty::inverse;
use batch_modexp_core::secret::{Secret, reveal};
use batch_modexp_core::weighted_sums::SUMS;
#[cfg(not(feature = "std"))]
use batch_modexp_core::weighted_sums::weighted_sums;
#[cfg(feature = "std")]
use batch_modexp_cpu::weighted_sums;
use crypto_bigint::CtEq;

/// Length of a word in bits.
const WORD_BITS: u32 = u32::BITS;

/// Odd primes below 2^17, prepared for numbers of one length of at most 4096 bits.
/// The parts are in ascending order of their primes.
pub(super) struct SmallPrimes(pub(super) Vec<Part>);

/// The primes of up to [`SUMS`] groups. Few, so that most numbers are rejected early.
pub(super) struct Part {
    /// For word i of a number, `2^(32 i)` modulo the product of each group.
    powers: Vec<[u32; SUMS]>,
    divisors: Vec<Divisor>,
}

/// A prime, prepared for the test of divisibility.
struct Divisor {
    group: usize,
    /// The inverse of the prime modulo 2^64.
    inverse: u64,
    /// The largest multiple of the prime below 2^64, divided by the prime.
    most: u64,
}

impl SmallPrimes {
    /// Prepares `primes` for numbers of `bits` bits.
    pub(super) fn new(primes: &[u32], bits: u32) -> Self {
        let words = bits.div_ceil(WORD_BITS);
        // A sum of `words` products of words and powers is then below 2^64.
        let most = (1u64 << WORD_BITS) / u64::from(words);
        let groups = groups(primes, most as u32);
        let parts = groups.chunks(SUMS);
        Self(parts.map(|groups| Part::new(groups, words)).collect())
    }

    /// Whether one of the primes divides the number: see [`Part::divides`].
    pub(super) fn divide(&self, number: &[u32], or_less_1: bool) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| part.divides(number, or_less_1))
    }
}

/// Groups neighbouring primes with products below `most`.
fn groups(primes: &[u32], most: u32) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut product = most;
    for &prime in primes {
        match product.checked_mul(prime).filter(|product| *product < most) {
            Some(larger) => {
                product = larger;
                groups
                    .last_mut()
                    .expect("the first prime begins a group")
                    .push(prime);
            }
            None => {
                product = prime;
                groups.push(vec![prime]);
            }
        }
    }
    groups
}

impl Part {
    fn new(groups: &[Vec<u32>], words: u32) -> Self {
        let mut products = [1; SUMS];
        for (product, group) in products.iter_mut().zip(groups) {
            *product = group.iter().product();
        }
        let mut row = [1; SUMS];
        let powers = (0..words).map(|_| {
            let powers = row;
            for (power, product) in row.iter_mut().zip(&products) {
                *power = ((u64::from(*power) << WORD_BITS) % u64::from(*product)) as u32;
            }
            powers
        });
        let divisor = |group, prime: u32| Divisor {
            group,
            inverse: inverse(prime.into()),
            most: u64::MAX / u64::from(prime),
        };
        let divisors = groups
            .iter()
            .enumerate()
            .flat_map(|(group, primes)| primes.iter().map(move |prime| divisor(group, *prime)));
        Self {
            powers: powers.collect(),
            divisors: divisors.collect(),
        }
    }

    /// Whether a prime of this part divides the number, or if `or_less_1` the number less 1. This
    /// becomes public. The number consists of words, least significant first.
    pub(super) fn divides(&self, number: &[u32], or_less_1: bool) -> bool {
        let mut sums = Secret::new([0; SUMS]);
        weighted_sums(number, &self.powers, &mut sums);
        let mut divides = any_divides(&self.divisors, &sums, |quotient, _| quotient);
        if or_less_1 {
            // A sum of 0, which has no predecessor, is a multiple.
            divides |= any_divides(&self.divisors, &sums, u64::wrapping_sub);
        }
        reveal(!divides.ct_eq(&0))
    }
}

/// Whether any divisor divides the sum of its group, 1 or 0. To test the sum less 1, `shift`
/// subtracts the inverse of the divisor from the quotient.
#[inline(always)]
fn any_divides(divisors: &[Divisor], sums: &[u64; SUMS], shift: impl Fn(u64, u64) -> u64) -> u8 {
    divisors.iter().fold(0, |divides, divisor| {
        let quotient = sums[divisor.group % SUMS].wrapping_mul(divisor.inverse);
        let (_, is_more) = divisor
            .most
            .overflowing_sub(shift(quotient, divisor.inverse));
        divides | u8::from(!is_more)
    })
}

/// The odd primes below `end`, by the sieve of Eratosthenes.
pub(super) fn odd_primes(end: u32) -> Vec<u32> {
    let mut is_composite = vec![false; end as usize];
    let mut primes = Vec::new();
    for number in (3..end as usize).step_by(2) {
        if !is_composite[number] {
            primes.push(number as u32);
            (number * number..end as usize)
                .step_by(number)
                .for_each(|multiple| is_composite[multiple] = true);
        }
    }
    primes
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;

    #[test]
    fn primes_below() {
        assert_eq!(odd_primes(30), [3, 5, 7, 11, 13, 17, 19, 23, 29]);
        // 2 is the other of the 1,028 primes below 2^13.
        assert_eq!(odd_primes(1 << 13).len(), 1027);
        assert_eq!(odd_primes(1 << 16).len(), 6541);
    }

    #[test]
    fn inverses() {
        for odd in (1..70_000u64).step_by(2).chain([u64::MAX, 0xffff_fffb]) {
            assert_eq!(odd.wrapping_mul(inverse(odd)), 1);
        }
    }

    #[test]
    fn groups_are_below_the_bound() {
        assert_eq!(
            groups(&[3, 5, 7, 11, 13], 106),
            [vec![3, 5, 7], vec![11], vec![13]]
        );
        for words in [16u32, 32, 48, 64, 128] {
            let (primes, most) = (
                odd_primes(1 << 16),
                ((1u64 << 32) / u64::from(words)) as u32,
            );
            let groups = groups(&primes, most);
            assert_eq!(groups.concat(), primes);
            let products = groups.iter().map(|group| group.iter().product::<u32>());
            assert!(products.clone().all(|product| product < most));
            // The largest possible sum.
            let largest = products.max().map(u128::from).unwrap();
            assert!(u128::from(words) * u128::from(u32::MAX) * largest < 1 << 64);
        }
    }

    /// Multiples of each single prime and their neighbours, compared with num-bigint.
    #[test]
    fn multiples_are_found() {
        let primes = odd_primes(1 << 16);
        let bits = 4096;
        let small_primes = SmallPrimes::new(&primes, bits);
        let all_ones: BigUint = (BigUint::from(1u8) << bits) - 1u8;
        for (i, &prime) in (1u32..).zip(&primes).step_by(97) {
            let multiple: BigUint = &all_ones - &all_ones % prime - BigUint::from(prime) * i;
            for number in [
                &multiple - 2u8,
                multiple.clone(),
                &multiple + 2u8,
                &multiple + 1u8,
            ] {
                let expected = primes.iter().any(|prime| &number % *prime == BigUint::ZERO);
                let words = number.to_u32_digits();
                assert_eq!(small_primes.divide(&words, false), expected, "{number}");
                let less_1 = &number - 1u8;
                let expected_less_1 = primes.iter().any(|prime| &less_1 % *prime == BigUint::ZERO);
                let found = small_primes.divide(&words, true);
                assert_eq!(found, expected | expected_less_1, "{number}");
            }
        }
        assert!(!small_primes.divide(&[1], false));
        assert!(small_primes.divide(&[0], false));
    }
}
