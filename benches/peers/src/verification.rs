//! RSA verification, PKCS#1 v1.5 with SHA-256 and e = 65537, of distinct messages under one key and
//! under many.

use std::hint::black_box;

use aws_lc_rs::signature as aws_lc;
use batch_modexp::backend::Serial;
use batch_modexp::rsa::{BatchSigner, BatchVerifier, KeyHandle, Pkcs1v15, PublicKey};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use openssl::md::Md;
use openssl::pkey::{PKey, Public};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::{Padding, Rsa};
use ring::signature as ring_signature;
use rsa::PrivateKey;
use rsa::pkcs1::EncodeRsaPublicKey;
use rsa::pkcs1v15;
use rsa::sha2::{Digest, Sha256};
use rsa::signature::Verifier;

use crate::backends::Backend;
use crate::keys::private_key;
use crate::rounds::{Contender, Plan, compare as measure};

/// A message with its signature and the key that made it.
struct Signed {
    key: usize,
    message: [u8; 32],
    signature: Vec<u8>,
}

/// Whether a signature is valid.
type Verify = dyn FnMut(&Signed) -> bool;

/// Measures verification with `count` keys of `bits` bits, ours in batches of `batch`.
pub(crate) fn compare(
    bits: u32,
    count: usize,
    batch: usize,
    backends: &[(&'static str, Box<dyn Backend>)],
    plan: Plan,
) {
    let keys: Vec<_> = match count {
        1 => vec![private_key(bits)],
        _ => (0..count).map(|_| fresh_key(bits)).collect(),
    };
    let signed = signed(&keys, batch);
    let public: Vec<_> = keys
        .iter()
        .map(|key| PublicKey::try_from(&key.to_public_key()).expect("a key"))
        .collect();
    let mut contenders = Vec::new();
    for (name, backend) in backends {
        let verifier = BatchVerifier::new(backend.rsa(), Pkcs1v15::<Sha256>::new());
        let items: Vec<_> = signed
            .iter()
            .map(|item| (&public[item.key], item.message, &item.signature))
            .collect();
        contenders.push(Contender::new(
            format!("batch-modexp {name}"),
            batch,
            move || {
                let verdicts = verifier.verify_each(black_box(&items)).expect("verdicts");
                verdicts.all_valid().expect("valid signatures");
            },
        ));
    }
    let peers: [(&str, Box<Verify>); 4] = [
        ("rsa", Box::new(rsa_crate(&keys))),
        ("ring", Box::new(ring(&keys))),
        ("aws-lc-rs", Box::new(aws_lc_rs(&keys))),
        ("OpenSSL", Box::new(openssl(&keys))),
    ];
    for (name, mut verify) in peers {
        assert!(signed.iter().all(&mut verify), "{name}");
        let mut items = signed.iter().cycle();
        contenders.push(Contender::new(name, 1, move || {
            if let Some(item) = items.next() {
                assert!(verify(black_box(item)));
            }
        }));
    }
    measure(&mut contenders, &["OpenSSL", "aws-lc-rs", "rsa"], plan);
}

fn fresh_key(bits: u32) -> PrivateKey {
    let rsa = Rsa::generate(bits).expect("a key");
    let der = rsa.private_key_to_der().expect("an encoding");
    rsa::pkcs1::DecodeRsaPrivateKey::from_pkcs1_der(&der).expect("a key for rsa")
}

/// Signatures of distinct messages with all keys in turn.
fn signed(keys: &[PrivateKey], batch: usize) -> Vec<Signed> {
    let handles: Vec<_> = keys
        .iter()
        .map(|key| KeyHandle::new(key).expect("a supported key"))
        .collect();
    let messages: Vec<[u8; 32]> = (0..batch)
        .map(|i| Sha256::digest(i.to_be_bytes()).into())
        .collect();
    let items: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(i, message)| (&handles[i % handles.len()], message))
        .collect();
    let signatures = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new())
        .sign_each(&mut ChaCha20Rng::seed_from_u64(0), &items)
        .expect("signatures");
    messages
        .iter()
        .zip(&signatures)
        .enumerate()
        .map(|(i, (message, signature))| Signed {
            key: i % keys.len(),
            message: *message,
            signature: signature.expect("a signature").to_vec(),
        })
        .collect()
}

fn rsa_crate(keys: &[PrivateKey]) -> impl FnMut(&Signed) -> bool + use<> {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| pkcs1v15::VerifyingKey::<Sha256>::new(key.to_public_key()))
        .collect();
    move |item| {
        let signature = pkcs1v15::Signature::try_from(&item.signature[..]);
        signature.is_ok_and(|signature| keys[item.key].verify(&item.message, &signature).is_ok())
    }
}

fn ring(keys: &[PrivateKey]) -> impl FnMut(&Signed) -> bool + use<> {
    let keys: Vec<_> = keys.iter().map(der).collect();
    move |item| {
        let algorithm = &ring_signature::RSA_PKCS1_2048_8192_SHA256;
        let key = ring_signature::UnparsedPublicKey::new(algorithm, &keys[item.key]);
        key.verify(&item.message, &item.signature).is_ok()
    }
}

/// With keys that are parsed once.
fn aws_lc_rs(keys: &[PrivateKey]) -> impl FnMut(&Signed) -> bool + use<> {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| {
            let algorithm = &aws_lc::RSA_PKCS1_2048_8192_SHA256;
            aws_lc::ParsedPublicKey::new(algorithm, der(key)).expect("a key for aws-lc-rs")
        })
        .collect();
    move |item| {
        keys[item.key]
            .verify_sig(&item.message, &item.signature)
            .is_ok()
    }
}

/// The fastest way through OpenSSL's interface: one context for all signatures of a key.
fn openssl(keys: &[PrivateKey]) -> impl FnMut(&Signed) -> bool + use<> {
    let keys: Vec<PKey<Public>> = keys
        .iter()
        .map(|key| {
            let key = Rsa::public_key_from_der_pkcs1(&der(key)).expect("a key for OpenSSL");
            PKey::from_rsa(key).expect("a key for OpenSSL")
        })
        .collect();
    let mut contexts: Vec<_> = keys
        .iter()
        .map(|key| {
            let mut context = PkeyCtx::new(key).expect("a context");
            context.verify_init().expect("a context for verification");
            context.set_rsa_padding(Padding::PKCS1).expect("a padding");
            context.set_signature_md(Md::sha256()).expect("a hash");
            context
        })
        .collect();
    move |item| {
        let digest = openssl::sha::sha256(&item.message);
        contexts[item.key]
            .verify(&digest, &item.signature)
            .is_ok_and(|valid| valid)
    }
}

/// The key as an `RSAPublicKey` of RFC 8017, appendix A.1.1.
fn der(key: &PrivateKey) -> Vec<u8> {
    key.to_public_key()
        .to_pkcs1_der()
        .expect("an encoding")
        .as_bytes()
        .to_vec()
}
