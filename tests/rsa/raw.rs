//! Raw RSASP1, compared with num-bigint.

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::Error;
use batch_modexp::rsa::{KeyHandle, hazmat::rsasp1};
use chacha20::ChaCha20Rng;
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::keys;

fn big(key: &PrivateKey) -> [BigUint; 2] {
    [key.n().as_ref(), key.d()].map(|number| BigUint::from_bytes_be(&number.to_be_bytes()))
}

fn padded(number: &BigUint, len: usize) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    [vec![0; len - bytes.len()], bytes].concat()
}

#[test]
fn equals_num_bigint_for_awkward_blocks_and_every_kind_of_key() {
    let backend = Auto::with_gpus().unwrap();
    let kinds = [
        keys::rsa1024(),
        keys::all_sizes().remove(1),
        keys::without_crt(),
        keys::three_primes(),
        keys::wide_primes(),
        keys::wide_integers(),
        keys::swapped_primes(),
    ];
    for key in &kinds {
        let handle = KeyHandle::new(key).unwrap();
        let [n, d] = big(key);
        let p = BigUint::from_bytes_be(&key.primes()[0].to_be_bytes());
        let blocks = [
            0u8.into(),
            1u8.into(),
            2u8.into(),
            &n - 1u8,
            &n >> 1,
            p.clone(),
            &n - p,
        ];
        let octets: Vec<_> = blocks
            .iter()
            .map(|m| (&handle, padded(m, handle.size())))
            .collect();
        for mut rng in [None, Some(keys::rng())] {
            let results = rsasp1(&backend, rng.as_mut(), &octets).unwrap();
            for (block, result) in blocks.iter().zip(&results) {
                let expected = padded(&block.modpow(&d, &n), handle.size());
                assert_eq!(result.unwrap(), expected, "{block:x}");
            }
        }
    }
}

#[test]
fn blocks_out_of_range_fail_alone() {
    let key = keys::rsa1024();
    let handle = KeyHandle::new(&key).unwrap();
    let [n, _] = big(&key);
    let blocks = [
        (&handle, padded(&1u8.into(), 128)),
        (&handle, padded(&n, 128)),
        (&handle, vec![0xff; 128]),
        (&handle, vec![0; 127]),
        (&handle, vec![0; 129]),
        (&handle, Vec::new()),
    ];
    let results = rsasp1(&Serial, None::<&mut ChaCha20Rng>, &blocks).unwrap();
    assert!(results.get(0).is_ok());
    for (index, (result, (_, block))) in results.iter().zip(&blocks).enumerate().skip(1) {
        let expected = Error::BlockOutOfRange {
            index,
            len: block.len(),
            expected: 128,
        };
        assert_eq!(result.unwrap_err(), expected);
    }
}
