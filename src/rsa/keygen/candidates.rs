//! Prime candidates: random numbers in the range of FIPS 186-5, appendix A.1.3, without small
//! factors.
//!
//! A candidate is `M k + r`, with random k and r (Joye and Paillier, *Fast Generation of Prime
//! Numbers on Portable Devices*, 2006). r is below M, has no factor in common with it, and is 3
//! modulo 4, or 7 modulo 8 for safe primes. All such numbers in the range are equally likely, as if
//! numbers were drawn and the others rejected. That would take three times as much randomness.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::secret::{Secret, reveal, scrubbed};
use crypto_bigint::{CtLt, Limb, Word};
use rand_core::TryRng;

use super::trial_division::{SmallPrimes, odd_primes};
use crate::rsa::Error;
use crate::rsa::random::Randomness;

/// The odd prime factors of M.
const FACTORS: [u32; 8] = [3, 5, 7, 11, 13, 17, 19, 23];

/// M, below 2^31.
const M: u32 = 16 * 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23;

/// `sqrt(2) 2^63`, rounded up.
const LEAST: u64 = 0xb504_f333_f9de_6485;

/// The highest bits of k begin here and end below `END`, in units that make `M END` at most 2^96.
/// So candidates of b bits are at least `LEAST 2^(b - 64)` and below 2^b. At the ends, a share of
/// less than 2^-62 of the range is left out.
const BEGIN: u128 = ((LEAST as u128) << 32).div_ceil(M as u128);
const END: u128 = (1 << 96) / M as u128;

/// Draws candidates of one length.
pub(in crate::rsa) struct Candidates {
    /// The length of all candidates.
    pub(super) bits: u32,
    /// The odd factors of M, for numbers below it.
    factors: SmallPrimes,
    /// Primes that do not divide M.
    small_primes: SmallPrimes,
    /// Prime factors of e; a candidate less 1 is no multiple of these.
    exponent_factors: SmallPrimes,
    /// The number of draws after which the randomness cannot be random.
    pub(super) most_draws_for_a_prime: usize,
    /// Whether candidates p for safe primes are drawn: `(p - 1) / 2` has no small factor either.
    pub(super) is_safe: bool,
}

impl Candidates {
    /// Prepares candidates of `bits` bits, a multiple of 64. They are divided by all odd primes below
    /// `small_primes_below`.
    pub(in crate::rsa) fn new(
        bits: u32,
        exponent_factors: &[u32],
        small_primes_below: u32,
        is_safe: bool,
    ) -> Self {
        Self {
            bits,
            factors: SmallPrimes::new(&FACTORS, u64::BITS),
            small_primes: SmallPrimes::new(&odd_primes(small_primes_below)[FACTORS.len()..], bits),
            exponent_factors: SmallPrimes::new(exponent_factors, bits),
            most_draws_for_a_prime: most_draws(bits as usize, exponent_factors, is_safe),
            is_safe,
        }
    }

    /// About how many candidates are tested for a prime. For a safe one, p and `(p - 1) / 2` must
    /// be primes.
    pub(super) fn tests_for_a_prime(&self) -> usize {
        let tests = self.bits as usize / 25;
        if self.is_safe { tests * tests } else { tests }
    }

    /// Draws `count` candidates, one after the other in a buffer, and subtracts each draw from
    /// `draws`. The reason for each rejection becomes public.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], also if no `draws` are left.
    pub(in crate::rsa) fn draw(
        &self,
        randomness: &mut Randomness,
        count: usize,
        draws: &mut usize,
    ) -> Result<Secret<Vec<Limb>>, Error> {
        scrubbed(|| {
            let words = (self.bits / u32::BITS) as usize;
            let limbs = (self.bits / Limb::BITS) as usize;
            let mut candidates = Secret::new(vec![Limb::ZERO; count * limbs]);
            let mut places = candidates.chunks_exact_mut(limbs);
            while places.len() > 0 {
                let mut numbers = Secret::new(vec![0; places.len() * words]);
                for number in numbers.chunks_exact_mut(words) {
                    self.draw_one(randomness, number, draws)?;
                }
                let mut rest: Vec<_> = numbers.chunks_exact(words).collect();
                // All numbers by a part, while its powers are in the first-level cache.
                for part in &self.small_primes.0 {
                    rest.retain(|number| !part.divides(number, self.is_safe));
                }
                for part in &self.exponent_factors.0 {
                    rest.retain(|number| !part.divides(number, true));
                }
                for (number, place) in rest.into_iter().zip(&mut places) {
                    copy(number, place);
                }
            }
            Ok(candidates)
        })
    }

    /// Draws a number in the range that has no factor in common with M.
    fn draw_one(
        &self,
        randomness: &mut Randomness,
        number: &mut [u32],
        draws: &mut usize,
    ) -> Result<(), Error> {
        // If p is 7 modulo 8, `(p - 1) / 2` is 3 modulo 4.
        let lowest_bits = if self.is_safe { 7 } else { 3 };
        let mut r = Secret::new([0]);
        let mut has_factor = true;
        while has_factor {
            *draws = draws.checked_sub(1).ok_or(Error::Rng)?;
            let word = randomness.try_next_u32().map_err(|_| Error::Rng)?;
            r[0] = word >> 1 | lowest_bits;
            has_factor = !reveal(r[0].ct_lt(&M)) || self.factors.divide(&*r, self.is_safe);
        }
        let mut above_begin = Secret::new(u64::MAX);
        while !reveal(above_begin.ct_lt(&((END - BEGIN) as u64))) {
            *draws = draws.checked_sub(1).ok_or(Error::Rng)?;
            *above_begin = randomness.try_next_u64().map_err(|_| Error::Rng)?;
        }
        let highest = Secret::new(BEGIN + u128::from(*above_begin));
        let (low, high) = number.split_at_mut(number.len() - 3);
        for (word, shift) in high.iter_mut().zip((0..).step_by(32)) {
            *word = (*highest >> shift) as u32;
        }
        fill(low, randomness)?;
        // M k + r
        let mut carry = u64::from(r[0]);
        for word in number {
            carry += u64::from(*word) * u64::from(M);
            *word = carry as u32;
            carry >>= u32::BITS;
        }
        Ok(())
    }
}

/// A hundred times the draws that are expected for a prime. Then none is a prime once in 2^140 times.
///
/// Expected are 0.6 draws for each bit, and less than the square of that for a safe prime. A factor
/// f of e rejects one in f - 1 of the numbers that it does not divide. Those of safe primes are
/// rejected anyway.
fn most_draws(bits: usize, exponent_factors: &[u32], is_safe: bool) -> usize {
    if is_safe {
        return 36 * bits * bits;
    }
    exponent_factors.iter().fold(64 * bits, |draws, factor| {
        let others = *factor as usize - 2;
        draws + draws.div_ceil(others)
    })
}

/// Fills words with randomness.
fn fill(words: &mut [u32], randomness: &mut Randomness) -> Result<(), Error> {
    for words in words.chunks_mut(2) {
        let both = randomness.try_next_u64().map_err(|_| Error::Rng)?;
        for (word, shift) in words.iter_mut().zip([0, u32::BITS]) {
            *word = (both >> shift) as u32;
        }
    }
    Ok(())
}

/// Copies words to the limbs of a number.
fn copy(words: &[u32], number: &mut [Limb]) {
    let words = words.chunks_exact((Limb::BITS / u32::BITS) as usize);
    for (limb, words) in number.iter_mut().zip(words) {
        let words = words.iter().zip((0..).step_by(32));
        *limb = Limb(words.fold(0, |limb, (word, shift)| limb | Word::from(*word) << shift));
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::rsa::random::Streams;

    const SMALL_PRIMES_BELOW: u32 = 1 << 13;

    /// Limbs of a candidate of 512 bits.
    const LIMBS: usize = (512 / Limb::BITS) as usize;

    fn big(limbs: &[Limb]) -> BigUint {
        let limbs = limbs.iter().rev();
        limbs.fold(BigUint::ZERO, |sum, limb| (sum << Limb::BITS) + limb.0)
    }

    fn streams() -> Streams {
        use rand_core::SeedableRng;
        let mut rng = chacha20::ChaCha20Rng::seed_from_u64(7);
        Streams::seeded(&mut rng).unwrap()
    }

    /// No candidate is outside of the range, even, 1 modulo 4, a multiple of a small prime, or 1
    /// modulo a factor of e.
    #[test]
    fn candidates_are_as_they_should_be() {
        let factors = [3, 65_537, 65_539];
        let candidates = Candidates::new(512, &factors, SMALL_PRIMES_BELOW, false);
        let (mut randomness, mut draws) = (streams().next(), 1 << 20);
        let drawn = candidates.draw(&mut randomness, 200, &mut draws).unwrap();
        assert_eq!(drawn.len(), 200 * LIMBS);
        let used = (1 << 20) - draws;
        // Five draws make a number. A share of 0.38 has no small factor; half of that is 1 modulo 3.
        assert!((2000..20_000).contains(&used), "{used}");
        for number in drawn.chunks_exact(LIMBS).map(big) {
            let square = &number * &number;
            assert!(square >= BigUint::from(1u8) << 1023 && square < BigUint::from(1u8) << 1024);
            assert_eq!(&number % 4u8, BigUint::from(3u8));
            for prime in (3..SMALL_PRIMES_BELOW).step_by(2) {
                assert_ne!(&number % prime, BigUint::ZERO, "{prime}");
            }
            for factor in factors {
                assert_ne!(&number % factor, BigUint::from(1u8));
            }
        }
    }

    #[test]
    fn candidates_for_safe_primes() {
        let candidates = Candidates::new(512, &[65_537], SMALL_PRIMES_BELOW, true);
        let (mut randomness, mut draws) = (streams().next(), 1 << 22);
        let drawn = candidates.draw(&mut randomness, 50, &mut draws).unwrap();
        for number in drawn.chunks_exact(LIMBS).map(big) {
            assert_eq!(&number % 8u8, BigUint::from(7u8));
            for prime in (3..SMALL_PRIMES_BELOW).step_by(2) {
                let rest = &number % prime;
                assert!(
                    rest != BigUint::ZERO && rest != BigUint::from(1u8),
                    "{prime}"
                );
            }
        }
    }

    #[test]
    fn draws_end() {
        let candidates = Candidates::new(512, &[65_537], SMALL_PRIMES_BELOW, false);
        let (mut randomness, mut draws) = (streams().next(), 100);
        let drawn = candidates.draw(&mut randomness, 200, &mut draws);
        assert!(matches!(drawn, Err(Error::Rng)));
        assert_eq!(draws, 0);
    }

    /// The limit counts the numbers that the factors of e reject.
    #[test]
    fn more_draws_for_more_factors() {
        let draws = |factors: &[u32], is_safe| {
            Candidates::new(1024, factors, SMALL_PRIMES_BELOW, is_safe).most_draws_for_a_prime
        };
        let least = 64 * 1024;
        assert!((least..=least + 2).contains(&draws(&[65_537], false)));
        assert_eq!(draws(&[3], false), 2 * least);
        assert_eq!(draws(&[3, 5], false), 2 * least + (2 * least).div_ceil(3));
        // e = 3 * 5 * 7 * ... * 29: of the other numbers, one in 4.76 fits.
        let most = draws(&[3, 5, 7, 11, 13, 17, 19, 23, 29], false);
        assert!((475..=477).contains(&(100 * most / least)), "{most}");
        assert_eq!(draws(&[3, 5], true), draws(&[65_537], true));
    }

    #[test]
    fn the_least_number_is_the_square_root() {
        let square = |number: u64| u128::from(number).pow(2);
        assert!(square(LEAST - 1) < 1 << 127 && square(LEAST) > 1 << 127);
        let least = u128::from(LEAST) << 32;
        let m = u128::from(M);
        assert!((least..least + m).contains(&(BEGIN * m)));
        assert!((END * m..(END + 1) * m).contains(&(1 << 96)));
        const { assert!(END - BEGIN < 1 << 64) };
    }
}
