//! Batches of ciphertexts made by the `rsa` crate.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{BatchDecryptor, RsaesOaep, RsaesPkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use rsa::sha2::Sha256;
use rsa::{Oaep, Pkcs1v15Encrypt, PublicKey};

use crate::keys::Key;
use crate::work::{Done, Outcome, Place, below, expect, pick};

/// The reference takes longer to encrypt than this crate to decrypt.
const LARGEST: usize = 40;

/// Valid ciphertexts give their messages. Random ones give an error with OAEP, and with PKCS#1 v1.5
/// the same message as with the `rsa` crate.
pub(crate) fn ciphertexts(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let is_oaep = below(rng, 2) == 0;
    let size = place.size(rng).min(LARGEST);
    let items: Vec<_> = (0..size)
        .map(|_| {
            let key = pick(rng, &place.keys);
            match below(rng, 8) {
                0 => (key, made_up(rng, key), None),
                _ => {
                    let mut message = vec![0; below(rng, 60)];
                    rng.fill_bytes(&mut message);
                    let ciphertext = encrypted(rng, key, is_oaep, &message);
                    (key, ciphertext, Some(message))
                }
            }
        })
        .collect();
    let batch: Vec<_> = items
        .iter()
        .map(|(key, ciphertext, _)| (&key.handle, ciphertext))
        .collect();
    let backend = place.backend(rng);
    let messages = match is_oaep {
        true => BatchDecryptor::new(backend, RsaesOaep::<Sha256>::new()).decrypt_each(rng, &batch),
        false => BatchDecryptor::new(backend, RsaesPkcs1v15).decrypt_each(rng, &batch),
    };
    let messages = messages.map_err(|error| format!("{}: {error}", backend.name()))?;
    let mut done = Done {
        items: size as u64,
        ..Done::default()
    };
    for (index, ((key, ciphertext, message), result)) in items.iter().zip(&messages).enumerate() {
        let is_right = match (&result, message) {
            (Ok(result), Some(message)) => *result == message,
            (Ok(result), None) if !is_oaep => {
                let expected = key.reference.decrypt(Pkcs1v15Encrypt, ciphertext);
                expected.is_ok_and(|expected| *result == expected)
            }
            (Err(error), None) if is_oaep => {
                done.errors += 1;
                *error == Error::Decryption { index }
            }
            _ => false,
        };
        expect(is_right, || {
            let verdict = result.as_ref().map(|_| "another message");
            let bits = key.handle.bits();
            format!(
                "{}: ciphertext {index}, {bits} bits: {verdict:?}",
                backend.name()
            )
        })?;
        done.checked += 1;
    }
    Ok(done)
}

fn encrypted(rng: &mut ChaCha20Rng, key: &Key, is_oaep: bool, message: &[u8]) -> Vec<u8> {
    let public = PublicKey::from(&key.reference);
    let ciphertext = match is_oaep {
        true => public.encrypt(rng, Oaep::<Sha256>::new(), message),
        false => public.encrypt(rng, Pkcs1v15Encrypt, message),
    };
    ciphertext.expect("a message that is short enough")
}

/// A random number below n.
fn made_up(rng: &mut ChaCha20Rng, key: &Key) -> Vec<u8> {
    let mut ciphertext = vec![0; key.handle.size()];
    rng.fill_bytes(&mut ciphertext[1..]);
    ciphertext
}
