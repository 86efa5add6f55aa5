//! Prime candidates: random numbers in the range of FIPS 186-5, appendix A.1.3, without small
//! factors.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{BoxedUint, CtLt, Limb, Resize};
use rand_core::TryRng;

use super::trial_division::{SmallPrimes, leaves_one, odd_primes};
use crate::rsa::Error;
use crate::rsa::octets::octets_to_limbs;
use crate::rsa::private_op::Randomness;

/// Candidates are divided by all odd primes below this. More would take longer than the primality
/// tests they save.
const SMALL_PRIMES_BELOW: u32 = 1 << 13;

/// Draws candidates of one length.
pub(in crate::rsa) struct Candidates {
    bits: u32,
    /// The smallest number in the range: `sqrt(2) 2^(bits - 1)`, rounded up.
    least: BoxedUint,
    small_primes: SmallPrimes,
    /// The factors of e; a candidate less 1 is no multiple of these.
    exponent_factors: Vec<u32>,
}

impl Candidates {
    /// Prepares candidates of `bits` bits, a multiple of the limb size.
    pub(in crate::rsa) fn new(bits: u32, exponent_factors: &[u32]) -> Self {
        // Adding 1 rounds up: no power of two with an odd exponent is a square.
        let square = BoxedUint::one_with_precision(2 * bits).shl_vartime(2 * bits - 1);
        let square = square.expect("it has so many bits");
        let least = square
            .floor_sqrt_vartime()
            .wrapping_add(Limb::ONE)
            .resize(bits);
        Self {
            bits,
            least,
            small_primes: SmallPrimes::new(&odd_primes(SMALL_PRIMES_BELOW), bits),
            exponent_factors: exponent_factors.to_vec(),
        }
    }

    /// The length of candidates in bits.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Draws `count` candidates, and subtracts each draw from `draws`.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], also if no `draws` are left.
    pub(in crate::rsa) fn draw(
        &self,
        randomness: &mut Randomness,
        count: usize,
        draws: &mut usize,
    ) -> Result<Vec<Secret<BoxedUint>>, Error> {
        let mut candidates = Vec::with_capacity(count);
        let mut octets = Secret::new(vec![0; (self.bits / 8) as usize]);
        while candidates.len() < count {
            *draws = draws.checked_sub(1).ok_or(Error::Rng)?;
            randomness
                .try_fill_bytes(&mut octets)
                .map_err(|_| Error::Rng)?;
            let last = octets.len() - 1;
            octets[0] |= 0x80;
            octets[last] |= 3;
            let mut candidate = Secret::new(BoxedUint::zero_with_precision(self.bits));
            octets_to_limbs(&octets, candidate.as_mut_limbs());
            if self.is_taken(&candidate) {
                candidates.push(candidate);
            }
        }
        Ok(candidates)
    }

    /// Whether a number is in the range, has no small factor, and less 1 has no factor of e. The
    /// reason for a rejection becomes public.
    fn is_taken(&self, candidate: &BoxedUint) -> bool {
        let limbs = candidate.as_limbs();
        let is_too_small = reveal(candidate.ct_lt(&self.least));
        !is_too_small
            && !self.small_primes.divide_one(limbs)
            && !self
                .exponent_factors
                .iter()
                .any(|&factor| leaves_one(limbs, factor))
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::rsa::private_op::Streams;

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
        let candidates = Candidates::new(512, &factors);
        let (mut randomness, mut draws) = (streams().next(), 1 << 20);
        let drawn = candidates.draw(&mut randomness, 200, &mut draws).unwrap();
        assert_eq!(drawn.len(), 200);
        let used = (1 << 20) - draws;
        // A share of 0.59 is in the range, of which 0.12 have no small factor; half of those are 1
        // modulo 3.
        assert!((2000..20_000).contains(&used), "{used}");
        for candidate in &drawn {
            let number = BigUint::from_bytes_be(&candidate.to_be_bytes());
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
    fn draws_end() {
        let candidates = Candidates::new(512, &[65_537]);
        let (mut randomness, mut draws) = (streams().next(), 100);
        let drawn = candidates.draw(&mut randomness, 200, &mut draws);
        assert!(matches!(drawn, Err(Error::Rng)));
        assert_eq!(draws, 0);
    }

    #[test]
    fn the_least_number_is_the_square_root() {
        for bits in [512, 1024, 2048] {
            let least = Candidates::new(bits, &[]).least;
            let least = BigUint::from_bytes_be(&least.to_be_bytes());
            let bound = BigUint::from(1u8) << (2 * bits - 1);
            assert!(&least * &least > bound);
            let less = &least - 1u8;
            assert!(&less * &less < bound);
        }
    }
}
