//! Run where there is a GPU; elsewhere they say that they were skipped.

use super::super::check::checked;
use super::super::group::KeyClass;
use super::*;
use crate::backend::Serial;
use crate::rsa::KeyHandle;
use alloc::vec;
use crypto_bigint::{Limb, Word};
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;

fn gpu() -> Option<Cuda> {
    crate::need::available("cuda", Cuda::probe()).map(|_| Cuda::new().unwrap())
}

/// Keys of several classes, of widths between them, of widths that no kernel takes, and with e = 3.
fn keys() -> Vec<KeyHandle> {
    let pems = [
        include_str!("../../../../tests/keys/rsa1024.pem"),
        include_str!("../../../../tests/keys/rsa1025.pem"),
        include_str!("../../../../tests/keys/rsa2048.pem"),
        include_str!("../../../../tests/keys/rsa2048-e3.pem"),
        include_str!("../../../../tests/keys/rsa2056.pem"),
        include_str!("../../../../tests/keys/rsa3072.pem"),
        include_str!("../../../../tests/keys/rsa4096.pem"),
    ];
    pems.map(|pem| KeyHandle::new(&RsaPrivateKey::from_pkcs1_pem(pem).unwrap()).unwrap())
        .into()
}

/// A number below the modulus that no two `seed`s share.
fn number(key: &KeyHandle, seed: u64) -> BoxedUint {
    let mut number = BoxedUint::zero_with_precision(key.parts().n.bits_precision());
    let limbs = number.as_mut_limbs();
    // With a zero at the top it is below the modulus.
    let most = limbs.len() - 1;
    for (limb, i) in limbs[..most].iter_mut().zip(1..) {
        *limb = Limb(
            (seed + 2)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_pow(2 * i + 1) as Word,
        );
    }
    number
}

/// Blocks and blinds for `count` lanes, with keys in turn.
fn numbers(keys: &[KeyHandle], count: u64) -> Vec<(&KeyHandle, BoxedUint, BoxedUint)> {
    let keys = keys.iter().cycle();
    keys.zip(0..count)
        .map(|(key, i)| (key, number(key, 2 * i), number(key, 2 * i + 1)))
        .collect()
}

#[test]
fn results_are_those_of_the_host() {
    let Some(cuda) = gpu() else { return };
    let keys = keys();
    let numbers = numbers(&keys, 100);
    // One lane in three is not blinded.
    let ops: Vec<_> = (0..)
        .zip(&numbers)
        .map(|(i, (key, block, blind))| PrivateOp {
            key,
            representative: block,
            blind: (i % 3 != 0).then_some(blind),
        })
        .collect();
    for batch in [&ops[..], &ops[..1], &ops[3..40], &[]] {
        let device = cuda.private_op(batch).unwrap();
        let host = Serial.private_op(batch).unwrap();
        assert_eq!(device.len(), host.len());
        for (device, host) in device.iter().zip(&host) {
            let (device, host) = (device.as_ref().unwrap(), host.as_ref().unwrap());
            assert_eq!(**device, **host);
            assert_eq!(device.bits_precision(), host.bits_precision());
        }
    }
}

/// Private operations without blinding.
fn ops<'a>(numbers: &'a [(&'a KeyHandle, BoxedUint, BoxedUint)]) -> Vec<PrivateOp<'a>> {
    let op = |(key, representative, _): &'a (&'a KeyHandle, BoxedUint, BoxedUint)| PrivateOp {
        key,
        representative,
        blind: None,
    };
    numbers.iter().map(op).collect()
}

/// What comes from the devices for lanes of one class, with something done to the inputs on the way.
fn candidates(
    cuda: &Cuda,
    ops: &[PrivateOp<'_>],
    inject_fault: InjectFault<'_>,
) -> Vec<Result<Secret<BoxedUint>, Error>> {
    let group = Group {
        class: KeyClass::of(ops[0].key.parts()),
        is_blinded: false,
        indices: (0..ops.len()).collect(),
        ops: ops.to_vec(),
    };
    let mut group = DeviceGroup::new(cuda, &group).unwrap();
    group.inject_fault = inject_fault;
    group.plain().unwrap()
}

fn passed<T>(results: &[Result<T, Error>]) -> Vec<bool> {
    results.iter().map(Result::is_ok).collect()
}

/// A bit of the representative that is computed on, and one of the copy that it is compared with.
#[test]
fn a_flipped_bit_fails_its_lane_alone() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    let numbers = numbers(keys, 5);
    let words = 2048 / 64;
    let in_number = |[numbers, _, _]: [&mut [u64]; 3]| numbers[words + 3] ^= 1 << 17;
    let in_copy = |[_, copies, _]: [&mut [u64]; 3]| copies[words] ^= 1;
    for fault in [&in_number as InjectFault<'_>, &in_copy] {
        let results = candidates(&cuda, &ops(&numbers), fault);
        assert_eq!(passed(&results), [true, false, true, true, true]);
    }
}

/// A key in which one CRT value is wrong never gives a result; the others are not affected.
#[test]
fn a_wrong_key_fails_its_lane_alone() {
    let Some(cuda) = gpu() else { return };
    let right = &keys()[2];
    let wrong = [
        right.with_crt(|crt| crt.dp.clone_from(&crt.dq)),
        right.with_crt(|crt| crt.qinv.clone_from(&crt.dp)),
        right.with_crt(|crt| core::mem::swap(&mut crt.p, &mut crt.q)),
    ];
    for wrong in &wrong {
        let mut numbers = numbers(core::slice::from_ref(right), 3);
        numbers[1].0 = wrong;
        let results = candidates(&cuda, &ops(&numbers), &|_| ());
        assert_eq!(passed(&results), [true, false, true]);
    }
}

/// With the index of another key all steps agree, the device's check too, and the result is right for that
/// key. The check above all backends takes the lane's own.
#[test]
fn the_index_of_another_key_is_a_fault() {
    let Some(cuda) = gpu() else { return };
    let other = include_str!("../../../../tests/keys/rsa2048-pkcs8.pem");
    let other = RsaPrivateKey::from_pkcs8_pem(other).unwrap();
    let keys = [keys()[2].clone(), KeyHandle::new(&other).unwrap()];
    let numbers = numbers(&keys, 4);
    let ops = ops(&numbers);
    let swap = |[_, _, indices]: [&mut [u64]; 3]| indices[0] = indices[0].rotate_left(32);
    let results = candidates(&cuda, &ops, &swap);
    assert_eq!(passed(&results), [true; 4]);
    let results = checked(cuda.check_threads(), &ops, results).unwrap();
    assert_eq!(passed(&results), [false, false, true, true]);
    assert_eq!(results[0].as_ref().err(), Some(&Error::Fault));
}

/// Enough for several chunks, with keys that come and go.
#[test]
fn large_batches_and_short_lived_keys() {
    let Some(cuda) = gpu() else { return };
    let mut expected = vec![];
    for _ in 0..3 {
        let keys = keys()[2..4].to_vec();
        let numbers = numbers(&keys, 64);
        let ops = numbers
            .iter()
            .cycle()
            .take(40_000)
            .map(|(key, block, _)| PrivateOp {
                key,
                representative: block,
                blind: None,
            });
        let ops: Vec<_> = ops.collect();
        if expected.is_empty() {
            expected = Serial.private_op(&ops[..64]).unwrap();
        }
        let results = cuda.private_op(&ops).unwrap();
        for (i, result) in results.iter().enumerate() {
            assert_eq!(
                **result.as_ref().unwrap(),
                **expected[i % 64].as_ref().unwrap()
            );
        }
    }
}
