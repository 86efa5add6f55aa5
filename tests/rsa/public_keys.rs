//! Public keys in all encodings, made by OpenSSL and the `rsa` crate, and keys that are refused.

use std::process::Command;

use batch_modexp::backend::{Cpu, Serial};
use batch_modexp::rsa::{
    BatchSigner, BatchVerifier, Error, KeyFault, KeyHandle, Pkcs1v15, PublicKey, Restriction,
};
use data_encoding::BASE64URL_NOPAD;
use num_bigint::BigUint;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::sha2::{Digest, Sha256};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::keys;
use crate::need;

/// Each encoding gives the same key, with the numbers and the octets of the `rsa` crate.
#[test]
fn encodings() {
    for private in keys::all_sizes() {
        let reference = private.to_public_key();
        let (n, e) = (reference.n_bytes(), reference.e_bytes());
        let key = PublicKey::try_from(&reference).unwrap();
        let bits = BigUint::from_bytes_be(&n).bits();
        assert_eq!(
            (u64::from(key.bits()), key.size()),
            (bits, bits.div_ceil(8) as usize)
        );
        assert_eq!((key.n(), key.e()), (n.to_vec(), e.to_vec()));
        assert_eq!(key.restriction(), Restriction::None);

        let spki = reference.to_public_key_der().unwrap();
        assert_eq!(key.as_der(), spki.as_bytes());
        let pkcs1 = reference.to_pkcs1_der().unwrap();
        let line_ending = LineEnding::LF;
        let spki_pem = reference.to_public_key_pem(line_ending).unwrap();
        assert_eq!(key.to_pem(), spki_pem);
        let pkcs1_pem = reference.to_pkcs1_pem(line_ending).unwrap();
        let handle = KeyHandle::try_from(&private).unwrap();
        let jwk = [&n, &e].map(|number| BASE64URL_NOPAD.encode(number));
        for other in [
            PublicKey::from_spki_der(spki.as_bytes()),
            PublicKey::from_pkcs1_der(pkcs1.as_bytes()),
            PublicKey::from_pem(&spki_pem),
            PublicKey::from_pem(&pkcs1_pem),
            PublicKey::from_pem(format!("A key\n{spki_pem}and more")),
            PublicKey::from_numbers(&n, &e),
            PublicKey::from_numbers(&[&[0, 0], &n[..]].concat(), &[&[0], &e[..]].concat()),
            PublicKey::from_jwk(&jwk[0], &jwk[1]),
            Ok(handle.public_key()),
        ] {
            assert_eq!(other.unwrap(), key);
        }
    }
}

/// The key of a certificate made by `openssl`, with any version and any extensions.
#[test]
fn certificates() {
    if need::available("openssl", Command::new("openssl").arg("version").output()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let key = KeyHandle::try_from(&keys::rsa2048()).unwrap();
    let private = concat!(env!("CARGO_MANIFEST_DIR"), "/../keys/rsa2048.pem");
    for (extra, name) in [
        (&["-x509", "-days", "1"][..], "v3"),
        (
            &[
                "-x509",
                "-days",
                "1",
                "-addext",
                "subjectAltName=DNS:example.org",
            ][..],
            "names",
        ),
    ] {
        let output = Command::new("openssl")
            .args(["req", "-new", "-subj", "/CN=test/O=nobody", "-key", private])
            .args(extra)
            .arg("-out")
            .arg(file(name))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let pem = std::fs::read(file(name)).unwrap();
        let from_pem = PublicKey::from_pem(&pem).unwrap();
        assert_eq!(from_pem, key.public_key());

        let output = Command::new("openssl")
            .args(["x509", "-outform", "DER", "-in"])
            .arg(file(name))
            .output()
            .unwrap();
        let der = output.stdout;
        assert_eq!(PublicKey::from_certificate_der(&der).unwrap(), from_pem);
        // With any octet removed or added it is no certificate.
        let fault = Err(Error::PublicKey(KeyFault::Der {
            expected: "Certificate",
        }));
        for len in 0..der.len() {
            assert_eq!(PublicKey::from_certificate_der(&der[..len]), fault);
        }
        assert_eq!(
            PublicKey::from_certificate_der(&[&der[..], &[0]].concat()),
            fault
        );
        // Whichever octet changes, the result is a key or an error.
        for at in 0..der.len() {
            let mut der = der.clone();
            der[at] = der[at].wrapping_add(0x41);
            let _ = PublicKey::from_certificate_der(&der);
        }
    }
}

#[test]
fn numbers_that_are_no_key() {
    let key = KeyHandle::try_from(&keys::rsa1024()).unwrap();
    let n = key.n();
    let fault = |n: &[u8], e: &[u8]| match PublicKey::from_numbers(n, e) {
        Err(Error::PublicKey(fault)) => fault,
        other => panic!("{other:?}"),
    };
    for e in [
        &[][..],
        &[0],
        &[1],
        &[2],
        &[1, 0],
        &n,
        &[&[1], &n[..]].concat(),
        &[0xff; 3000],
    ] {
        assert_eq!(fault(&n, e), KeyFault::PublicExponent, "{e:?}");
    }
    let mut even = n.clone();
    even[127] ^= 1;
    assert_eq!(fault(&even, &[3]), KeyFault::EvenModulus);
    for (n, bits) in [
        (vec![], 0),
        (vec![0; 200], 0),
        (vec![0x7f; 128], 1023),
        ([&[1], &[0xff; 2048][..]].concat(), 16_385),
    ] {
        assert_eq!(fault(&n, &[3]), KeyFault::PublicKeySize { bits });
    }
    // An untrusted exponent must not stall a batch.
    let long = [&[1], &[0; 7][..], &[1]].concat();
    let too_long = KeyFault::LongPublicExponent {
        bits: 65,
        max_bits: 64,
    };
    assert_eq!(fault(&n, &long), too_long);
    let key = PublicKey::from_numbers_with_exponent_bits(&n, &long, 65).unwrap();
    assert_eq!(key.e(), long);
    assert_eq!(
        PublicKey::from_spki_der(key.as_der()),
        Err(Error::PublicKey(too_long))
    );
    assert!(PublicKey::from_numbers(&n, &[0xff; 8]).is_ok());

    let no_jwk = Err(Error::PublicKey(KeyFault::Base64));
    for bad in ["AQAB=", "AQ+B", "AQ B", "A"] {
        assert_eq!(PublicKey::from_jwk("AQAB", bad), no_jwk);
    }
    let other_key = include_str!("../keys/ed25519.pem");
    let label = KeyFault::Label {
        expected: "PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE",
    };
    assert_eq!(PublicKey::from_pem(other_key), Err(Error::PublicKey(label)));
    assert_eq!(
        PublicKey::from_pem("nothing"),
        Err(Error::PublicKey(KeyFault::Pem))
    );
}

/// A modulus of 16,384 bits with many factors, with which num-bigint signs.
#[test]
fn the_longest_modulus() {
    let pems = [
        include_str!("../keys/rsa8192.pem"),
        include_str!("../keys/rsa4096.pem"),
        include_str!("../keys/rsa3072.pem"),
        include_str!("../keys/rsa1024.pem"),
    ];
    let keys = pems.map(|pem| rsa::PrivateKey::from_pkcs1_pem(pem).unwrap());
    let big = |octets: &[u8]| BigUint::from_bytes_be(octets);
    let n: BigUint = keys.iter().map(|key| big(&key.n_bytes())).product();
    let primes = keys.iter().flat_map(|key| key.primes());
    let orders = primes.map(|prime| big(&prime.as_ref().to_be_bytes()) - 1u8);
    let order: BigUint = orders.product();
    let d = BigUint::from(65_537u32).modinv(&order).unwrap();

    let key = PublicKey::from_numbers(&n.to_bytes_be(), &[1, 0, 1]).unwrap();
    assert!(key.bits() > 16_380 && key.size() == 2048, "{}", key.bits());
    let info = data_encoding::HEXLOWER
        .decode(b"3031300d060960864801650304020105000420")
        .unwrap();
    let mut em = vec![0xff; 2048 - 1 - info.len() - 32];
    em[..2].copy_from_slice(&[0, 1]);
    em.push(0);
    em.extend_from_slice(&info);
    em.extend_from_slice(&Sha256::digest(b"m"));
    let signature = big(&em).modpow(&d, &n).to_bytes_be();
    let signature = [vec![0; 2048 - signature.len()], signature].concat();

    let verifier = BatchVerifier::new(Serial, Pkcs1v15::<Sha256>::new());
    let signed = [
        ("m", &signature[..]),
        ("n", &signature),
        ("m", &key.n()),
        ("m", &signature[1..]),
    ];
    let verdicts = verifier.verify(&key, &signed).unwrap();
    assert_eq!(verdicts.get(0), Ok(()));
    assert_eq!(verdicts.get(1), Err(Error::Verification { index: 1 }));
    let out_of_range = |index, len| Error::BlockOutOfRange {
        index,
        len,
        expected: 2048,
    };
    assert_eq!(verdicts.get(2), Err(out_of_range(2, 2048)));
    assert_eq!(verdicts.get(3), Err(out_of_range(3, 2047)));
    let cpu = BatchVerifier::new(Cpu::new().unwrap(), Pkcs1v15::<Sha256>::new());
    let same = cpu.verify(&key, &signed).unwrap();
    assert!(same.iter().eq(verdicts.iter()));
}

/// Keys with the longest private modulus verify their own signatures.
#[test]
fn public_half_of_a_handle() {
    let key = KeyHandle::from_pem(include_str!("../keys/rsa8192.pem")).unwrap();
    let scheme = Pkcs1v15::<Sha256>::new();
    let signatures = BatchSigner::new(Serial, scheme)
        .sign(&mut keys::rng(), &key, &["m"])
        .unwrap();
    let verifier = BatchVerifier::new(Serial, scheme);
    let signed = [("m", signatures.get(0).unwrap())];
    verifier
        .verify(&key.public_key(), &signed)
        .unwrap()
        .all_valid()
        .unwrap();
}
