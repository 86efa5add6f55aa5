//! Ciphertexts of all kinds, compared with the `rsa` crate.

use batch_modexp::backend::Serial;
use batch_modexp::rsa::Error;
use batch_modexp::rsa::{BatchDecryptor, RsaesOaep, RsaesPkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use num_bigint::BigUint;
use rsa::sha2::{Digest, Sha256};
use rsa::{Oaep, Pkcs1v15Encrypt};
use sha1::Sha1;

use super::input::Input;
use super::keys::{TestKey, keys};

/// The outcome of an input, for the test that the corpus has all outcomes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    OutOfRange,
    /// PKCS#1 v1.5, with valid or invalid padding.
    Pkcs1v15,
    OaepAccepted,
    OaepRejected,
    /// Only the first octet of the padding is wrong.
    OaepFirstOctet,
}

pub fn run(data: &[u8]) -> Outcome {
    let mut input = Input::new(data);
    let (kind, seed) = (input.octet(), input.octet());
    let key = &keys()[input.below(keys().len())];
    let ciphertext = ciphertext(&mut input, kind, key);
    let is_blinded = kind & 0x80 != 0;
    let mut rng = ChaCha20Rng::seed_from_u64(seed.into());
    let messages = match kind & 3 {
        0 | 1 => BatchDecryptor::new(Serial, RsaesPkcs1v15)
            .blinding(is_blinded)
            .decrypt(&mut rng, &key.handle, &[&ciphertext]),
        2 => BatchDecryptor::new(Serial, RsaesOaep::<Sha256>::new())
            .blinding(is_blinded)
            .decrypt(&mut rng, &key.handle, &[&ciphertext]),
        _ => BatchDecryptor::new(Serial, RsaesOaep::<Sha1>::new())
            .blinding(is_blinded)
            .decrypt(&mut rng, &key.handle, &[&ciphertext]),
    };
    let messages = messages.unwrap();
    let message = messages.get(0);

    let size = key.handle.size();
    if ciphertext.len() != size || BigUint::from_bytes_be(&ciphertext) >= key.n {
        let error = Error::BlockOutOfRange {
            index: 0,
            len: ciphertext.len(),
            expected: size,
        };
        assert_eq!(message.unwrap_err(), error);
        return Outcome::OutOfRange;
    }
    let expected = match kind & 3 {
        0 | 1 => key.rsa.decrypt(Pkcs1v15Encrypt, &ciphertext),
        2 => key.rsa.decrypt(Oaep::<Sha256>::new(), &ciphertext),
        _ => key.rsa.decrypt(Oaep::<Sha1>::new(), &ciphertext),
    };
    match (message, expected) {
        (Ok(message), Ok(expected)) => {
            assert_eq!(message, expected);
            match kind & 3 {
                0 | 1 => Outcome::Pkcs1v15,
                _ => {
                    assert!(first_octet_is_zero(key, &ciphertext));
                    Outcome::OaepAccepted
                }
            }
        }
        (Err(error), Err(_)) => {
            assert!(kind & 3 > 1, "PKCS#1 v1.5 rejects: {error}");
            assert_eq!(error, Error::Decryption { index: 0 });
            Outcome::OaepRejected
        }
        // The rsa crate ignores the octet that RFC 8017 (section 7.1.2, step 3g) requires to be
        // zero.
        (Err(error), Ok(_)) if kind & 3 > 1 && !first_octet_is_zero(key, &ciphertext) => {
            assert_eq!(error, Error::Decryption { index: 0 });
            Outcome::OaepFirstOctet
        }
        (message, expected) => panic!(
            "decrypts: {}; with the rsa crate: {}",
            message.is_ok(),
            expected.is_ok()
        ),
    }
}

/// Whether the first octet of the encoded message in `ciphertext` is zero.
fn first_octet_is_zero(key: &TestKey, ciphertext: &[u8]) -> bool {
    let encoded = BigUint::from_bytes_be(ciphertext).modpow(&key.d, &key.n);
    encoded.bits() <= 8 * (key.handle.size() as u64 - 1)
}

/// Octets as they are, or an encrypted encoded message, so that mutations reach the padding after
/// the private operation.
fn ciphertext(input: &mut Input<'_>, kind: u8, key: &TestKey) -> Vec<u8> {
    let size = key.handle.size();
    if kind & 0x0c == 0 {
        return input.octets(size + 1).to_vec();
    }
    let mut block = vec![0; size];
    if kind & 3 < 2 || kind & 0x0c == 4 {
        let given = input.octets(size);
        block[..given.len()].copy_from_slice(given);
    } else if kind & 3 == 2 {
        oaep::<Sha256>(input, &mut block);
    } else {
        oaep::<Sha1>(input, &mut block);
    }
    let number = BigUint::from_bytes_be(&block) % &key.n;
    key.block(&number.modpow(&key.e, &key.n))
}

/// Applies EME-OAEP encoding (RFC 8017, section 7.1.1) to a data block that may be invalid. The
/// hash of the label is right, except where the input changes it.
fn oaep<D: Digest>(input: &mut Input<'_>, block: &mut [u8]) {
    let len = <D as Digest>::output_size();
    block[0] = input.octet();
    let (seed, db) = block[1..].split_at_mut(len);
    seed.fill(input.octet());
    db[..len].copy_from_slice(&D::digest([]));
    let (place, change) = (input.below(len), input.octet());
    db[place] ^= change;
    // Zeros, then octets to the end.
    let rest = &mut db[len..];
    let given = input.octets(rest.len());
    let start = rest.len() - given.len();
    rest[start..].copy_from_slice(given);
    add_mask::<D>(db, seed);
    add_mask::<D>(seed, db);
}

/// XORs the mask of MGF1 into `octets` (RFC 8017, appendix B.2.1).
fn add_mask<D: Digest>(octets: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in (0u32..).zip(octets.chunks_mut(<D as Digest>::output_size())) {
        let mask = D::new()
            .chain_update(seed)
            .chain_update(counter.to_be_bytes())
            .finalize();
        chunk.iter_mut().zip(mask).for_each(|(a, b)| *a ^= b);
    }
}
