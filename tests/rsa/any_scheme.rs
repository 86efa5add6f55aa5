//! Schemes chosen at run time, with every hash function, compared with OpenSSL and the `rsa` crate.

use std::path::Path;
use std::process::Command;

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use batch_modexp::rsa::sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use batch_modexp::rsa::{
    AnyScheme, BatchSigner, BatchVerifier, Hash, KeyHandle, Pkcs1v15, Pss, PublicKey, Restriction,
};
use rsa::signature::{RandomizedSigner, SignatureEncoding, Signer, Verifier};
use rsa::{pkcs1v15, pss};

use super::{keys, need};

/// Each hash function with its type and OpenSSL's name.
macro_rules! each_hash {
    ($macro:ident) => {
        $macro!(Sha224, "sha224");
        $macro!(Sha256, "sha256");
        $macro!(Sha384, "sha384");
        $macro!(Sha512, "sha512");
        $macro!(Sha512_224, "sha512-224");
        $macro!(Sha512_256, "sha512-256");
        $macro!(Sha3_224, "sha3-224");
        $macro!(Sha3_256, "sha3-256");
        $macro!(Sha3_384, "sha3-384");
        $macro!(Sha3_512, "sha3-512");
    };
}

mod encryption;

fn all() -> Vec<(Hash, &'static str)> {
    let mut all = Vec::new();
    macro_rules! push {
        ($hash:ident, $name:literal) => {
            all.push((Hash::$hash, $name));
        };
    }
    each_hash!(push);
    all
}

fn openssl(args: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("openssl").args(args).output().unwrap();
    output.status.success().then_some(output.stdout)
}

fn has_openssl() -> bool {
    let version = Command::new("openssl").arg("version").output();
    need::available("openssl", version).is_some()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All hash functions and both schemes in one batch.
#[test]
fn openssl_verifies_every_hash() {
    if !has_openssl() {
        return;
    }
    let key = KeyHandle::from_pem(include_str!("../keys/rsa2048.pem")).unwrap();
    let all = all();
    let schemes = all.iter().flat_map(|&(hash, name)| {
        let pss = |salt_len| (AnyScheme::Pss { hash, salt_len }, name);
        [
            (AnyScheme::Pkcs1v15 { hash }, name),
            pss(hash.digest_len()),
            pss(3),
        ]
    });
    let schemes: Vec<_> = schemes.collect();
    let batch: Vec<_> = schemes
        .iter()
        .map(|(scheme, _)| (&key, *scheme, "m"))
        .collect();
    let signer = BatchSigner::new(Auto::with_gpus().unwrap(), schemes[0].0);
    let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [public, message, file] =
        ["public", "message", "file"].map(|name| folder.path().join(name));
    std::fs::write(&public, key.public_key_pem()).unwrap();
    std::fs::write(&message, "m").unwrap();
    let verifies = |scheme, name: &str| {
        let options: &[String] = &match scheme {
            AnyScheme::Pkcs1v15 { .. } => vec![],
            AnyScheme::Pss { salt_len, .. } => [
                "rsa_padding_mode:pss",
                &format!("rsa_pss_saltlen:{salt_len}"),
            ]
            .map(String::from)
            .into(),
        };
        let (digest, options) = (
            format!("-{name}"),
            options.iter().flat_map(|o| ["-sigopt", o]),
        );
        let fixed = [
            "dgst",
            &digest,
            "-verify",
            text(&public),
            "-signature",
            text(&file),
        ];
        let args: Vec<_> = fixed
            .into_iter()
            .chain(options)
            .chain([text(&message)])
            .collect();
        openssl(&args).is_some()
    };
    for ((scheme, name), signature) in schemes.iter().zip(&signatures) {
        std::fs::write(&file, signature.unwrap()).unwrap();
        assert!(verifies(*scheme, name), "{scheme:?}");
        let other = if *name == "sha256" {
            "sha3-256"
        } else {
            "sha256"
        };
        assert!(!verifies(*scheme, other), "{scheme:?}");
    }
}

/// Verifies signatures of the `rsa` crate. That crate verifies ours by a type and by its run-time
/// value.
#[test]
fn signatures_go_to_the_rsa_crate_and_come_from_there() {
    let reference = keys::rsa1024();
    let key = KeyHandle::new(&reference).unwrap();
    let public = key.public_key();
    let mut rng = keys::rng();
    macro_rules! check {
        ($hash:ident, $name:literal) => {
            let (hash, salt_len) = (Hash::$hash, 11);
            assert_eq!(
                hash.to_string().to_lowercase().replace(['-', '/'], ""),
                $name.replace('-', "")
            );
            let pkcs1v15 = AnyScheme::from(Pkcs1v15::<$hash>::new());
            assert_eq!(pkcs1v15, AnyScheme::Pkcs1v15 { hash });
            let pss = AnyScheme::from(Pss::<$hash>::with_salt_len(salt_len));
            assert_eq!(pss, AnyScheme::Pss { hash, salt_len });
            let full = hash.digest_len();
            assert_eq!(
                AnyScheme::from(Pss::<$hash>::new()),
                AnyScheme::Pss {
                    hash,
                    salt_len: full
                }
            );

            let theirs = pkcs1v15::SigningKey::<$hash>::new(reference.clone())
                .sign(b"m")
                .to_vec();
            let their_pss =
                pss::SigningKey::<$hash>::new_with_salt_len(reference.clone(), salt_len)
                    .sign_with_rng(&mut rng, b"m")
                    .to_vec();
            let verifier = BatchVerifier::new(Serial, pss);
            let signed = [
                (&public, pkcs1v15, "m", &theirs),
                (&public, pss, "m", &their_pss),
                (&public, pkcs1v15, "n", &theirs),
                (&public, pss, "n", &their_pss),
            ];
            let verdicts = verifier.verify_mixed(&signed).unwrap();
            assert_eq!(
                [0, 1, 2, 3].map(|i| verdicts.is_valid(i)),
                [true, true, false, false]
            );

            let batch = [(&key, pkcs1v15, "m"), (&key, pss, "m")];
            let ours = BatchSigner::new(Serial, pss)
                .sign_mixed(&mut rng, &batch)
                .unwrap();
            assert_eq!(ours.get(0).unwrap(), theirs);
            let verifying =
                pss::VerifyingKey::<$hash>::new_with_salt_len(reference.to_public_key(), salt_len);
            let signature = pss::Signature::try_from(ours.get(1).unwrap()).unwrap();
            verifying.verify(b"m", &signature).unwrap();
            let by_type = BatchSigner::new(Serial, Pkcs1v15::<$hash>::new());
            let by_type = by_type.sign(&mut rng, &key, &["m"]).unwrap();
            assert_eq!(by_type.get(0), ours.get(0));
        };
    }
    each_hash!(check);
}

/// Mask generation with another hash function.
#[test]
fn openssl_verifies_pss_with_another_mask_hash() {
    if !has_openssl() {
        return;
    }
    let key = KeyHandle::from_pem(include_str!("../keys/rsa2048.pem")).unwrap();
    let scheme = Pss::<Sha256, sha1::Sha1>::with_mgf_hash(20);
    let signatures = BatchSigner::new(Serial, scheme).sign(&mut keys::rng(), &key, &["m"]);
    let folder = tempfile::tempdir().unwrap();
    let [public, message, file] =
        ["public", "message", "file"].map(|name| folder.path().join(name));
    std::fs::write(&public, key.public_key_pem()).unwrap();
    std::fs::write(&message, "m").unwrap();
    std::fs::write(&file, signatures.unwrap().get(0).unwrap()).unwrap();
    for (mask, salt_len, is_valid) in [
        ("sha1", 20, true),
        ("sha256", 20, false),
        ("sha1", 32, false),
    ] {
        let (mask, salt_len) = (
            format!("rsa_mgf1_md:{mask}"),
            format!("rsa_pss_saltlen:{salt_len}"),
        );
        let options = ["rsa_padding_mode:pss", &mask, &salt_len];
        let options = options.into_iter().flat_map(|option| ["-sigopt", option]);
        let fixed = [
            "dgst",
            "-sha256",
            "-verify",
            text(&public),
            "-signature",
            text(&file),
        ];
        let args: Vec<_> = fixed
            .into_iter()
            .chain(options)
            .chain([text(&message)])
            .collect();
        assert_eq!(openssl(&args).is_some(), is_valid);
    }
}

/// A key of OpenSSL for SHA-224, changed to other hash functions: their identifiers differ only in
/// the last octet (NIST's registry). OpenSSL 3.0 makes no such keys for SHA-3.
#[test]
fn keys_that_are_restricted_to_any_hash() {
    if !has_openssl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [private, public] = ["private", "public"].map(|name| folder.path().join(name));
    let options = [
        "rsa_keygen_bits:1024",
        "rsa_pss_keygen_md:sha224",
        "rsa_pss_keygen_mgf1_md:sha224",
        "rsa_pss_keygen_saltlen:24",
    ];
    let options = options.into_iter().flat_map(|option| ["-pkeyopt", option]);
    let fixed = [
        "genpkey",
        "-algorithm",
        "RSA-PSS",
        "-outform",
        "DER",
        "-out",
        text(&private),
    ];
    openssl(&fixed.into_iter().chain(options).collect::<Vec<_>>()).expect("a key");
    let input = ["pkey", "-inform", "DER", "-in", text(&private)];
    let output = ["-pubout", "-outform", "DER", "-out", text(&public)];
    openssl(&[input, output].concat()).expect("a public key");
    let numbers = [4, 1, 2, 3, 5, 6, 7, 8, 9, 10];
    for ((hash, _), number) in all().into_iter().zip(numbers) {
        let [private, public] = [&private, &public].map(|path| {
            let mut der = std::fs::read(path).unwrap();
            let sha224 = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 4];
            let places = der
                .windows(9)
                .enumerate()
                .filter(|(_, octets)| *octets == sha224);
            let places: Vec<_> = places.map(|(place, _)| place + 8).collect();
            assert_eq!(places.len(), 2);
            places.into_iter().for_each(|place| der[place] = number);
            der
        });
        let key = KeyHandle::from_pkcs8_der(&private).unwrap();
        let restriction = Restriction::PssWith {
            hash,
            min_salt_len: 24,
        };
        assert_eq!(key.restriction(), restriction);
        assert_eq!(key.public_key_der(), public);
        assert_eq!(
            PublicKey::from_spki_der(&public).unwrap().restriction(),
            restriction
        );
        let scheme = |hash| AnyScheme::Pss { hash, salt_len: 24 };
        let batch: Vec<_> = all()
            .iter()
            .map(|&(other, _)| (&key, scheme(other), "m"))
            .collect();
        let signer = BatchSigner::new(Serial, scheme(hash));
        let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
        for ((_, other, _), signature) in batch.iter().zip(&signatures) {
            assert_eq!(signature.is_ok(), *other == scheme(hash));
        }
    }
}
