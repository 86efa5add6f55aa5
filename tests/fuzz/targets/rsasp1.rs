//! Raw private operations on input of all kinds, compared with num-bigint.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::KeyHandle;
use batch_modexp::rsa::hazmat::{rsadp, rsasp1};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use num_bigint::BigUint;

use super::input::Input;
use super::keys::{TestKey, backends, keys};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, seed) = (input.octet(), input.octet());
    let (name, backend) = &backends()[usize::from(kind) % backends().len()];
    let is_narrow = kind & 0x10 != 0;
    let mut rng = (kind & 0x20 != 0).then(|| ChaCha20Rng::seed_from_u64(seed.into()));
    let count = input.below(6);
    let blocks: Vec<_> = (0..count).map(|_| block(&mut input)).collect();

    let batch: Vec<(&KeyHandle, &[u8])> = blocks
        .iter()
        .map(|(key, octets)| (&key.handle, &octets[..]))
        .collect();
    let results = match is_narrow {
        true => rsadp(backend, rng.as_mut(), &batch),
        false => rsasp1(backend, rng.as_mut(), &batch),
    };
    let results = results.unwrap();
    assert_eq!(results.len(), count);
    for (index, (result, (key, octets))) in results.into_iter().zip(&blocks).enumerate() {
        let number = BigUint::from_bytes_be(octets);
        let one = BigUint::from(1u8);
        let is_in_range = octets.len() == key.handle.size()
            && number < key.n
            && (!is_narrow || number > one && number < &key.n - 1u8);
        if is_in_range {
            let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
            let power = BigUint::from_bytes_be(result);
            // Raising to e is a bijection on the numbers below n, so only one power leads back.
            assert!(result.len() == key.handle.size() && power < key.n, "{name}");
            assert_eq!(power.modpow(&key.e, &key.n), number, "{name}: lane {index}");
        } else {
            let expected = Error::BlockOutOfRange {
                index,
                len: octets.len(),
                expected: key.handle.size(),
            };
            assert_eq!(result.unwrap_err(), expected, "{name}");
        }
    }
}

fn block(input: &mut Input<'_>) -> (&'static TestKey, Vec<u8>) {
    let key = &keys()[input.below(keys().len())];
    let kind = input.octet();
    let octet = input.octet();
    let small = BigUint::from(octet);
    let number = match kind & 7 {
        0 => small,
        1 => &key.n - small,
        // One octet too many, if the sum overflows.
        2 => return (key, (&key.n + small).to_bytes_be()),
        3 => &key.primes[0] * small,
        4 => &key.n >> octet,
        5 => input.number(key.handle.size() / 8) % &key.n,
        6 => return (key, input.octets(key.handle.size()).to_vec()),
        _ => BigUint::from_bytes_be(input.octets(key.handle.size())) % &key.n,
    };
    (key, key.block(&number))
}
