//! Faults in every stage: none may lead to a result or affect another item.

mod crt;

use alloc::vec::Vec;

use batch_modexp_core::Serial;
use batch_modexp_core::monty::Modulus;
use crypto_bigint::{BoxedUint, Limb, Word};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::PrivateKeyParts;

use super::testing::{Hooked, Stage};
use super::*;
use crate::rsa::KeyHandle;
use crate::rsa::batch::{Outputs, Positions, Source};
use crate::rsa::key::{KeyClass, KeyParts};
use crate::rsa::limbs::octets_to_limbs;
use crate::rsa::random::{Randomness, Streams};
use crate::rsa::signatures::SecretOctets;

/// A source that is never asked for encoded messages: these are given.
struct Given<'a>(&'a KeyHandle);

impl Source for Given<'_> {
    fn key(&self, _: usize) -> &KeyParts {
        self.0.parts()
    }

    fn encode(&self, _: usize, _: &mut Randomness, _: &mut [u8]) -> Result<(), Error> {
        unreachable!("the encoded messages are given")
    }
}

/// Three encoded messages, and three blinding numbers.
const ITEMS: usize = 3;

/// Computes the private operation of `key` on an engine, and checks it.
fn private_op_on(
    engine: &dyn Engine,
    key: &KeyHandle,
    numbers: &[Limb],
    blinding: bool,
) -> SecretOctets {
    checked(key, numbers, blinding, |encoded| {
        let exponentiate = &|powers: SecretPowers<'_>| {
            engine.pow(powers);
            Ok(())
        };
        private_powers(engine, exponentiate, encoded).unwrap()
    })
}

/// Checks what `compute` makes of items whose encoded messages are the first half of `numbers`.
fn checked(
    key: &KeyHandle,
    numbers: &[Limb],
    blinding: bool,
    compute: impl FnOnce(&EncodedItems<'_>) -> Secret<Vec<Limb>>,
) -> SecretOctets {
    outputs(key, numbers, blinding, |encoded, items| {
        let results = compute(&encoded);
        encoded.check_and_write(&Serial, &results, items);
    })
}

/// The outputs of such items that `write` writes.
fn outputs(
    key: &KeyHandle,
    numbers: &[Limb],
    blinding: bool,
    write: impl FnOnce(EncodedItems<'_>, Items<'_>),
) -> SecretOctets {
    let batch = Batch {
        class: KeyClass::of(key.parts()),
        keys: &[key.parts(); ITEMS],
        positions: Positions::From([0; 2]),
        source: &Given(key),
        streams: &Streams::none(),
        is_blinded: blinding,
    };
    let (ems, random) = numbers.split_at(numbers.len() / 2);
    let encoded = EncodedItems {
        batch,
        errors: vec![None; ITEMS],
        ems: Secret::new(ems.to_vec()),
        blinding: blinding.then(|| BlindingNumbers {
            r: Secret::new(random.to_vec()),
            masks: Secret::new(vec![1; if key.has_crt() { 2 * ITEMS } else { 0 }]),
        }),
    };
    let mut outputs = Outputs::new(ITEMS, key.size());
    write(encoded, outputs.items(batch, 0..ITEMS));
    SecretOctets::new(outputs)
}

fn rsa_key() -> PrivateKey {
    PrivateKey::from_pkcs1_pem(include_str!("../../../tests/keys/rsa1024.pem")).unwrap()
}

/// Encoded messages, then blinding numbers.
fn numbers(key: &KeyHandle) -> Vec<Limb> {
    let limbs = key.parts().n.bits_precision() / Limb::BITS;
    let number = |i: Word| {
        (1..=limbs).map(move |j| match j {
            1..=8 => Limb((i + 2).wrapping_pow(17 * j)),
            _ => Limb::ZERO,
        })
    };
    (0..2 * ITEMS as Word).flat_map(number).collect()
}

/// Flips several bits of each number of `stage`, one at a time; only the item of that number may
/// fail.
fn every_fault_is_found(
    key: &KeyHandle,
    numbers: &[Limb],
    stage: Stage,
    values: usize,
    bits: &[u32],
) {
    for blinding in [true, false] {
        let sound = private_op_on(&Serial, key, numbers, blinding);
        for (value, &bit) in (0..values).flat_map(|value| bits.iter().map(move |bit| (value, bit)))
        {
            let flip = |here, numbers: &mut [Limb], size: usize| {
                if here == stage {
                    let limb = &mut numbers[value * size..][(bit / Limb::BITS) as usize];
                    *limb ^= Limb(1 << (bit % Limb::BITS));
                }
            };
            let results = private_op_on(&Hooked::new(&Serial, &flip), key, numbers, blinding);
            for index in 0..ITEMS {
                let (result, sound) = (results.get(index), sound.get(index));
                let context = (stage, value, bit, index, blinding);
                match index == value % ITEMS {
                    true => assert_eq!(result, Err(Error::Fault { index }), "{context:?}"),
                    false => assert_eq!(result, sound, "{context:?}"),
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "results of private keys must be checked")]
fn private_results_are_not_written_as_public_ones() {
    let key = KeyHandle::new(&rsa_key()).unwrap();
    let numbers = numbers(&key);
    let _ = outputs(&key, &numbers, true, |encoded, items| {
        let results = encoded.ems.to_vec();
        encoded.write_public(&results, items);
    });
}

#[test]
fn no_fault_in_a_crt_operation_gets_through() {
    let key = KeyHandle::new(&rsa_key()).unwrap();
    let numbers = numbers(&key);
    assert!(key.has_crt());
    for stage in [Stage::Factors, Stage::Combined, Stage::Results] {
        every_fault_is_found(&key, &numbers, stage, ITEMS, &[0, 513, 1023]);
    }
    // Three numbers modulo p, then three modulo q.
    every_fault_is_found(&key, &numbers, Stage::Bases, 2 * ITEMS, &[0, 513, 1023]);
    for stage in [Stage::Residues, Stage::Powers] {
        every_fault_is_found(&key, &numbers, stage, 2 * ITEMS, &[0, 257, 511]);
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
        Stage::Powers,
        Stage::Factors,
        Stage::Combined,
        Stage::Results,
    ] {
        every_fault_is_found(&key, &numbers, stage, ITEMS, &[0, 1023]);
    }
}

/// Encodes one message as a number that is not below any modulus.
#[cfg(feature = "std")]
struct TooLarge<'a>(usize, &'a KeyHandle);

#[cfg(feature = "std")]
impl Source for TooLarge<'_> {
    fn key(&self, _: usize) -> &KeyParts {
        self.1.parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        em[1..].fill(0xff);
        em[0] = if position == self.0 { 0xff } else { 0 };
        Ok(())
    }
}

/// On every engine, even where the result is checked modulo p and q.
#[cfg(feature = "std")]
#[test]
fn encoded_messages_above_the_modulus_fail_alone() {
    use crate::rsa::backend::compute_by_class;
    use batch_modexp_cpu::AnyEngine;
    let key = KeyHandle::new(&rsa_key()).unwrap();
    for engine in AnyEngine::all() {
        for blinding in [true, false] {
            let streams = Streams::seeded(&mut getrandom::SysRng).unwrap();
            let source = TooLarge(1, &key);
            let results = compute_by_class(&engine, ITEMS, &source, &streams, blinding);
            let results = SecretOctets::new(results.unwrap());
            assert_eq!(results.get(1), Err(Error::Fault { index: 1 }));
            assert!(results.get(0).is_ok() && results.get(2).is_ok());
        }
    }
}

/// A result that is right modulo n but not below n is wrong.
#[test]
fn results_above_the_modulus_do_not_get_through() {
    let pem = include_str!("../../../tests/keys/rsa1025.pem");
    let key = KeyHandle::new(&PrivateKey::from_pkcs1_pem(pem).unwrap()).unwrap();
    let n = key.parts().n();
    let add_modulus = |stage, numbers: &mut [Limb], _| {
        if stage == Stage::Results {
            let mut carry = Limb::ZERO;
            for (limb, n) in numbers.iter_mut().zip(n.limbs) {
                (*limb, carry) = limb.carrying_add(*n, carry);
            }
            assert_eq!(carry, Limb::ZERO, "there is room above the modulus");
        }
    };
    let engine = Hooked::new(&Serial, &add_modulus);
    let results = private_op_on(&engine, &key, &numbers(&key), false);
    assert_eq!(results.get(0), Err(Error::Fault { index: 0 }));
    assert!(results.get(1).is_ok() && results.get(2).is_ok());
}

/// A result that is right only modulo q passes under no key, not even one with q in place of p.
#[test]
fn factors_that_are_not_those_of_the_modulus_do_not_help() {
    let key = KeyHandle::new(&rsa_key()).unwrap();
    let twice_q = key.with_crt(|crt| crt.p = Modulus::from(crt.q()));
    let numbers = numbers(&key);
    let verdicts = |key: &KeyHandle, results: &[Limb]| -> Vec<bool> {
        let checked = checked(key, &numbers, false, |_| Secret::new(results.to_vec()));
        checked.iter().map(|result| result.is_ok()).collect()
    };
    let sound = private_op_on(&Serial, &key, &numbers, false);
    let limbs = numbers.len() / (2 * ITEMS);
    let mut results = vec![Limb::ZERO; ITEMS * limbs];
    for (place, sound) in results.chunks_exact_mut(limbs).zip(&sound) {
        octets_to_limbs(sound.unwrap(), place);
    }
    assert_eq!(verdicts(&key, &results), [true; ITEMS]);
    assert_eq!(verdicts(&twice_q, &results), [false; ITEMS]);
    // Another number below n with the same residue modulo q: n has 1,024 bits, and q is below n
    // / 4.
    let q = key.parts().crt().q().limbs;
    let is_high = results[limbs - 1].0 >> (Limb::BITS - 2) != 0;
    let mut carry = Limb::ZERO;
    for (i, limb) in results[..limbs].iter_mut().enumerate() {
        let digit = q.get(i).copied().unwrap_or(Limb::ZERO);
        (*limb, carry) = match is_high {
            true => limb.borrowing_sub(digit, carry),
            false => limb.carrying_add(digit, carry),
        };
    }
    assert_eq!(verdicts(&key, &results), [false, true, true]);
    assert_eq!(verdicts(&twice_q, &results), [false; ITEMS]);
}

/// Multiples of a prime do not blind, and give no results. Drawing one is as unlikely as guessing
/// the prime; 0 is never drawn.
#[test]
fn a_multiple_of_a_prime_does_not_blind() {
    let rsa_key = rsa_key();
    let key = KeyHandle::new(&rsa_key).unwrap();
    let mut numbers = numbers(&key);
    let limbs = numbers.len() / (2 * ITEMS);
    for multiple in [&BoxedUint::zero(), rsa_key.primes()[0].as_ref()] {
        let place = &mut numbers[4 * limbs..][..limbs];
        place.fill(Limb::ZERO);
        place[..multiple.as_limbs().len()].copy_from_slice(multiple.as_limbs());
        let results = private_op_on(&Serial, &key, &numbers, true);
        let passed: Vec<_> = results.iter().map(|result| result.is_ok()).collect();
        assert_eq!(passed, [true, false, true]);
    }
}
