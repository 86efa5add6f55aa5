//! Faults in every stage: none may lead to a result, and none may touch another lane.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb, Word};
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::traits::PublicKeyParts;

use super::super::check::checked;
use super::{FaultInjection, NoFaults, Stage, with_faults};
use crate::Error;
use crate::backend::Serial;
use crate::rsa::{Checked, HostThreads, KeyHandle, PrivateOp};

/// The private operation with faults, and the check above it.
fn private_op(batch: &[PrivateOp<'_>], faults: &mut impl FaultInjection) -> Checked<BoxedUint> {
    let candidates = with_faults(&Serial, batch, faults)?;
    checked(HostThreads::calling_thread(), batch, candidates)
}

/// Flips one bit of one value of one stage.
struct BitFlip {
    stage: Stage,
    value: usize,
    bit: u32,
    injected: bool,
}

impl FaultInjection for BitFlip {
    fn inject_fault(&mut self, stage: Stage, intermediate: &mut [BoxedUint]) {
        if stage == self.stage {
            let limb =
                &mut intermediate[self.value].as_mut_limbs()[(self.bit / Limb::BITS) as usize];
            *limb ^= Limb(1 << (self.bit % Limb::BITS));
            self.injected = true;
        }
    }
}

fn rsa_key() -> RsaPrivateKey {
    RsaPrivateKey::from_pkcs1_pem(include_str!("../../../../tests/keys/rsa1024.pem")).unwrap()
}

/// Three representatives and three numbers to blind them with.
fn numbers(key: &RsaPrivateKey) -> [BoxedUint; 6] {
    let number = |i: Word| {
        let mut number = BoxedUint::zero_with_precision(key.n().bits_precision());
        for (limb, j) in number.as_mut_limbs()[..8].iter_mut().zip(1..) {
            *limb = Limb((i + 2).wrapping_pow(17 * j));
        }
        number
    };
    [0, 1, 2, 3, 4, 5].map(number)
}

fn ops<'a>(key: &'a KeyHandle, numbers: &'a [BoxedUint; 6], blinding: bool) -> Vec<PrivateOp<'a>> {
    let (representatives, blinds) = numbers.split_at(3);
    representatives
        .iter()
        .zip(blinds)
        .map(|(representative, blind)| PrivateOp {
            key,
            representative,
            blind: blinding.then_some(blind),
        })
        .collect()
}

/// Injects a fault into `stage` once for each value and several bits, and expects the lane of that value to fail, and
/// it alone.
fn every_fault_is_found(
    key: &KeyHandle,
    numbers: &[BoxedUint; 6],
    stage: Stage,
    values: usize,
    bits: &[u32],
) {
    for blinding in [true, false] {
        let ops = ops(key, numbers, blinding);
        let sound = private_op(&ops, &mut NoFaults).unwrap();
        for value in 0..values {
            for &bit in bits {
                let mut flip = BitFlip {
                    stage,
                    value,
                    bit,
                    injected: false,
                };
                let results = private_op(&ops, &mut flip).unwrap();
                assert!(flip.injected, "{stage:?} was never reached");
                for (lane, (result, sound)) in results.iter().zip(&sound).enumerate() {
                    if lane == value % ops.len() {
                        let error = result.as_ref().err();
                        assert_eq!(
                            error,
                            Some(&Error::Fault),
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
    let (key, numbers) = (KeyHandle::new(&rsa_key).unwrap(), numbers(&rsa_key));
    assert!(key.has_crt());
    for stage in [
        Stage::Input,
        Stage::Blinded,
        Stage::Combined,
        Stage::Unblinded,
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
    let (key, numbers) = (KeyHandle::new(&rsa_key).unwrap(), numbers(&rsa_key));
    assert!(!key.has_crt());
    for stage in [
        Stage::Input,
        Stage::Blinded,
        Stage::Combined,
        Stage::Unblinded,
    ] {
        every_fault_is_found(&key, &numbers, stage, 3, &[0, 1023]);
    }
}

/// A result that is right modulo n but not below n is as wrong as any other.
#[test]
fn results_above_the_modulus_do_not_get_through() {
    struct AddModulus(BoxedUint);

    impl FaultInjection for AddModulus {
        fn inject_fault(&mut self, stage: Stage, intermediate: &mut [BoxedUint]) {
            if stage == Stage::Unblinded {
                intermediate[0] = intermediate[0].wrapping_add(&self.0);
            }
        }
    }

    let key =
        RsaPrivateKey::from_pkcs1_pem(include_str!("../../../../tests/keys/rsa1025.pem")).unwrap();
    let (handle, numbers) = (KeyHandle::new(&key).unwrap(), numbers(&key));
    let mut fault = AddModulus(key.n().as_ref().clone());
    let results = private_op(&ops(&handle, &numbers, false), &mut fault).unwrap();
    assert_eq!(results[0].as_ref().err(), Some(&Error::Fault));
    assert!(results[1].is_ok() && results[2].is_ok());
}

/// The lanes of one batch may belong to keys of different sizes, in any order.
#[test]
fn results_are_in_the_order_of_the_batch() {
    let keys = [
        include_str!("../../../../tests/keys/rsa1024.pem"),
        include_str!("../../../../tests/keys/rsa1025.pem"),
    ]
    .map(|pem| RsaPrivateKey::from_pkcs1_pem(pem).unwrap());
    let handles = keys.each_ref().map(|key| KeyHandle::new(key).unwrap());
    let numbers = keys.each_ref().map(numbers);
    let order = [0, 1, 1, 0, 1, 0];
    let batch: Vec<_> = (0..order.len())
        .map(|lane| PrivateOp {
            key: &handles[order[lane]],
            representative: &numbers[order[lane]][lane / 2],
            blind: None,
        })
        .collect();
    for (op, result) in batch.iter().zip(private_op(&batch, &mut NoFaults).unwrap()) {
        let alone = private_op(&[*op], &mut NoFaults)
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(*result.unwrap(), *alone);
    }
}

/// 0 has no inverse: a broken random number generator is an error, not a weak signature.
#[test]
fn a_blind_without_an_inverse_is_an_error() {
    let rsa_key = rsa_key();
    let (key, mut numbers) = (KeyHandle::new(&rsa_key).unwrap(), numbers(&rsa_key));
    numbers[4] = BoxedUint::zero_with_precision(1024);
    let error = private_op(&ops(&key, &numbers, true), &mut NoFaults).err();
    assert_eq!(error, Some(Error::Rng));
}
