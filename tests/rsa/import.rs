//! Keys from PKCS#1, PKCS#8 and numbers, made by OpenSSL: what they sign is what the `rsa` crate signs, and what
//! does not belong together is refused by name.

use batch_modexp::Error;
use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::hazmat::rsasp1;
use batch_modexp::rsa::{
    AnyScheme, BatchSigner, Hash, KeyFault, KeyHandle, Pkcs1v15, Pss, Restriction, RsaComponents,
};
use chacha20::ChaCha20Rng;
use num_bigint::BigUint;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey};
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::signature::{SignatureEncoding, Signer, Verifier};
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use rsa::{RsaPrivateKey, RsaPublicKey, pkcs1v15, pss};

use super::keys;

macro_rules! pem {
    ($name:literal) => {
        include_str!(concat!("../keys/", $name, ".pem"))
    };
}

const PASSPHRASE: &str = "correct horse";

/// Signs with `handle` and compares with the `rsa` crate and `key`.
fn signs_like(handle: &KeyHandle, key: &RsaPrivateKey) {
    let public = RsaPublicKey::from_public_key_der(&handle.public_key_der()).unwrap();
    assert_eq!(public, key.to_public_key());
    assert_eq!(
        RsaPublicKey::from_public_key_pem(&handle.public_key_pem()).unwrap(),
        public
    );
    assert_eq!(
        BigUint::from_bytes_be(&handle.n()),
        BigUint::from_bytes_be(&key.n().to_be_bytes())
    );
    assert_eq!(handle.n().len(), handle.size());
    assert_eq!(*handle.e(), *key.e().to_be_bytes_trimmed_vartime());
    assert_eq!(handle.bits(), key.n().bits_vartime());

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
        signs_like(&handle, &RsaPrivateKey::from_pkcs1_pem(pem).unwrap());
    }
}

#[test]
fn pkcs8() {
    let pem = pem!("rsa2048-pkcs8");
    let key = RsaPrivateKey::from_pkcs8_pem(pem).unwrap();
    signs_like(&KeyHandle::from_pkcs8_pem(pem).unwrap(), &key);
    // With something before it, as some tools write.
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

/// An e of 192 bits, which the `rsa` crate does not take.
#[test]
fn a_large_public_exponent() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("rsa1024-large-e")).unwrap();
    assert_eq!((handle.e().len(), handle.e()[0]), (24, 0x80));
    let (n, e) = (handle.n(), handle.e());
    let [n, e] = [n, e].map(|octets| BigUint::from_bytes_be(&octets));
    let block = vec![7; handle.size()];
    for mut rng in [None, Some(keys::rng())] {
        let results = rsasp1(&Serial, rng.as_mut(), &[(&handle, &block)]).unwrap();
        let power = BigUint::from_bytes_be(results[0].as_ref().unwrap()).modpow(&e, &n);
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
    let power = BigUint::from_bytes_be(results[0].as_ref().unwrap()).modpow(&e, &n);
    assert_eq!(power, BigUint::from_bytes_be(&block));
}

#[test]
fn encrypted_pkcs8() {
    let key = keys::rsa1024();
    for pem in [pem!("encrypted-pbkdf2"), pem!("encrypted-scrypt")] {
        let handle = KeyHandle::from_pkcs8_encrypted_pem(pem, PASSPHRASE).unwrap();
        signs_like(&handle, &key);
        let error = KeyHandle::from_pkcs8_encrypted_pem(pem, "wrong").unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::Decryption));
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

/// The numbers of a key, to be changed.
#[derive(Clone)]
struct Numbers {
    n: BigUint,
    e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
    dp: BigUint,
    dq: BigUint,
    qinv: BigUint,
}

impl Numbers {
    fn new(p: BigUint, q: BigUint, e: u32) -> Self {
        let (p_less_1, q_less_1) = (&p - 1u8, &q - 1u8);
        let e = BigUint::from(e);
        let d = e.modinv(&(&p_less_1 * &q_less_1)).unwrap();
        Self {
            n: &p * &q,
            dp: &d % p_less_1,
            dq: &d % q_less_1,
            qinv: q.modinv(&p).unwrap(),
            e,
            d,
            p,
            q,
        }
    }

    fn of(key: &RsaPrivateKey) -> Self {
        let [p, q] =
            [0, 1].map(|i| BigUint::from_bytes_be(&key.primes()[i].as_ref().to_be_bytes()));
        Self::new(p, q, 65537)
    }

    fn import(&self) -> Result<KeyHandle, Error> {
        self.import_with(|components, octets| {
            components
                .primes(&octets[3], &octets[4])
                .dp(&octets[5])
                .dq(&octets[6])
                .qinv(&octets[7])
        })
    }

    fn import_with(
        &self,
        add: impl for<'a> Fn(RsaComponents<'a>, &'a [Vec<u8>; 8]) -> RsaComponents<'a>,
    ) -> Result<KeyHandle, Error> {
        let numbers = [
            &self.n, &self.e, &self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qinv,
        ];
        let octets = numbers.map(BigUint::to_bytes_be);
        let components = RsaComponents::new(&octets[0], &octets[1], &octets[2]);
        KeyHandle::from_components(&add(components, &octets))
    }

    /// Raw private operations with this key are those of num-bigint.
    fn check(&self, handle: &KeyHandle) {
        let blocks = [
            BigUint::from(2u8),
            &self.n - 1u8,
            self.p.clone(),
            &self.n >> 1,
        ];
        let padded = |number: &BigUint| {
            let octets = number.to_bytes_be();
            [vec![0; handle.size() - octets.len()], octets].concat()
        };
        let batch: Vec<_> = blocks.iter().map(|block| (handle, padded(block))).collect();
        for mut rng in [None, Some(keys::rng())] {
            let results = rsasp1(&Auto::with_gpus().unwrap(), rng.as_mut(), &batch).unwrap();
            for (block, result) in blocks.iter().zip(results) {
                assert_eq!(*result.unwrap(), padded(&block.modpow(&self.d, &self.n)));
            }
        }
    }
}

#[test]
fn components_with_and_without_primes_and_crt_values() {
    let numbers = Numbers::of(&keys::rsa1024());
    numbers.check(&numbers.import().unwrap());
    let plain = numbers.import_with(|components, _| components).unwrap();
    assert!(!plain.has_crt());
    numbers.check(&plain);
    for given in 0..8 {
        let handle = numbers.import_with(|components, octets| {
            let mut components = components.primes(&octets[3], &octets[4]);
            if given & 1 != 0 {
                components = components.dp(&octets[5]);
            }
            if given & 2 != 0 {
                components = components.dq(&octets[6]);
            }
            if given & 4 != 0 {
                components = components.qinv(&octets[7]);
            }
            components
        });
        let handle = handle.unwrap();
        assert!(handle.has_crt());
        numbers.check(&handle);
    }
}

#[test]
fn leading_zeros_change_nothing() {
    let numbers = Numbers::of(&keys::rsa1024());
    let padded = |number: &BigUint| [vec![0; 200], number.to_bytes_be()].concat();
    let [n, e, d] = [&numbers.n, &numbers.e, &numbers.d].map(padded);
    let [p, q, dp] = [&numbers.p, &numbers.q, &numbers.dp].map(padded);
    let components = RsaComponents::new(&n, &e, &d).primes(&p, &q).dp(&dp);
    let handle = KeyHandle::from_components(&components).unwrap();
    assert_eq!(handle.e(), [1, 0, 1]);
    numbers.check(&handle);
}

/// Primes of 400 and 700 bits, either one first.
#[test]
fn primes_of_different_lengths() {
    let primes: Vec<BigUint> = include_str!("../keys/unequal-primes.txt")
        .lines()
        .map(|line| BigUint::parse_bytes(line.as_bytes(), 16).unwrap())
        .collect();
    for (p, q) in [(0, 1), (1, 0)] {
        let numbers = Numbers::new(primes[p].clone(), primes[q].clone(), 65537);
        let handle = numbers.import().unwrap();
        assert!(handle.has_crt());
        numbers.check(&handle);
    }
}

#[test]
fn the_smaller_prime_may_come_first() {
    let Numbers { p, q, .. } = Numbers::of(&keys::rsa1024());
    let swapped = Numbers::new(q, p, 65537);
    swapped.check(&swapped.import().unwrap());
}

/// A d modulo the least common multiple, or another one of the same class, is as good.
#[test]
fn any_private_exponent_that_fits_is_taken() {
    let mut numbers = Numbers::of(&keys::rsa1024());
    let phi = (&numbers.p - 1u8) * (&numbers.q - 1u8);
    numbers.d = &numbers.d % (phi >> 1);
    numbers.check(&numbers.import().unwrap());
}

#[test]
fn every_relation_has_its_error() {
    let sound = Numbers::of(&keys::rsa1024());
    let one = || BigUint::from(1u8);
    type Change = fn(&mut Numbers);
    let changes: &[(KeyFault, Change)] = &[
        (KeyFault::EvenModulus, |k| k.n += 1u8),
        (KeyFault::PublicExponent, |k| k.e = 65536u32.into()),
        (KeyFault::PublicExponent, |k| k.e = 1u8.into()),
        (KeyFault::PublicExponent, |k| k.e = 0u8.into()),
        (KeyFault::PublicExponent, |k| k.e = k.n.clone()),
        (KeyFault::PublicExponent, |k| k.e = (&k.n << 512) + 1u8),
        (KeyFault::PrivateExponent, |k| k.d = 0u8.into()),
        (KeyFault::PrivateExponent, |k| k.d = k.n.clone()),
        (KeyFault::PrivateExponent, |k| k.d = &k.n << 64),
        (KeyFault::Exponents, |k| k.d += 1u8),
        (KeyFault::Exponents, |k| k.e += 2u8),
        (KeyFault::Factor, |k| k.p += 1u8),
        (KeyFault::Factor, |k| k.q = 0u8.into()),
        (KeyFault::Factor, |k| {
            k.p = 1u8.into();
            k.q = k.n.clone();
        }),
        (KeyFault::EqualFactors, |k| k.q = k.p.clone()),
        (KeyFault::EqualFactors, |k| {
            k.q = k.p.clone();
            k.n = &k.p * &k.p;
            k.d = 3u8.into();
        }),
        (KeyFault::Product, |k| k.p += 2u8),
        (KeyFault::Product, |k| k.q += 2u8),
        (KeyFault::Product, |k| k.n += 2u8),
        (KeyFault::Product, |k| k.p = &k.p << 1024),
        (KeyFault::Dp, |k| k.dp += 1u8),
        (KeyFault::Dp, |k| k.dp += &k.p - 1u8),
        (KeyFault::Dp, |k| k.dp = &k.dp << 1024),
        (KeyFault::Dq, |k| k.dq += 1u8),
        (KeyFault::Dq, |k| k.dq += &k.q - 1u8),
        (KeyFault::Qinv, |k| k.qinv += 1u8),
        (KeyFault::Qinv, |k| k.qinv += &k.p),
        (KeyFault::Qinv, |k| k.qinv = 0u8.into()),
    ];
    for (position, (expected, change)) in changes.iter().enumerate() {
        let mut numbers = sound.clone();
        change(&mut numbers);
        let error = numbers.import().unwrap_err();
        assert_eq!(error, Error::Key(*expected), "change {position}");
    }
    // Without primes, too.
    let mut numbers = sound.clone();
    numbers.d += one();
    let error = numbers.import_with(|components, _| components).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Exponents));
    let mut numbers = sound;
    numbers.n += 2u8;
    let error = numbers.import_with(|components, _| components).unwrap_err();
    assert_eq!(error, Error::Key(KeyFault::Exponents));
}

#[test]
fn keys_for_pss_alone() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss")).unwrap();
    assert_eq!(handle.restriction(), Restriction::Pss);
    let mut rng = keys::rng();
    let signer = BatchSigner::new(Serial, Pss::<Sha384>::with_salt_len(0));
    assert!(signer.sign(&mut rng, &handle, &["m"]).unwrap()[0].is_ok());
    let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    let error = Error::KeyRestricted {
        index: 0,
        restriction: Restriction::Pss,
    };
    let signatures = signer.sign(&mut rng, &handle, &["m"]).unwrap();
    assert_eq!(signatures[0].as_ref().unwrap_err(), &error);
}

#[test]
fn keys_for_pss_with_given_parameters() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss-sha256")).unwrap();
    let restriction = Restriction::PssWith {
        hash: Hash::Sha256,
        min_salt_len: 40,
    };
    assert_eq!(handle.restriction(), restriction);
    let free = KeyHandle::from_pkcs1_pem(pem!("rsa1024")).unwrap();
    let (sha256, sha512) = (Hash::Sha256, Hash::Sha512);
    let schemes = [
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 40,
            },
            true,
        ),
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 41,
            },
            true,
        ),
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 39,
            },
            false,
        ),
        (
            AnyScheme::Pss {
                hash: sha512,
                salt_len: 48,
            },
            false,
        ),
        (AnyScheme::Pkcs1v15 { hash: sha256 }, false),
    ];
    let signer = BatchSigner::new(Serial, schemes[0].0);
    let batch: Vec<_> = schemes
        .iter()
        .flat_map(|(scheme, _)| [(&handle, *scheme, "m"), (&free, *scheme, "m")])
        .collect();
    let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
    for (index, signature) in signatures.iter().enumerate() {
        if index % 2 == 1 || schemes[index / 2].1 {
            assert!(signature.is_ok());
        } else {
            let expected = Error::KeyRestricted { index, restriction };
            assert_eq!(signature.as_ref().unwrap_err(), &expected);
            let text = expected.to_string();
            assert!(
                text.contains("SHA-256") && text.contains("40 bytes"),
                "{text}"
            );
        }
    }
    // The same by type.
    let mut rng = keys::rng();
    let permits = |signature: Result<Vec<Result<_, _>>, Error>| signature.unwrap()[0].is_ok();
    let short = BatchSigner::new(Serial, Pss::<Sha256>::new());
    assert!(!permits(short.sign(&mut rng, &handle, &["m"])));
    let long = BatchSigner::new(Serial, Pss::<Sha256>::with_salt_len(40));
    assert!(permits(long.sign(&mut rng, &handle, &["m"])));
    let other = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(40));
    assert!(!permits(other.sign(&mut rng, &handle, &["m"])));
}

#[test]
fn keys_for_pss_with_parameters_that_nobody_here_signs_with() {
    for pem in [pem!("pss-sha1"), pem!("pss-mixed")] {
        let error = KeyHandle::from_pkcs8_pem(pem).unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::PssParameters));
    }
}

/// Both schemes, all hash functions and two keys in one batch; each signature as its scheme makes it alone.
#[test]
fn mixed_schemes_in_one_batch() {
    let (small, large) = (keys::rsa1024(), keys::rsa2048());
    let handles = [&small, &large].map(|key| KeyHandle::try_from(key).unwrap());
    let hashes = [Hash::Sha256, Hash::Sha384, Hash::Sha512];
    let mut batch = Vec::new();
    for (message, hash) in [b"a", b"b", b"c"].into_iter().zip(hashes) {
        batch.push((&handles[0], AnyScheme::Pkcs1v15 { hash }, message));
        batch.push((&handles[1], AnyScheme::Pss { hash, salt_len: 20 }, message));
    }
    let signer = BatchSigner::new(Auto::with_gpus().unwrap(), batch[0].1);
    let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
    macro_rules! check {
        ($position:literal, $hash:ty) => {
            let pkcs1v15 = pkcs1v15::VerifyingKey::<$hash>::new(small.to_public_key());
            let pss = pss::VerifyingKey::<$hash>::new_with_salt_len(large.to_public_key(), 20);
            let signature = |i: usize| signatures[2 * $position + i].as_ref().unwrap();
            let message = batch[2 * $position].2;
            pkcs1v15.verify(message, &signature(0).into()).unwrap();
            pss.verify(message, &signature(1).into()).unwrap();
        };
    }
    check!(0, Sha256);
    check!(1, Sha384);
    check!(2, Sha512);

    let digests: Vec<_> = batch
        .iter()
        .map(|(key, _, _)| (*key, AnyScheme::Pkcs1v15 { hash: Hash::Sha256 }, [7; 32]))
        .collect();
    let mixed = signer.sign_prehash_mixed(&mut keys::rng(), &digests);
    let by_type = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    let digests: Vec<_> = digests
        .iter()
        .map(|(key, _, digest)| (*key, digest))
        .collect();
    assert_eq!(
        mixed.unwrap(),
        by_type
            .sign_prehash_each(&mut keys::rng(), &digests)
            .unwrap()
    );
}

/// Backends behind pointers of every kind.
#[test]
fn backends_that_are_shared_or_chosen_at_run_time() {
    use batch_modexp::rsa::RsaPrivateOp;
    use std::sync::Arc;
    fn sign(backend: impl RsaPrivateOp) -> Vec<u8> {
        let handle = KeyHandle::from_pkcs1_pem(pem!("rsa1024")).unwrap();
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
        let mut signatures = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap();
        signatures.remove(0).unwrap().into()
    }
    let expected = sign(Serial);
    assert_eq!(sign(Arc::new(Auto::with_gpus().unwrap())), expected);
    assert_eq!(sign(Box::new(Serial)), expected);
    let chosen: Box<dyn RsaPrivateOp> = Box::new(Serial);
    assert_eq!(sign(&chosen), expected);
    assert_eq!(sign(chosen), expected);
    let shared: Arc<dyn RsaPrivateOp> = Arc::new(Serial);
    assert_eq!(sign(shared), expected);
}
