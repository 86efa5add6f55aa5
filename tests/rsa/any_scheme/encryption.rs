//! Encryption and decryption with schemes chosen at run time.

use batch_modexp::rsa::{AnyEncryptionScheme, BatchDecryptor, BatchEncryptor, Error, OaepHash};
use rsa::{Oaep, Pkcs1v15Encrypt};
use sha1::{Digest, Sha1};

use super::*;

/// Keys of several sizes, both schemes, all hash functions and bad items in one batch.
#[test]
fn decryption_by_a_scheme_for_each_item() {
    let references = [keys::rsa1024(), keys::rsa2048()];
    let handles = references
        .each_ref()
        .map(|key| KeyHandle::new(key).unwrap());
    let publics = references.each_ref().map(rsa::PublicKey::from);
    let mut rng = keys::rng();
    let (mut batch, mut expected) = (Vec::new(), Vec::new());
    macro_rules! push {
        ($hash:ident, $name:literal) => {
            let label = $name.as_bytes();
            for mgf_hash in [Hash::$hash, Hash::Sha384] {
                let scheme = AnyEncryptionScheme::Oaep {
                    hash: Hash::$hash.into(),
                    mgf_hash: mgf_hash.into(),
                    label,
                };
                let ciphertext = match mgf_hash {
                    Hash::Sha384 => {
                        let theirs = Oaep::<$hash, Sha384>::new_with_mgf_hash_and_label(label);
                        publics[1].encrypt(&mut rng, theirs, label)
                    }
                    _ => publics[1].encrypt(&mut rng, Oaep::<$hash>::new_with_label(label), label),
                };
                batch.push((&handles[1], scheme, ciphertext.unwrap()));
                expected.push(Some(label));
                let ciphertext = publics[0]
                    .encrypt(&mut rng, Pkcs1v15Encrypt, label)
                    .unwrap();
                batch.push((&handles[0], AnyEncryptionScheme::Pkcs1v15, ciphertext));
                expected.push(Some(label));
            }
        };
    }
    each_hash!(push);
    let (key, scheme, ciphertext) = batch[0].clone();
    let AnyEncryptionScheme::Oaep {
        hash,
        mgf_hash,
        label,
    } = scheme
    else {
        unreachable!("the first scheme is OAEP");
    };
    let wrong = [
        AnyEncryptionScheme::Oaep {
            hash: Hash::Sha3_224.into(),
            mgf_hash,
            label,
        },
        AnyEncryptionScheme::Oaep {
            hash,
            mgf_hash: Hash::Sha512_224.into(),
            label,
        },
        AnyEncryptionScheme::Oaep {
            hash,
            mgf_hash,
            label: b"",
        },
    ];
    for wrong in wrong {
        batch.push((key, wrong, ciphertext.clone()));
        expected.push(None);
    }
    for blinding in [true, false] {
        let decryptor = BatchDecryptor::new(Auto::with_gpus().unwrap(), scheme).blinding(blinding);
        let messages = decryptor.decrypt_mixed(&mut rng, &batch).unwrap();
        for (index, (message, expected)) in messages.iter().zip(&expected).enumerate() {
            let expected = expected.ok_or(Error::Decryption { index });
            assert_eq!(message, expected);
        }
    }
    let too_long = AnyEncryptionScheme::Oaep {
        hash: Hash::Sha512.into(),
        mgf_hash,
        label,
    };
    let batch = [
        (&handles[0], AnyEncryptionScheme::Pkcs1v15, [7; 128]),
        (&handles[0], too_long, [7; 128]),
    ];
    let messages = BatchDecryptor::new(Serial, scheme)
        .decrypt_mixed(&mut rng, &batch)
        .unwrap();
    assert!(messages.get(0).is_ok());
    let error = messages.get(1).unwrap_err();
    assert_eq!(
        error,
        Error::KeyTooShort {
            index: 1,
            bits: 1024,
            min_bits: 1033
        }
    );
    assert_eq!(error.index(), Some(1));
}

/// The `rsa` crate decrypts ciphertexts of a scheme chosen at run time.
#[test]
fn encryption_by_a_scheme_of_run_time() {
    let reference = keys::rsa2048();
    let public = KeyHandle::new(&reference).unwrap().public_key();
    let encrypt = |scheme| {
        let encryptor = BatchEncryptor::new(Serial, scheme);
        encryptor
            .encrypt(&mut keys::rng(), &public, &["m"])
            .unwrap()
            .into_vec()
            .unwrap()
    };
    let ciphertext = encrypt(AnyEncryptionScheme::Pkcs1v15);
    assert_eq!(
        reference.decrypt(Pkcs1v15Encrypt, &ciphertext).unwrap(),
        b"m"
    );
    macro_rules! check {
        ($hash:ident, $name:literal) => {
            let (hash, mgf_hash, label) = (Hash::$hash, Hash::Sha3_256, b"L");
            let ciphertext = encrypt(AnyEncryptionScheme::Oaep {
                hash: hash.into(),
                mgf_hash: mgf_hash.into(),
                label,
            });
            let theirs = Oaep::<$hash, Sha3_256>::new_with_mgf_hash_and_label(*label);
            assert_eq!(reference.decrypt(theirs, &ciphertext).unwrap(), b"m");
        };
    }
    each_hash!(check);
}

/// OAEP with SHA-1 for the label, the mask, or both.
#[test]
fn oaep_with_sha1() {
    let reference = keys::rsa2048();
    let key = KeyHandle::new(&reference).unwrap();
    let (public, mut rng) = (rsa::PublicKey::from(&reference), keys::rng());
    macro_rules! check {
        ($hash:expr, $Hash:ident, $mgf_hash:expr, $MgfHash:ident) => {
            let scheme = AnyEncryptionScheme::Oaep {
                hash: $hash,
                mgf_hash: $mgf_hash,
                label: b"L",
            };
            let theirs = || Oaep::<$Hash, $MgfHash>::new_with_mgf_hash_and_label(*b"L");
            let longest = vec![7; 256 - 2 * <$Hash as Digest>::output_size() - 2];
            let ciphertext = public.encrypt(&mut rng, theirs(), &longest).unwrap();
            let decryptor = BatchDecryptor::new(Serial, scheme);
            let messages = decryptor.decrypt(&mut rng, &key, &[ciphertext]).unwrap();
            assert_eq!(messages.get(0).unwrap(), longest);
            let encryptor = BatchEncryptor::new(Serial, scheme);
            let public_key = key.public_key();
            let ciphertexts = encryptor
                .encrypt(&mut rng, &public_key, &[&longest])
                .unwrap();
            let ciphertext = ciphertexts.get(0).unwrap();
            assert_eq!(reference.decrypt(theirs(), ciphertext).unwrap(), longest);
        };
    }
    check!(OaepHash::Sha1, Sha1, OaepHash::Sha1, Sha1);
    check!(Hash::Sha256.into(), Sha256, OaepHash::Sha1, Sha1);
    check!(OaepHash::Sha1, Sha1, Hash::Sha3_512.into(), Sha3_512);
}
