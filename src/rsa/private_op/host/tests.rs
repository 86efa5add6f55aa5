//! Faults in every stage: none may lead to a result, and none may touch another lane.

use alloc::vec::Vec;

use crypto_bigint::{Limb, Word};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::PrivateKeyParts;

use super::super::batch::Source;
use super::super::blinding::Blinds;
use super::super::group::{KeyClass, Positions};
use super::super::places::{Octets, Places, Room};
use super::super::random::{Randomness, Streams};
use super::*;
use crate::backend::Serial;
use crate::rsa::KeyHandle;
use crate::rsa::octets::octets_to_limbs;

/// Nobody asks for representatives: they are given.
struct NoSource;

impl Source for NoSource {
    fn has_key(&self, _: usize, _: &KeyHandle) -> bool {
        true
    }

    fn representative(
        &self,
        _: usize,
        _: &KeyHandle,
        _: &mut Randomness,
        _: &mut [u8],
    ) -> Result<(), Error> {
        unreachable!("the representatives are given")
    }
}

/// Three representatives, and three numbers to blind them with.
const LANES: usize = 3;

/// The private operation of `key` with faults, and the check above it.
fn private_op(
    key: &KeyHandle,
    numbers: &[Limb],
    blinding: bool,
    faults: &mut impl FaultInjection,
) -> Result<Vec<Octets>, Error> {
    let batch = Batch {
        class: KeyClass::of(key.parts()),
        keys: &[key; LANES],
        positions: &Positions::Same,
        start: 0,
        source: &NoSource,
        streams: &Streams::none(),
        is_blinded: blinding,
    };
    let (representatives, numbers) = numbers.split_at(numbers.len() / 2);
    let blinds = match blinding {
        true => Some(Blinds::of(Secret::new(numbers.to_vec()), LANES)),
        false => None,
    };
    let opened = Opened::with(0..LANES, representatives, blinds);
    let candidates = with_faults(&Serial, &Serial, &batch, &opened, faults)?;
    let mut places: Vec<Octets> = (0..LANES).map(|_| Err(Error::Rng)).collect();
    opened.close(
        &Serial,
        &batch,
        &candidates,
        Places::Secret(Room::Made(&mut places)),
    );
    Ok(places)
}

/// Flips one bit of one value of one stage.
struct BitFlip {
    stage: Stage,
    value: usize,
    bit: u32,
    injected: bool,
}

impl FaultInjection for BitFlip {
    fn inject_fault(&mut self, stage: Stage, intermediate: Intermediate<'_>) {
        if stage == self.stage {
            let number = match intermediate {
                Intermediate::Flat(numbers, limbs) => &mut numbers[self.value * limbs..][..limbs],
                Intermediate::Boxed(numbers) => numbers[self.value].as_mut_limbs(),
            };
            number[(self.bit / Limb::BITS) as usize] ^= Limb(1 << (self.bit % Limb::BITS));
            self.injected = true;
        }
    }
}

fn rsa_key() -> PrivateKey {
    PrivateKey::from_pkcs1_pem(include_str!("../../../../tests/keys/rsa1024.pem")).unwrap()
}

/// Representatives, then the numbers to blind them with.
fn numbers(key: &KeyHandle) -> Vec<Limb> {
    let limbs = key.parts().n.bits_precision() / Limb::BITS;
    let number = |i: Word| {
        (1..=limbs).map(move |j| match j {
            1..=8 => Limb((i + 2).wrapping_pow(17 * j)),
            _ => Limb::ZERO,
        })
    };
    (0..2 * LANES as Word).flat_map(number).collect()
}

/// Injects a fault into `stage` once for each value and several bits, and expects the lane of that value to fail, and
/// it alone.
fn every_fault_is_found(
    key: &KeyHandle,
    numbers: &[Limb],
    stage: Stage,
    values: usize,
    bits: &[u32],
) {
    for blinding in [true, false] {
        let sound = private_op(key, numbers, blinding, &mut NoFaults).unwrap();
        for value in 0..values {
            for &bit in bits {
                let mut flip = BitFlip {
                    stage,
                    value,
                    bit,
                    injected: false,
                };
                let results = private_op(key, numbers, blinding, &mut flip).unwrap();
                assert!(flip.injected, "{stage:?} was never reached");
                for (lane, (result, sound)) in results.iter().zip(&sound).enumerate() {
                    if lane == value % LANES {
                        let error = result.as_ref().err();
                        assert_eq!(
                            error,
                            Some(&Error::Fault { index: lane }),
                            "{stage:?}, value {value}, bit {bit}"
                        );
                    } else {
                        let (result, sound) = (result.as_ref().unwrap(), sound.as_ref().unwrap());
                        assert_eq!(**result, **sound, "{stage:?}, value {value}, lane {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_fault_in_a_crt_operation_gets_through() {
    let rsa_key = rsa_key();
    let key = KeyHandle::new(&rsa_key).unwrap();
    let numbers = numbers(&key);
    assert!(key.has_crt());
    for stage in [
        Stage::Bases,
        Stage::Factors,
        Stage::Combined,
        Stage::Results,
    ] {
        every_fault_is_found(&key, &numbers, stage, 3, &[0, 513, 1023]);
    }
    // Three values modulo p, then three modulo q.
    for stage in [Stage::Residues, Stage::Halves] {
        every_fault_is_found(&key, &numbers, stage, 6, &[0, 257, 511]);
    }
}

#[test]
fn no_fault_in_a_plain_operation_gets_through() {
    let mut rsa_key = rsa_key();
    rsa_key.clear_precomputed();
    let key = KeyHandle::new(&rsa_key).unwrap();
    let numbers = numbers(&key);
    assert!(!key.has_crt());
    for stage in [
        Stage::Bases,
        Stage::Factors,
        Stage::Combined,
        Stage::Results,
    ] {
        every_fault_is_found(&key, &numbers, stage, 3, &[0, 1023]);
    }
}

/// A result that is right modulo n but not below n is as wrong as any other.
#[test]
fn results_above_the_modulus_do_not_get_through() {
    struct AddModulus(BoxedUint);

    impl FaultInjection for AddModulus {
        fn inject_fault(&mut self, stage: Stage, intermediate: Intermediate<'_>) {
            if let (Stage::Results, Intermediate::Flat(numbers, _)) = (stage, intermediate) {
                let mut carry = Limb::ZERO;
                for (limb, n) in numbers.iter_mut().zip(self.0.as_limbs()) {
                    (*limb, carry) = limb.carrying_add(*n, carry);
                }
                assert_eq!(carry, Limb::ZERO, "there is room above the modulus");
            }
        }
    }

    let key =
        PrivateKey::from_pkcs1_pem(include_str!("../../../../tests/keys/rsa1025.pem")).unwrap();
    let handle = KeyHandle::new(&key).unwrap();
    let mut fault = AddModulus(handle.parts().n.modulus().as_ref().clone());
    let results = private_op(&handle, &numbers(&handle), false, &mut fault).unwrap();
    assert_eq!(results[0].as_ref().err(), Some(&Error::Fault { index: 0 }));
    assert!(results[1].is_ok() && results[2].is_ok());
}

/// What is right modulo q alone passes under no key, not even under one that takes q for p.
#[test]
fn factors_that_are_not_those_of_the_modulus_do_not_help() {
    let key = KeyHandle::new(&rsa_key()).unwrap();
    let twice_q = key.with_crt(|crt| crt.p = Secret::new(crt.q.clone()));
    let numbers = numbers(&key);
    let verdicts = |key: &KeyHandle, candidates: &[Limb]| -> Vec<bool> {
        let batch = Batch {
            class: KeyClass::of(key.parts()),
            keys: &[key; LANES],
            positions: &Positions::Same,
            start: 0,
            source: &NoSource,
            streams: &Streams::none(),
            is_blinded: false,
        };
        let opened = Opened::with(0..LANES, &numbers[..numbers.len() / 2], None);
        let mut places: Vec<Octets> = (0..LANES).map(|_| Err(Error::Rng)).collect();
        opened.close(
            &Serial,
            &batch,
            candidates,
            Places::Secret(Room::Made(&mut places)),
        );
        places.iter().map(Result::is_ok).collect()
    };
    let sound = private_op(&key, &numbers, false, &mut NoFaults).unwrap();
    let limbs = numbers.len() / (2 * LANES);
    let mut candidates = alloc::vec![Limb::ZERO; LANES * limbs];
    for (place, sound) in candidates.chunks_exact_mut(limbs).zip(&sound) {
        octets_to_limbs(sound.as_ref().unwrap(), place);
    }
    assert_eq!(verdicts(&key, &candidates), [true; LANES]);
    assert_eq!(verdicts(&twice_q, &candidates), [false; LANES]);
    // Another number with the same residue modulo q, and below n: the key is one of 1,024 bits, and its q below n / 4.
    let q = crt(&&key).q().modulus().as_ref().clone();
    let is_high = candidates[limbs - 1].0 >> (Limb::BITS - 2) != 0;
    let mut carry = Limb::ZERO;
    for (i, limb) in candidates[..limbs].iter_mut().enumerate() {
        let digit = q.as_limbs().get(i).copied().unwrap_or(Limb::ZERO);
        (*limb, carry) = match is_high {
            true => limb.borrowing_sub(digit, carry),
            false => limb.carrying_add(digit, carry),
        };
    }
    assert_eq!(verdicts(&key, &candidates), [false, true, true]);
    assert_eq!(verdicts(&twice_q, &candidates), [false; LANES]);
}

/// More or fewer candidates than lanes: nobody knows which belongs where.
#[test]
fn candidates_of_another_number_do_not_get_through() {
    let key = KeyHandle::new(&rsa_key()).unwrap();
    let batch = Batch {
        class: KeyClass::of(key.parts()),
        keys: &[&key; LANES],
        positions: &Positions::Same,
        start: 0,
        source: &NoSource,
        streams: &Streams::none(),
        is_blinded: false,
    };
    let numbers = numbers(&key);
    let opened = || Opened::with(0..LANES, &numbers[..numbers.len() / 2], None);
    let candidates = with_faults(&Serial, &Serial, &batch, &opened(), &mut NoFaults).unwrap();
    let limbs = candidates.len();
    let longer = [&candidates[..], &[Limb::ZERO]].concat();
    for candidates in [
        &candidates[..limbs - 1],
        &candidates[..limbs / LANES],
        &longer,
        &[],
    ] {
        let mut places: Vec<Octets> = (0..LANES).map(|_| Err(Error::Rng)).collect();
        opened().close(
            &Serial,
            &batch,
            candidates,
            Places::Secret(Room::Made(&mut places)),
        );
        for (index, place) in places.iter().enumerate() {
            assert_eq!(place.as_ref().err(), Some(&Error::Fault { index }));
        }
    }
}

/// Multiples of a prime hide nothing, and give no results. Drawing one is as likely as guessing the prime; 0 is never drawn.
#[test]
fn a_multiple_of_a_prime_does_not_blind() {
    let rsa_key = rsa_key();
    let key = KeyHandle::new(&rsa_key).unwrap();
    let mut numbers = numbers(&key);
    let limbs = numbers.len() / (2 * LANES);
    for multiple in [&BoxedUint::zero(), rsa_key.primes()[0].as_ref()] {
        let place = &mut numbers[4 * limbs..][..limbs];
        place.fill(Limb::ZERO);
        place[..multiple.as_limbs().len()].copy_from_slice(multiple.as_limbs());
        let results = private_op(&key, &numbers, true, &mut NoFaults).unwrap();
        let passed: Vec<_> = results.iter().map(Result::is_ok).collect();
        assert_eq!(passed, [true, false, true]);
    }
}
