//! Keys from PKCS#1, PKCS#8 and numbers, made by OpenSSL. They sign like the `rsa` crate, and
//! inconsistent numbers are refused with the right error.

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::Error;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{
    AnyScheme, BatchSigner, Hash, KeyFault, KeyHandle, Pkcs1v15, Pss, Restriction, RsaComponents,
};
use chacha20::ChaCha20Rng;
use num_bigint::BigUint;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey};
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use rsa::{PrivateKey, PublicKey, pkcs1v15};

use super::keys;

macro_rules! pem {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../keys/",
            $name,
            ".pem"
        ))
    };
}

mod components;
mod degenerate;
mod pem;
mod restricted;

const PASSPHRASE: &str = "correct horse";

/// Signs with `handle`, and compares with the `rsa` crate and `key`.
fn signs_like(handle: &KeyHandle, key: &PrivateKey) {
    let public = PublicKey::from_public_key_der(&handle.public_key_der()).unwrap();
    assert_eq!(public, key.to_public_key());
    assert_eq!(
        PublicKey::from_public_key_pem(&handle.public_key_pem()).unwrap(),
        public
    );
    assert_eq!(
        BigUint::from_bytes_be(&handle.n()),
        BigUint::from_bytes_be(&key.n().to_be_bytes())
    );
    assert_eq!(handle.n().len(), handle.size());
    assert_eq!(*handle.e(), *key.e().to_be_bytes_trimmed_vartime());
    assert_eq!(handle.bits(), key.n().bit_width_vartime());

    let signer = BatchSigner::new(Auto::with_gpus().unwrap(), Pkcs1v15::<Sha256>::new());
    let messages = ["", "one", "two"];
    let signatures = signer.sign(&mut keys::rng(), handle, &messages).unwrap();
    let one_by_one = pkcs1v15::SigningKey::<Sha256>::new(key.clone());
    for (message, signature) in messages.iter().zip(signatures) {
        let expected = one_by_one.sign(message.as_bytes()).to_bytes();
        assert_eq!(signature.unwrap().into_bytes(), expected);
    }
}

#[test]
fn pkcs1_of_every_size() {
    for pem in [
        pem!("rsa1024"),
        pem!("rsa1025"),
        pem!("rsa2048"),
        pem!("rsa2048-e3"),
        pem!("rsa2056"),
        pem!("rsa3072"),
        pem!("rsa3104"),
        pem!("rsa4096"),
        pem!("rsa8192"),
    ] {
        let handle = KeyHandle::from_pkcs1_pem(pem).unwrap();
        assert!(handle.has_crt());
        assert_eq!(handle.restriction(), Restriction::None);
        signs_like(&handle, &PrivateKey::from_pkcs1_pem(pem).unwrap());
    }
}

#[test]
fn pkcs8() {
    let pem = pem!("rsa2048-pkcs8");
    let key = PrivateKey::from_pkcs8_pem(pem).unwrap();
    signs_like(&KeyHandle::from_pkcs8_pem(pem).unwrap(), &key);
    // With text before it, as some tools write.
    let with_text = format!("Bag Attributes\n    friendlyName: key\n{pem}");
    signs_like(&KeyHandle::from_pkcs8_pem(&with_text).unwrap(), &key);
}

#[test]
fn der_of_both_kinds() {
    let key = keys::rsa1024();
    let der = key.to_pkcs1_der().unwrap();
    signs_like(&KeyHandle::from_pkcs1_der(der.as_bytes()).unwrap(), &key);
    let der = pkcs8::EncodePrivateKey::to_pkcs8_der(&key).unwrap();
    signs_like(&KeyHandle::from_pkcs8_der(der.as_bytes()).unwrap(), &key);
}

#[test]
fn the_public_key_is_what_openssl_writes() {
    let handle = KeyHandle::from_pkcs1_pem(pem!("rsa2048")).unwrap();
    assert_eq!(handle.public_key_pem(), pem!("rsa2048-public"));
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss")).unwrap();
    assert_eq!(handle.public_key_pem(), pem!("pss-public"));
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss-sha256")).unwrap();
    assert_eq!(handle.public_key_pem(), pem!("pss-sha256-public"));
}

/// An e of 192 bits, which the `rsa` crate does not accept.
#[test]
fn a_large_public_exponent() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("rsa1024-large-e")).unwrap();
    assert_eq!((handle.e().len(), handle.e()[0]), (24, 0x80));
    let (n, e) = (handle.n(), handle.e());
    let [n, e] = [n, e].map(|octets| BigUint::from_bytes_be(&octets));
    let block = vec![7; handle.size()];
    for mut rng in [None, Some(keys::rng())] {
        let results = rsasp1(&Serial, rng.as_mut(), &[(&handle, &block)]).unwrap();
        let power = BigUint::from_bytes_be(results.get(0).unwrap()).modpow(&e, &n);
        assert_eq!(power, BigUint::from_bytes_be(&block));
    }
}

#[test]
fn more_than_two_primes() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("rsa2048-three-primes")).unwrap();
    assert!(!handle.has_crt());
    let (n, e) = (handle.n(), handle.e());
    let [n, e] = [n, e].map(|octets| BigUint::from_bytes_be(&octets));
    let block = vec![7; handle.size()];
    let no_rng = None::<&mut ChaCha20Rng>;
    let results = rsasp1(&Serial, no_rng, &[(&handle, &block)]).unwrap();
    let power = BigUint::from_bytes_be(results.get(0).unwrap()).modpow(&e, &n);
    assert_eq!(power, BigUint::from_bytes_be(&block));
}

#[test]
fn encrypted_pkcs8() {
    let key = keys::rsa1024();
    for pem in [pem!("encrypted-pbkdf2"), pem!("encrypted-scrypt")] {
        let handle = KeyHandle::from_pkcs8_encrypted_pem(pem, PASSPHRASE).unwrap();
        signs_like(&handle, &key);
        let error = KeyHandle::from_pkcs8_encrypted_pem(pem, "wrong").unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::Passphrase));
        let error = KeyHandle::from_pkcs8_pem(pem).unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::Encrypted));
        let (_, der) = pkcs8::der::pem::decode_vec(pem.as_bytes()).unwrap();
        let error = KeyHandle::from_pkcs8_der(&der).unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::Encrypted));
    }
    let error = KeyHandle::from_pkcs1_pem(pem!("encrypted-pkcs1")).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Encrypted));
}

#[test]
fn what_is_no_key() {
    let pkcs8 = |expected| Error::Key(KeyFault::Label { expected });
    let cases = [
        (KeyHandle::from_pkcs8_pem(""), Error::Key(KeyFault::Pem)),
        (
            KeyHandle::from_pkcs8_pem(
                "-----BEGIN PRIVATE KEY-----\n????\n-----END PRIVATE KEY-----\n",
            ),
            Error::Key(KeyFault::Pem),
        ),
        (
            KeyHandle::from_pkcs8_pem(pem!("rsa2048")),
            pkcs8("PRIVATE KEY"),
        ),
        (
            KeyHandle::from_pkcs1_pem(pem!("rsa2048-pkcs8")),
            pkcs8("RSA PRIVATE KEY"),
        ),
        (
            KeyHandle::from_pkcs8_pem(pem!("ed25519")),
            Error::Key(KeyFault::Algorithm),
        ),
        (
            KeyHandle::from_pkcs8_der(&[0x30, 0]),
            Error::Key(KeyFault::Der {
                expected: "PrivateKeyInfo",
            }),
        ),
        (
            KeyHandle::from_pkcs1_der(&[]),
            Error::Key(KeyFault::Der {
                expected: "RSAPrivateKey",
            }),
        ),
        (
            KeyHandle::from_pkcs1_pem(pem!("rsa1016")),
            Error::KeySize { bits: 1016 },
        ),
        (
            KeyHandle::from_pkcs1_pem(pem!("rsa8200")),
            Error::KeySize { bits: 8200 },
        ),
    ];
    for (result, expected) in cases {
        assert_eq!(result.unwrap_err(), expected);
    }
}

/// Keys of OpenSSL in which one number has been changed.
#[test]
fn numbers_that_do_not_belong_together() {
    for (pem, expected) in [
        (pem!("mismatch-n"), KeyFault::Product),
        (pem!("mismatch-e"), KeyFault::Exponents),
        (pem!("mismatch-d"), KeyFault::Exponents),
        (pem!("mismatch-p"), KeyFault::Product),
        (pem!("mismatch-q"), KeyFault::Product),
        (pem!("mismatch-dp"), KeyFault::Dp),
        (pem!("mismatch-dq"), KeyFault::Dq),
        (pem!("mismatch-qinv"), KeyFault::Qinv),
    ] {
        let error = KeyHandle::from_pkcs1_pem(pem).unwrap_err();
        assert_eq!(error, Error::Key(expected));
        assert!(error.to_string().contains("belong together"), "{error}");
    }
}
