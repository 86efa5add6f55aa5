//! The Miller-Rabin test (FIPS 186-5, appendix B.3.1) on many candidates at once.
//!
//! Candidates are 3 modulo 4, so the test has one step: w passes with the base b if `b^((w - 1) /
//! 2)` is 1 or -1 modulo w.

use alloc::vec;
use alloc::vec::Vec;
use core::iter;
use core::sync::atomic::{AtomicBool, Ordering};

use batch_modexp_core::engine::{Engine, Moduli, SecretPowers};
use batch_modexp_core::limbs::ct_eq;
use batch_modexp_core::monty::{Modulus, ModulusRef};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{BoxedUint, Choice, CtEq, Limb, U64, UintRef, Word};
use rand_core::TryRng;

use super::candidates::Candidates;
use crate::rsa::Error;
use crate::rsa::private_op::{Exponentiate, secret_powers};
use crate::rsa::random::Randomness;

/// Lanes of the widest engine.
const LANES: usize = 8;

/// The engine and devices that exponentiate for the tests of one thread.
#[derive(Clone, Copy)]
pub(super) struct Testers<'a> {
    /// Computes on the calling thread.
    pub(super) engine: &'a dyn Engine,
    /// Computes all rounds in place of the engine, which repeats one for each prime.
    pub(super) devices: Option<Exponentiate<'a>>,
    /// Ends the search once it is true.
    pub(super) stop: &'a AtomicBool,
}

/// The number of tests at a time to find `count` primes, of which each takes `tests_for_a_prime` on
/// average.
fn tests_at_a_time(count: usize, tests_for_a_prime: usize, has_devices: bool) -> usize {
    let tests = count.saturating_mul(tests_for_a_prime);
    let tests = match has_devices {
        // More, because small primes reject fewer candidates then, and a device takes as long for
        // a few tests as for thousands.
        true => tests.saturating_add(tests / 2).min(8192),
        // Half, of which few are wasted at the end. More than 256 would not fit into a cache.
        false => (tests / 2).min(256),
    };
    tests.max(1).next_multiple_of(LANES)
}

/// The smallest number of primes for which the most candidates are tested at a time.
pub(super) fn primes_at_a_time(candidates: &Candidates, has_devices: bool) -> usize {
    let tests = |primes| tests_at_a_time(primes, candidates.tests_for_a_prime(), has_devices);
    let most = tests(usize::MAX);
    (1..most)
        .find(|&primes| tests(primes) == most)
        .unwrap_or(most)
}

/// Finds at least `count` primes, or fewer if it is stopped.
///
/// # Errors
///
/// [`Error::Rng`], also if so few candidates are primes that the randomness cannot be random, and
/// the error of the devices.
pub(super) fn primes(
    testers: Testers<'_>,
    candidates: &Candidates,
    randomness: &mut Randomness,
    count: usize,
) -> Result<Vec<Secret<BoxedUint>>, Error> {
    let mut draws = count.saturating_mul(candidates.most_draws_for_a_prime);
    let mut primes = Vec::new();
    while primes.len() < count && !testers.stop.load(Ordering::Relaxed) {
        let tests = tests_at_a_time(
            count - primes.len(),
            candidates.tests_for_a_prime(),
            testers.devices.is_some(),
        );
        let drawn = candidates.draw(randomness, tests, &mut draws)?;
        let (bits, is_safe) = (candidates.bits, candidates.is_safe);
        primes.extend(test(testers, &drawn, bits, is_safe, randomness)?);
    }
    Ok(primes)
}

/// A candidate p under test. For safe primes also `(p - 1) / 2`, once p has passed a round.
type Candidate = Vec<Modulus>;

/// Returns the candidates that are primes, or safe primes. The others, and the round that rejected
/// them, become public, and so is that all candidates have at least `min_bits` bits, of which their last
/// limbs hold some.
fn test(
    testers: Testers<'_>,
    candidates: &[Limb],
    min_bits: u32,
    is_safe: bool,
    randomness: &mut Randomness,
) -> Result<Vec<Secret<BoxedUint>>, Error> {
    let on_engine = on_engine(testers.engine);
    let exponentiate = testers.devices.unwrap_or(&on_engine);
    let bits = min_bits.next_multiple_of(Limb::BITS);
    let candidates = candidates.chunks_exact((bits / Limb::BITS) as usize);
    let mut candidates: Vec<Candidate> = candidates
        .map(|number| vec![Modulus::new(number, min_bits)])
        .collect();
    // A round with the base 2, which needs no randomness, rejects most candidates.
    retain(&mut candidates, 0, exponentiate, None)?;
    if is_safe {
        for candidate in &mut candidates {
            let mut half = Secret::new(candidate[0].by_ref().limbs.to_vec());
            UintRef::new_mut(&mut half).shr1_assign();
            candidate.push(Modulus::new(&half, min_bits - 1));
        }
        retain(&mut candidates, 1, exponentiate, None)?;
    }
    // All rounds at once leave no lane idle.
    let rounds = (rounds(bits, is_safe), &mut *randomness);
    retain(&mut candidates, 0, exponentiate, Some(rounds))?;
    if testers.devices.is_some() {
        // A composite that has passed because of a wrong power passes here once in 2^40 times for
        // 1024 bits: Damgård, Landrock and Pomerance, theorem 1.
        retain(&mut candidates, 0, &on_engine, Some((1, randomness)))?;
    }
    let number = |candidate: Candidate| {
        let limbs = candidate[0].by_ref().limbs.to_vec();
        Secret::new(BoxedUint::from(limbs))
    };
    Ok(candidates.into_iter().map(number).collect())
}

/// Drops the candidates whose numbers, from the index `first` on, do not all pass
/// `random_rounds`, a number of rounds with random bases. Without them one round has the base 2.
fn retain(
    candidates: &mut Vec<Candidate>,
    first: usize,
    exponentiate: Exponentiate<'_>,
    random_rounds: Option<(usize, &mut Randomness)>,
) -> Result<(), Error> {
    let (rounds, randomness) = random_rounds.unzip();
    let rounds = rounds.unwrap_or(1);
    let tested = candidates.iter().flat_map(|numbers| &numbers[first..]);
    let each: Vec<_> = tested
        .flat_map(|number| iter::repeat_n(number.by_ref(), rounds))
        .collect();
    let mut verdicts = pass(exponentiate, &each, randomness)?.into_iter();
    candidates.retain(|numbers| {
        let verdicts = verdicts.by_ref().take(rounds * numbers[first..].len());
        verdicts.fold(true, |all, passed| all & passed)
    });
    Ok(())
}

/// The number of rounds after which a composite random number of `bits` bits passes with a
/// probability below 2^-128.
///
/// Damgård, Landrock and Pomerance, "Average case error estimates for the strong probable prime
/// test" (1993), theorem 2, bound it for k = `bits` and t from 3 to k / 9: `k^(3/2) 2^t t^(-1/2)
/// 4^(2 - sqrt(t k))`. More bits account for numbers that are not drawn: three for those below the
/// range, those that are 1 modulo 4, and those that do not fit 65537.
///
/// If `is_safe`, p and its half, which has a bit less, must both pass. Twelve more bits account for
/// the numbers p that are 3 modulo 8, and for those whose half is no prime: up to 4096 bits, all
/// but one in 2^11.1 by the conjecture of Hardy and Littlewood.
fn rounds(bits: u32, is_safe: bool) -> usize {
    let error_bits = if is_safe { 128 + 3 + 12 } else { 128 + 3 };
    // In eighths of a bit, each rounded towards more rounds: without `std` there are no
    // floating-point roots.
    let log2 = |x: u64| {
        let power = u128::from(x).pow(8);
        u64::from(u128::BITS - power.leading_zeros())
    };
    let k = u64::from(bits - u32::from(is_safe));
    let enough = |t: &u64| {
        let gain = 2 * (64 * t * k).isqrt() + log2(*t).saturating_sub(1) / 2;
        let loss = (3 * log2(k)).div_ceil(2) + 8 * t + 8 * 4;
        gain >= loss + 8 * error_bits
    };
    (3..=k / 9).find(enough).unwrap_or(k / 9) as usize
}

/// Exponentiations on an engine.
pub(in crate::rsa) fn on_engine(
    engine: &dyn Engine,
) -> impl Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error> {
    |powers| {
        engine.pow(powers);
        Ok(())
    }
}

/// Whether each candidate, an odd modulus with its constants, passes with a random base, or without
/// randomness with the base 2.
///
/// # Errors
///
/// [`Error::Rng`] and the error of `exponentiate`.
pub(in crate::rsa) fn pass(
    exponentiate: Exponentiate<'_>,
    candidates: Moduli<'_>,
    randomness: Option<&mut Randomness>,
) -> Result<Vec<bool>, Error> {
    let Some(first) = candidates.first() else {
        return Ok(Vec::new());
    };
    let (bits, size) = (first.width(), first.limbs.len());
    let mut bases = Secret::new(vec![Limb::ZERO; candidates.len() * size]);
    match randomness {
        Some(randomness) => draw_bases(candidates, &mut bases, randomness)?,
        None => bases
            .iter_mut()
            .step_by(size)
            .for_each(|base| *base = Limb::from(2u8)),
    }
    // `(w - 1) / 2` for each odd candidate w.
    let mut halves = Secret::new(vec![Limb::ZERO; bases.len()]);
    for (half, modulus) in halves.chunks_exact_mut(size).zip(candidates) {
        half.copy_from_slice(modulus.limbs);
        UintRef::new_mut(half).shr1_assign();
    }
    let exponents: Vec<_> = halves.chunks_exact(size).collect();
    let powers = secret_powers(exponentiate, candidates, &exponents, bits - 1, &bases)?;
    let verdicts = powers.chunks_exact(size).zip(candidates);
    let verdict = |(power, modulus): (&[Limb], &ModulusRef<'_>)| {
        reveal(is_one_or_minus_one(power, modulus.limbs))
    };
    Ok(verdicts.map(verdict).collect())
}

/// Draws a random number below each modulus: its product with a random fraction of 64 more bits,
/// rounded down. These are nearly uniform, like the remainders of FIPS 186-5, appendix A.4.1, and
/// need no division. 0, 1 and -1 are as unlikely as a composite that passes.
fn draw_bases(
    moduli: Moduli<'_>,
    bases: &mut [Limb],
    randomness: &mut Randomness,
) -> Result<(), Error> {
    let size = bases.len() / moduli.len();
    let long = size + (u64::BITS / Limb::BITS) as usize;
    let mut product = Secret::new(vec![Limb::ZERO; size + long]);
    for (base, modulus) in bases.chunks_exact_mut(size).zip(moduli) {
        product.fill(Limb::ZERO);
        for i in 0..long {
            let digit = randomness.try_next_u64().map_err(|_| Error::Rng)?;
            let digit = Limb(digit as Word);
            let (low, high) = product[i..].split_at_mut(size);
            let mut carry = Limb::ZERO;
            for (limb, modulus) in low.iter_mut().zip(modulus.limbs) {
                (*limb, carry) = digit.carrying_mul_add(*modulus, *limb, carry);
            }
            high[0] = carry;
        }
        base.copy_from_slice(&product[long..]);
    }
    Ok(())
}

/// Whether `power` is 1 or `modulus - 1`, for an odd modulus.
fn is_one_or_minus_one(power: &[Limb], modulus: &[Limb]) -> Choice {
    let is_one = UintRef::new(power).ct_eq(&U64::ONE);
    // An odd number less 1 differs from it only in the lowest bit.
    let is_minus_one = (power[0] ^ modulus[0]).ct_eq(&Limb::ONE);
    is_one | is_minus_one & ct_eq(&power[1..], &modulus[1..])
}

#[cfg(test)]
mod tests;
