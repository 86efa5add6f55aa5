//! Run where there is a GPU; elsewhere they say that they were skipped.

use super::*;
use crate::backend::Serial;
use crate::rsa::KeyHandle;
use alloc::vec;
use crypto_bigint::{Limb, Word};
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;

fn gpu() -> Option<Cuda> {
    crate::need::available("cuda", Cuda::probe()).map(|_| Cuda::new().unwrap())
}

/// Keys of several classes, of widths between them, of widths that no kernel takes, and with e = 3.
fn keys() -> Vec<KeyHandle> {
    let pems = [
        include_str!("../../../tests/keys/rsa1024.pem"),
        include_str!("../../../tests/keys/rsa1025.pem"),
        include_str!("../../../tests/keys/rsa2048.pem"),
        include_str!("../../../tests/keys/rsa2048-e3.pem"),
        include_str!("../../../tests/keys/rsa2056.pem"),
        include_str!("../../../tests/keys/rsa3072.pem"),
        include_str!("../../../tests/keys/rsa4096.pem"),
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
            block,
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

/// A device group of one key of 2048 bits.
fn lanes<'a>(cuda: &Cuda, numbers: &'a [(&'a KeyHandle, BoxedUint, BoxedUint)]) -> RsaGroup<'a> {
    let ops: Vec<_> = numbers
        .iter()
        .map(|(key, block, _)| PrivateOp {
            key,
            block,
            blind: None,
        })
        .collect();
    let shape = Shape::of(&ops[0]).unwrap();
    let class = shape.class(cuda).unwrap();
    device_group(
        &ops,
        numbers.iter().map(|(_, block, _)| block),
        shape,
        class,
    )
}

/// A bit of the block that is computed on, and one of the copy that it is compared with.
#[test]
fn a_flipped_bit_fails_its_lane_alone() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    let numbers = numbers(keys, 5);
    let group = lanes(&cuda, &numbers);
    let words = 2048 / 64;
    let in_block = |blocks: &mut [u64], _: &mut [u64]| blocks[words + 3] ^= 1 << 17;
    let in_copy = |_: &mut [u64], copies: &mut [u64]| copies[words] ^= 1;
    for strike in [&in_block as _, &in_copy as _] {
        let results = cuda.rsa_private_op_struck(&group, strike).unwrap();
        let passed: Vec<_> = results.iter().map(Option::is_some).collect();
        assert_eq!(passed, [true, false, true, true, true]);
    }
}

/// A key in which one CRT value is wrong never gives a result; the others are not affected.
#[test]
fn a_wrong_key_fails_its_lane_alone() {
    let Some(cuda) = gpu() else { return };
    let keys = &keys()[2..3];
    let numbers = numbers(keys, 3);
    for wrong in 0..3 {
        let mut group = lanes(&cuda, &numbers);
        let places = Default::default();
        let key = &mut group.lanes[1].key;
        key.places = &places;
        match wrong {
            0 => key.dp = key.dq,
            1 => key.qinv = key.dp,
            _ => core::mem::swap(&mut key.p, &mut key.q),
        }
        let results = cuda.rsa_private_op(&group).unwrap();
        let passed: Vec<_> = results.iter().map(Option::is_some).collect();
        assert_eq!(passed, [true, false, true]);
    }
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
                block,
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
