//! The Miller-Rabin test (FIPS 186-5, appendix B.3.1) on many candidates at once.
//!
//! Candidates are 3 modulo 4, so the test has one step: w passes with the base b if `b^((w - 1) /
//! 2)` is 1 or -1 modulo w.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::requests::SecretPowers;
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Choice, CtEq, Limb, Word};
use rand_core::TryRng;

use super::candidates::Candidates;
use super::halve;
use crate::rsa::Error;
use crate::rsa::key::params;
use crate::rsa::private_op::Randomness;

/// The most candidates tested at a time. More would not fit into a cache.
const AT_A_TIME: usize = 256;

/// Lanes of the widest engine.
const LANES: usize = 8;

/// Finds at least `count` primes.
///
/// # Errors
///
/// [`Error::Rng`], also if so few candidates are primes that the randomness cannot be random.
pub(super) fn primes(
    engine: &dyn Engine,
    candidates: &Candidates,
    randomness: &mut Randomness,
    count: usize,
) -> Result<Vec<Secret<BoxedUint>>, Error> {
    let bits = candidates.bits();
    // A prime takes 0.6 draws for each bit. With 64, none is found once in 2^150 times.
    let mut draws = count.saturating_mul(64 * bits as usize);
    let mut primes = Vec::new();
    while primes.len() < count {
        // A prime takes about one test for each 23 bits. Half as many at a time waste few tests at
        // the end.
        let tests = (count - primes.len()).saturating_mul(bits as usize) / 46;
        let tests = tests.clamp(LANES, AT_A_TIME).next_multiple_of(LANES);
        let drawn = candidates.draw(randomness, tests, &mut draws)?;
        primes.extend(test(engine, drawn, randomness)?);
    }
    Ok(primes)
}

/// Returns the candidates that are primes. The others, and the round that rejected them, become
/// public.
fn test(
    engine: &dyn Engine,
    candidates: Vec<Secret<BoxedUint>>,
    randomness: &mut Randomness,
) -> Result<Vec<Secret<BoxedUint>>, Error> {
    let params: Vec<_> = candidates
        .iter()
        .map(|candidate| params::secret(candidate))
        .collect();
    let each: Vec<_> = params.iter().map(|params| &**params).collect();
    let first = pass(engine, &each, randomness)?;
    let passed = |(index, passed): (usize, bool)| passed.then_some(index);
    let passed: Vec<_> = first.into_iter().enumerate().filter_map(passed).collect();
    if passed.is_empty() {
        return Ok(Vec::new());
    }
    // All further rounds at once, so that no lane is idle.
    let further = rounds(each[0].modulus().bits_precision()) - 1;
    let again = passed
        .iter()
        .flat_map(|&index| core::iter::repeat_n(each[index], further));
    let verdicts = pass(engine, &again.collect::<Vec<_>>(), randomness)?;
    let verdicts = verdicts.chunks_exact(further);
    let is_prime = |(index, verdicts): (&usize, &[bool])| {
        verdicts.iter().all(|passed| *passed).then_some(*index)
    };
    let primes: Vec<_> = passed.iter().zip(verdicts).filter_map(is_prime).collect();
    let chosen = candidates.into_iter().enumerate();
    let chosen = chosen.filter(|(index, _)| primes.contains(index));
    Ok(chosen.map(|(_, prime)| prime).collect())
}

/// The number of rounds after which a composite random number of `bits` bits passes with a
/// probability below 2^-128.
///
/// Damgård, Landrock and Pomerance, "Average case error estimates for the strong probable prime
/// test" (1993), theorem 2, bound it for k = `bits` and t from 3 to k / 9: `k^(3/2) 2^t t^(-1/2)
/// 4^(2 - sqrt(t k))`. Three more bits account for numbers that are not drawn: those below the
/// range and those that are 1 modulo 4.
fn rounds(bits: u32) -> usize {
    const ERROR_BITS: u64 = 128 + 3;
    // In eighths of a bit, each rounded towards more rounds: without `std` there are no
    // floating-point roots.
    let log2 = |x: u64| {
        let power = u128::from(x).pow(8);
        u64::from(u128::BITS - power.leading_zeros())
    };
    let k = u64::from(bits);
    let enough = |t: &u64| {
        let gain = 2 * (64 * t * k).isqrt() + log2(*t).saturating_sub(1) / 2;
        let loss = (3 * log2(k)).div_ceil(2) + 8 * t + 8 * 4;
        gain >= loss + 8 * ERROR_BITS
    };
    (3..=k / 9).find(enough).unwrap_or(k / 9) as usize
}

/// Whether each candidate, an odd modulus with its constants, passes with a random base.
pub(in crate::rsa) fn pass(
    engine: &dyn Engine,
    candidates: &[&MontyParams<BoxedUint>],
    randomness: &mut Randomness,
) -> Result<Vec<bool>, Error> {
    let Some(first) = candidates.first() else {
        return Ok(Vec::new());
    };
    let bits = first.modulus().bits_precision();
    let size = (bits / Limb::BITS) as usize;
    let bases = bases(candidates, size, randomness)?;
    let exponents = candidates
        .iter()
        .map(|params| half(params.modulus().as_ref()));
    let exponents: Secret<Vec<_>> = Secret::new(exponents.collect());
    let mut powers = Secret::new(vec![Limb::ZERO; bases.len()]);
    engine.pow(SecretPowers {
        moduli: candidates,
        exponents: &exponents.iter().collect::<Vec<_>>(),
        exponent_bits: bits - 1,
        bases: &bases,
        out: &mut powers,
    });
    let verdicts = powers.chunks_exact(size).zip(candidates);
    let verdict = |(power, params): (&[Limb], &&MontyParams<BoxedUint>)| {
        reveal(is_one_or_minus_one(
            power,
            params.modulus().as_ref().as_limbs(),
        ))
    };
    Ok(verdicts.map(verdict).collect())
}

/// Draws a random number below each modulus: its product with a random fraction of 64 more bits,
/// rounded down. These are nearly uniform, like the remainders of FIPS 186-5, appendix A.4.1, and
/// need no division. 0, 1 and -1 are as unlikely as a composite that passes.
fn bases(
    moduli: &[&MontyParams<BoxedUint>],
    size: usize,
    randomness: &mut Randomness,
) -> Result<Secret<Vec<Limb>>, Error> {
    let long = size + (u64::BITS / Limb::BITS) as usize;
    let mut bases = Secret::new(vec![Limb::ZERO; moduli.len() * size]);
    let mut octets = Secret::new(vec![0; long * Limb::BYTES]);
    let mut product = Secret::new(vec![Limb::ZERO; size + long]);
    for (base, modulus) in bases.chunks_exact_mut(size).zip(moduli) {
        randomness
            .try_fill_bytes(&mut octets)
            .map_err(|_| Error::Rng)?;
        product.fill(Limb::ZERO);
        for (i, octets) in octets.as_chunks().0.iter().enumerate() {
            let digit = Limb(Word::from_le_bytes(*octets));
            let (low, high) = product[i..].split_at_mut(size);
            let mut carry = Limb::ZERO;
            for (limb, modulus) in low.iter_mut().zip(modulus.modulus().as_ref().as_limbs()) {
                (*limb, carry) = digit.carrying_mul_add(*modulus, *limb, carry);
            }
            high[0] = carry;
        }
        base.copy_from_slice(&product[long..]);
    }
    Ok(bases)
}

/// `(candidate - 1) / 2` of an odd candidate.
fn half(candidate: &BoxedUint) -> BoxedUint {
    let mut half = candidate.clone();
    halve(half.as_mut_limbs());
    half
}

/// Whether `power` is 1 or `modulus - 1`, for an odd modulus.
fn is_one_or_minus_one(power: &[Limb], modulus: &[Limb]) -> Choice {
    let from_one = power[1..].iter();
    let from_one = from_one.fold(power[0].0 ^ 1, |bits, limb| bits | limb.0);
    // An odd number less 1 differs from it only in the lowest bit.
    let from_minus_one = power[1..].iter().zip(&modulus[1..]);
    let from_minus_one = from_minus_one
        .fold(power[0].0 ^ modulus[0].0 ^ 1, |bits, (limb, other)| {
            bits | (limb.0 ^ other.0)
        });
    from_one.ct_eq(&0) | from_minus_one.ct_eq(&0)
}

#[cfg(test)]
mod tests {
    use core::slice;

    use batch_modexp_core::Serial;
    use num_bigint::BigUint;
    use rand_core::SeedableRng;

    use super::super::trial_division::odd_primes;
    use super::*;
    use crate::rsa::private_op::Streams;

    #[test]
    fn rounds_for_an_error_below_2_to_the_minus_128() {
        assert_eq!([512, 1024, 1536, 2048, 4096].map(rounds), [13, 6, 4, 3, 3]);
        // The bound in floating point.
        for bits in (512..=4096).step_by(64) {
            let (k, t) = (f64::from(bits), rounds(bits) as f64);
            let bound = 1.5 * k.log2() + t - t.log2() / 2.0 + 2.0 * (2.0 - (t * k).sqrt());
            assert!(bound <= -131.0, "{bits}: 2^{bound}");
        }
    }

    fn boxed(number: &BigUint) -> Secret<BoxedUint> {
        let bits = (number.bits() as u32).next_multiple_of(64);
        Secret::new(BoxedUint::from_be_slice(&number.to_bytes_be(), bits).unwrap())
    }

    /// The number of primes found among `numbers`.
    fn primes_among(numbers: &[BigUint]) -> usize {
        let numbers: Vec<_> = numbers.iter().map(boxed).collect();
        let mut rng = chacha20::ChaCha20Rng::seed_from_u64(3);
        let mut randomness = Streams::seeded(&mut rng).unwrap().next();
        test(&Serial, numbers, &mut randomness).unwrap().len()
    }

    /// Known primes and composites that are 3 modulo 4.
    #[test]
    fn primes_pass_and_composites_do_not() {
        let power_of_two = |bits: u32| BigUint::from(1u8) << bits;
        // The largest 512-bit prime, and a Mersenne prime.
        let largest: BigUint = power_of_two(512) - 569u32;
        let mersenne: BigUint = power_of_two(521) - 1u8;
        assert_eq!(primes_among(slice::from_ref(&largest)), 1);
        assert_eq!(primes_among(&[mersenne]), 1);
        // Products of two primes or of two factors, and neighbours of the prime.
        let composites: [BigUint; 4] = [
            (power_of_two(256) - 189u32) * (power_of_two(255) - 19u32),
            (power_of_two(510) + 1u8) * 3u8,
            &largest - 4u8,
            &largest - 8u8,
        ];
        assert!(
            composites
                .iter()
                .all(|number| number % 4u8 == BigUint::from(3u8))
        );
        assert_eq!(primes_among(&composites), 0);
        let among = [composites[0].clone(), largest, composites[1].clone()];
        assert_eq!(primes_among(&among), 1);
    }

    /// Carmichael numbers pass Fermat's test with every base coprime to them.
    #[test]
    fn carmichael_numbers_do_not_pass() {
        // Carmichael numbers with three factors that are 3 modulo 4, by Korselt's criterion.
        let primes = odd_primes(1000);
        let primes: Vec<_> = primes.into_iter().filter(|prime| prime % 4 == 3).collect();
        let mut found = 0;
        for (i, p) in primes.iter().enumerate() {
            for (j, q) in primes.iter().enumerate().skip(i + 1) {
                for r in &primes[j + 1..] {
                    let number = p * q * r;
                    let divides = |prime: &u32| (number - 1).is_multiple_of(prime - 1);
                    if ![p, q, r].into_iter().all(divides) {
                        continue;
                    }
                    let number = boxed(&BigUint::from(number));
                    let mut rng = chacha20::ChaCha20Rng::seed_from_u64(3);
                    let mut randomness = Streams::seeded(&mut rng).unwrap().next();
                    let params = params::secret(&number);
                    let verdicts = pass(&Serial, &[&*params; 20], &mut randomness).unwrap();
                    assert!(!verdicts.iter().all(|passed| *passed), "{p} {q} {r}");
                    found += 1;
                }
            }
        }
        assert!(found >= 5, "{found}");
    }
}
