//! Tests of streams and of numbers below n. Blinding is tested with the private operation.

use core::convert::Infallible;

use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;

use super::*;
use crate::rsa::KeyHandle;
use crate::rsa::limbs::limbs_to_octets;

/// A generator that returns one octet over and over, except in the first `flawed` calls, which
/// return another.
struct Stuck {
    octet: u8,
    flawed: (u32, u8),
    calls: u32,
}

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("numbers are drawn as octets")
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        let flawed = self.calls < self.flawed.0;
        octets.fill(if flawed { self.flawed.1 } else { self.octet });
        self.calls += 1;
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}

fn keys() -> [KeyHandle; 2] {
    [
        include_str!("../../../tests/keys/rsa1024.pem"),
        include_str!("../../../tests/keys/rsa1025.pem"),
    ]
    .map(|pem| KeyHandle::new(&PrivateKey::from_pkcs1_pem(pem).unwrap()).unwrap())
}

fn drawn(key: &KeyHandle, rng: &mut Stuck) -> Result<Vec<Limb>, Error> {
    let n = key.parts().n().limbs;
    let (mut octets, mut number) = (vec![0; key.size()], vec![Limb::ZERO; n.len()]);
    draw_below(n, key.bits(), rng, &mut octets, &mut number).map(|()| number)
}

/// All ones are never below n, and zero is not accepted.
#[test]
fn a_stuck_generator_is_an_error() {
    for key in &keys() {
        for octet in [0, 0xff] {
            let mut rng = Stuck {
                octet,
                flawed: (0, 0),
                calls: 0,
            };
            assert_eq!(drawn(key, &mut rng).err(), Some(Error::Rng));
            assert_eq!(rng.calls, 128);
        }
    }
}

#[test]
fn numbers_that_are_too_large_are_drawn_again() {
    for (key, highest) in keys().iter().zip([0x5a, 0]) {
        let mut rng = Stuck {
            octet: 0x5a,
            flawed: (5, 0xff),
            calls: 0,
        };
        let number = drawn(key, &mut rng).unwrap();
        assert_eq!(rng.calls, 6);
        let mut octets = vec![0x5a; key.size()];
        octets[0] = highest;
        assert_eq!(*limbs_to_octets(&number, key.size()), octets);
    }
}

/// Each eighth of the range below n gets as many numbers, within five standard deviations.
#[test]
fn numbers_are_spread_evenly() {
    const COUNT: u32 = 1 << 13;
    for (key, seed) in keys().iter().zip(1..) {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        let limbs = key.parts().n().limbs;
        let n = BigUint::from_bytes_be(&key.n());
        let (mut octets, mut number) = (vec![0; key.size()], vec![Limb::ZERO; limbs.len()]);
        let (mut counts, mut low_bits) = ([0u32; 8], 0);
        for _ in 0..COUNT {
            draw_below(limbs, key.bits(), &mut rng, &mut octets, &mut number).unwrap();
            let drawn = BigUint::from_bytes_be(&limbs_to_octets(&number, key.size()));
            counts[usize::try_from(8u32 * &drawn / &n).unwrap()] += 1;
            low_bits += u32::from(drawn.bit(0));
        }
        // The variances are 1/8 * 7/8 and 1/4 of the count.
        assert!(
            counts.iter().all(|count| count.abs_diff(COUNT / 8) < 150),
            "{counts:?}"
        );
        assert!(low_bits.abs_diff(COUNT / 2) < 227, "{low_bits}");
    }
}

/// A generator of ascending octets.
struct Counter(u8);

impl TryRng for Counter {
    type Error = Error;

    fn try_next_u32(&mut self) -> Result<u32, Error> {
        Err(Error::Rng)
    }

    fn try_next_u64(&mut self) -> Result<u64, Error> {
        Err(Error::Rng)
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Error> {
        octets.fill_with(|| {
            self.0 += 1;
            self.0
        });
        Ok(())
    }
}

impl TryCryptoRng for Counter {}

fn first_octets(streams: &Streams) -> [u8; 40] {
    let mut octets = [0; 40];
    streams.next().try_fill_bytes(&mut octets).unwrap();
    octets
}

#[test]
fn streams_differ_and_follow_from_the_seed() {
    let streams = Streams::seeded(&mut Counter(0)).unwrap();
    let (first, second) = (first_octets(&streams), first_octets(&streams));
    assert_ne!(first, second);
    let again = Streams::seeded(&mut Counter(0)).unwrap();
    assert_eq!(
        [first_octets(&again), first_octets(&again)],
        [first, second]
    );
    let other = Streams::seeded(&mut Counter(1)).unwrap();
    assert_ne!(first_octets(&other), first);
}

/// No stream is used again after the last one.
#[test]
fn streams_are_used_up_for_good() {
    let mut streams = Streams::none();
    streams.next = AtomicU32::new(u32::MAX - 1);
    streams.next();
    for _ in 0..2 {
        assert!(std::panic::catch_unwind(|| streams.next()).is_err());
    }
}

#[test]
fn without_a_seed_there_is_none() {
    let mut randomness = Streams::none().next();
    assert!(randomness.try_fill_bytes(&mut [0; 4]).is_err());
    assert!(randomness.try_next_u32().is_err() && randomness.try_next_u64().is_err());
}
