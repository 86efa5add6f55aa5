//! Tests with known primes and composites.

use core::slice;

use batch_modexp_core::Serial;
use num_bigint::BigUint;
use rand_core::SeedableRng;

use super::super::trial_division::odd_primes;
use super::*;
use crate::rsa::random::Streams;

#[test]
fn rounds_for_an_error_below_2_to_the_minus_128() {
    let of = |is_safe| [512, 1024, 1536, 2048, 4096].map(|bits| rounds(bits, is_safe));
    assert_eq!(of(false), [13, 6, 4, 3, 3]);
    assert_eq!(of(true), [15, 7, 5, 4, 3]);
    // The bound in floating point.
    for (is_safe, most) in [(false, -131.0), (true, -143.0)] {
        for bits in (512..=4096).step_by(64) {
            let t = rounds(bits, is_safe) as f64;
            let k = f64::from(bits) - f64::from(u8::from(is_safe));
            let bound = 1.5 * k.log2() + t - t.log2() / 2.0 + 2.0 * (2.0 - (t * k).sqrt());
            assert!(bound <= most, "{bits}: 2^{bound}");
        }
    }
}

fn limbs(number: &BigUint) -> Vec<Limb> {
    let digits = (0..number.bits()).step_by(Limb::BITS as usize);
    let digits = digits.map(|shift| (number >> shift) & BigUint::from(Word::MAX));
    digits
        .map(|digit| Limb(Word::try_from(digit).unwrap()))
        .collect()
}

/// The number of primes found among `numbers`.
fn primes_among(numbers: &[BigUint], is_safe: bool) -> usize {
    let primes = |devices: Option<Exponentiate<'_>>| {
        let testers = Testers {
            engine: &Serial,
            devices,
            stop: &AtomicBool::new(false),
        };
        let min_bits = numbers.iter().map(|number| number.bits()).min();
        let min_bits = min_bits.unwrap_or(0) as u32;
        let len = min_bits.div_ceil(Limb::BITS) as usize;
        let numbers: Vec<_> = numbers.iter().map(limbs).collect();
        assert!(numbers.iter().all(|number| number.len() == len));
        let numbers = numbers.concat();
        let mut rng = chacha20::ChaCha20Rng::seed_from_u64(3);
        let mut randomness = Streams::seeded(&mut rng).unwrap().next();
        test(testers, &numbers, min_bits, is_safe, &mut randomness)
            .unwrap()
            .len()
    };
    let count = primes(None);
    // Devices that compute, for which everything passes, and for which nothing does.
    let all_ones = |powers: SecretPowers<'_>| {
        let size = powers.out.len() / powers.moduli.len();
        for power in powers.out.chunks_exact_mut(size) {
            power[0] = Limb::ONE;
        }
        Ok(())
    };
    assert_eq!(primes(Some(&on_engine(&Serial))), count);
    assert_eq!(primes(Some(&all_ones)), count);
    assert_eq!(primes(Some(&|_: SecretPowers<'_>| Ok(()))), 0);
    count
}

/// Known primes and composites that are 3 modulo 4.
#[test]
fn primes_pass_and_composites_do_not() {
    let power_of_two = |bits: u32| BigUint::from(1u8) << bits;
    // The largest 512-bit prime, and a Mersenne prime.
    let largest: BigUint = power_of_two(512) - 569u32;
    let mersenne: BigUint = power_of_two(521) - 1u8;
    assert_eq!(primes_among(slice::from_ref(&largest), false), 1);
    assert_eq!(primes_among(slice::from_ref(&mersenne), false), 1);
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
    assert_eq!(primes_among(&composites, false), 0);
    let among = [composites[0].clone(), largest, composites[1].clone()];
    assert_eq!(primes_among(&among, false), 1);
}

/// The prime of the first Oakley group (RFC 2409, section 6.1) is safe; a Mersenne prime is
/// not.
#[test]
fn safe_primes() {
    let oakley = "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74\
                  020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437\
                  4FE1356D6D51C245E485B576625E7EC6F44C42E9A63A3620FFFFFFFFFFFFFFFF";
    let oakley = BigUint::parse_bytes(oakley.as_bytes(), 16).unwrap();
    let one = BigUint::from(1u8);
    let mersenne: BigUint = (&one << 521u32) - &one;
    // A prime whose double plus 1, but not its half, is prime.
    let half = &oakley >> 1u32;
    for (number, is_prime, is_safe) in [
        (&oakley, 1, 1),
        (&mersenne, 1, 0),
        (&half, 1, 0),
        (&(&oakley - 8u8), 0, 0),
    ] {
        let number = slice::from_ref(number);
        assert_eq!(primes_among(number, false), is_prime);
        assert_eq!(primes_among(number, true), is_safe);
    }
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
                let mut rng = chacha20::ChaCha20Rng::seed_from_u64(3);
                let mut randomness = Streams::seeded(&mut rng).unwrap().next();
                let modulus = Modulus::new(&limbs(&BigUint::from(number)), 0);
                let verdicts = pass(
                    &on_engine(&Serial),
                    &[modulus.by_ref(); 20],
                    Some(&mut randomness),
                )
                .unwrap();
                assert!(!verdicts.iter().all(|passed| *passed), "{p} {q} {r}");
                found += 1;
            }
        }
    }
    assert!(found >= 5, "{found}");
}
