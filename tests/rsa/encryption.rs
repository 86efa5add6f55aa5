//! The encryptor, compared with the `rsa` crate, OpenSSL and our decryptor.

use std::fs;
use std::process::Command;

use batch_modexp::backend::{Auto, Cpu, Serial};
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{
    BatchDecryptor, BatchEncryptor, EncryptionScheme, Error, KeyHandle, PublicKey, Restriction,
    RsaesOaep, RsaesPkcs1v15,
};
use rsa::sha2::{Sha256, Sha512};
use rsa::{Oaep, Pkcs1v15Encrypt, PrivateKey};
use sha1::Sha1;

use super::{keys, need};

fn messages(most: usize) -> Vec<Vec<u8>> {
    [0, 1, most / 2, most - 1, most]
        .into_iter()
        .map(|len| (0..len).map(|i| i as u8).collect())
        .collect()
}

/// Encrypts messages of all lengths under keys of all sizes, and decrypts them by `decrypt` and by
/// our decryptor.
fn round_trips<S: EncryptionScheme + Sync + Clone>(
    scheme: &S,
    overhead: usize,
    decrypt: impl Fn(&PrivateKey, &[u8]) -> Vec<u8>,
) {
    let keys = keys::all_sizes();
    let handles: Vec<_> = keys
        .iter()
        .map(|key| KeyHandle::try_from(key).unwrap())
        .collect();
    let public: Vec<_> = handles.iter().map(PublicKey::from).collect();
    let mut batch = Vec::new();
    for (key, public) in public.iter().enumerate() {
        for message in messages(public.size() - overhead) {
            batch.push((key, message));
        }
    }
    // Neighbours have different keys.
    let by_turns = (0..5).flat_map(|i| batch.iter().skip(i).step_by(5));
    let batch: Vec<_> = by_turns.collect();
    let for_encryptor: Vec<_> = batch.iter().map(|(key, m)| (&public[*key], m)).collect();
    let auto = Auto::with_gpus().unwrap();
    let rng = &mut keys::rng();
    let on_serial = BatchEncryptor::new(Serial, scheme.clone()).encrypt_each(rng, &for_encryptor);
    let on_auto = BatchEncryptor::new(&auto, scheme.clone()).encrypt_each(rng, &for_encryptor);
    for ciphertexts in [on_serial.unwrap(), on_auto.unwrap()] {
        assert_eq!(ciphertexts.len(), batch.len());
        let for_decryptor: Vec<_> = batch
            .iter()
            .zip(&ciphertexts)
            .map(|((key, _), ciphertext)| (&handles[*key], ciphertext.unwrap()))
            .collect();
        let decryptor = BatchDecryptor::new(&auto, scheme.clone());
        let decrypted = decryptor.decrypt_each(rng, &for_decryptor).unwrap();
        for (i, (key, message)) in batch.iter().enumerate() {
            assert_eq!(decrypted.get(i).unwrap(), message);
            assert_eq!(decrypt(&keys[*key], ciphertexts.get(i).unwrap()), *message);
        }
    }
}

#[test]
fn pkcs1_v15_is_what_the_rsa_crate_decrypts() {
    round_trips(&RsaesPkcs1v15, 11, |key, ciphertext| {
        key.decrypt(Pkcs1v15Encrypt, ciphertext).unwrap()
    });
}

#[test]
fn oaep_is_what_the_rsa_crate_decrypts() {
    round_trips(&RsaesOaep::<Sha256>::new(), 66, |key, ciphertext| {
        key.decrypt(Oaep::<Sha256>::new(), ciphertext).unwrap()
    });
    round_trips(
        &RsaesOaep::<Sha256, Sha1>::with_label(b"label"),
        66,
        |key, ciphertext| {
            let scheme = Oaep::<Sha256, Sha1>::new_with_mgf_hash_and_label(*b"label");
            key.decrypt(scheme, ciphertext).unwrap()
        },
    );
}

#[test]
fn openssl_decrypts() {
    if need::available("openssl", Command::new("openssl").arg("version").output()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ciphertext");
    let private = concat!(env!("CARGO_MANIFEST_DIR"), "/../keys/rsa2048.pem");
    let key = PublicKey::try_from(&keys::rsa2048().to_public_key()).unwrap();
    let decrypt = |ciphertext: &[u8], padding: &[&str]| {
        fs::write(&file, ciphertext).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["pkeyutl", "-decrypt", "-inkey", private]);
        for option in padding {
            openssl.args(["-pkeyopt", option]);
        }
        let output = openssl.arg("-in").arg(&file).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    let (rng, message) = (&mut keys::rng(), ["a message"]);
    let pkcs1_v15 = BatchEncryptor::new(Serial, RsaesPkcs1v15).encrypt(rng, &key, &message);
    let pkcs1_v15 = pkcs1_v15.unwrap().into_vec().unwrap();
    assert_eq!(
        decrypt(&pkcs1_v15, &["rsa_padding_mode:pkcs1"]),
        b"a message"
    );
    let oaep = RsaesOaep::<Sha256, Sha512>::with_label(b"L");
    let oaep = BatchEncryptor::new(Serial, oaep).encrypt(rng, &key, &message);
    let options = [
        "rsa_padding_mode:oaep",
        "rsa_oaep_md:sha256",
        "rsa_mgf1_md:sha512",
        "rsa_oaep_label:4c",
    ];
    assert_eq!(
        decrypt(&oaep.unwrap().into_vec().unwrap(), &options),
        b"a message"
    );
}

/// The padding of PKCS#1 v1.5 has no zeros, and has all other octets.
#[test]
fn padding_is_random_and_not_zero() {
    let key = KeyHandle::try_from(&keys::rsa1024()).unwrap();
    let encryptor = BatchEncryptor::new(Cpu::new().unwrap(), RsaesPkcs1v15);
    let ciphertexts = encryptor
        .encrypt(&mut keys::rng(), &key.public_key(), &["m"; 200])
        .unwrap();
    let blocks: Vec<_> = ciphertexts.iter().map(|c| (&key, c.unwrap())).collect();
    let ems = rsasp1(&Serial, Some(&mut keys::rng()), &blocks).unwrap();
    let mut counts = [0; 256];
    for em in &ems {
        let em = em.unwrap();
        assert_eq!((&em[..2], &em[126..]), (&[0, 2][..], &b"\0m"[..]));
        em[2..126]
            .iter()
            .for_each(|octet| counts[usize::from(*octet)] += 1);
    }
    // About 97 of each value, with a standard deviation of 10.
    assert_eq!(counts[0], 0);
    assert!(
        counts[1..].iter().all(|count| (40..160).contains(count)),
        "{counts:?}"
    );
    let first = ciphertexts.get(0).unwrap();
    assert!(
        ciphertexts
            .iter()
            .skip(1)
            .all(|other| other.unwrap() != first)
    );
}

/// An error of one message does not affect the others.
#[test]
fn messages_and_keys_that_do_not_fit() {
    let key = PublicKey::try_from(&keys::rsa1024().to_public_key()).unwrap();
    let pss = KeyHandle::from_pem(include_str!("../keys/pss.pem"))
        .unwrap()
        .public_key();
    let rng = &mut keys::rng();
    let encryptor = BatchEncryptor::new(Serial, RsaesOaep::<Sha256>::new());
    let batch = [(&key, vec![1; 62]), (&key, vec![1; 63]), (&pss, vec![1])];
    let ciphertexts = encryptor.encrypt_each(rng, &batch).unwrap();
    assert_eq!(ciphertexts.get(0).map(<[u8]>::len), Ok(128));
    let too_long = Error::MessageTooLong {
        index: 1,
        len: 63,
        max_len: 62,
    };
    assert_eq!(ciphertexts.get(1), Err(too_long));
    let restricted = Error::KeyRestricted {
        index: 2,
        restriction: Restriction::Pss,
    };
    assert_eq!(ciphertexts.get(2), Err(restricted));
    let large_hash = BatchEncryptor::new(Serial, RsaesOaep::<Sha512>::new());
    let too_short = Error::KeyTooShort {
        index: 0,
        bits: 1024,
        min_bits: 8 * 129 + 1,
    };
    let ciphertexts = large_hash.encrypt(rng, &key, &[""]).unwrap();
    assert_eq!(ciphertexts.get(0), Err(too_short));
}

/// A generator whose output never changes gives no ciphertext.
#[test]
fn stuck_generator() {
    use rand_core::{TryCryptoRng, TryRng};

    struct Stuck;

    impl TryRng for Stuck {
        type Error = core::convert::Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(0)
        }

        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(0)
        }

        fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Self::Error> {
            octets.fill(0);
            Ok(())
        }
    }

    impl TryCryptoRng for Stuck {}

    let key = PublicKey::try_from(&keys::rsa1024().to_public_key()).unwrap();
    let encryptor = BatchEncryptor::new(Serial, RsaesPkcs1v15);
    assert!(matches!(
        encryptor.encrypt(&mut Stuck, &key, &["m"]),
        Err(Error::Rng)
    ));
}
