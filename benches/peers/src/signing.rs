//! RSA signatures, PKCS#1 v1.5 with SHA-256.
//!
//! Every contender hashes the message, signs with the Chinese remainder theorem, and checks the
//! result with the public exponent before it returns it. Blinded are: ours and `rsa` where the name
//! says so, and aws-lc-rs and OpenSSL always. The last two square a cached factor, and draw a new
//! one every 32 signatures. ring does not blind.

use std::hint::black_box;

use aws_lc_rs::signature as aws_lc;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use openssl::md::Md;
use openssl::pkey::{PKey, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::{Padding, Rsa};
use ring::signature as ring_signature;
use rsa::pkcs1::EncodeRsaPrivateKey;
use rsa::sha2::{Digest, Sha256};
use rsa::signature::{SignatureEncoding, Signer, Verifier};
use rsa::traits::SignatureScheme;
use rsa::{Pkcs1v15Sign, PrivateKey, pkcs1v15};

use crate::backends::Backend;
use crate::keys::private_key;
use crate::rounds::{Contender, Plan, compare as measure};

/// Signs one message.
type Sign = dyn FnMut(&[u8]) -> Vec<u8>;

/// Measures signing with a key of `bits` bits, ours in batches of `batch`.
pub(crate) fn compare(
    bits: u32,
    batch: usize,
    backends: &[(&'static str, Box<dyn Backend>)],
    plan: Plan,
) {
    let key = private_key(bits);
    let verifying_key = pkcs1v15::VerifyingKey::<Sha256>::new(key.to_public_key());
    let verify = |message: &[u8], signature: &[u8]| {
        let signature = pkcs1v15::Signature::try_from(signature).expect("a signature");
        verifying_key
            .verify(message, &signature)
            .expect("a valid signature");
    };

    let messages: Vec<[u8; 32]> = (0..batch)
        .map(|i| Sha256::digest(i.to_be_bytes()).into())
        .collect();
    let handle = KeyHandle::new(&key).expect("a supported key");
    let mut contenders = Vec::new();
    for (name, backend) in backends {
        for (kind, blinding) in [("blinded", true), ("unblinded", false)] {
            let signer =
                BatchSigner::new(backend.rsa(), Pkcs1v15::<Sha256>::new()).blinding(blinding);
            let mut rng = ChaCha20Rng::seed_from_u64(0);
            let (handle, messages) = (&handle, &messages);
            let mut sign = move || {
                signer
                    .sign(&mut rng, handle, black_box(messages))
                    .expect("signatures")
            };
            for (message, signature) in messages.iter().zip(sign()) {
                verify(message, &signature.expect("a signature").to_vec());
            }
            let name = format!("batch-modexp {name}, {kind}");
            contenders.push(Contender::new(name, batch, move || {
                assert!(black_box(sign()).iter().all(|signature| signature.is_ok()));
            }));
        }
    }

    let peers: [(&str, Box<Sign>); 5] = [
        ("rsa, blinded", Box::new(rsa_blinded(&key))),
        ("rsa, unblinded", Box::new(rsa_unblinded(&key))),
        ("ring", Box::new(ring(&key))),
        ("aws-lc-rs", Box::new(aws_lc_rs(&key))),
        ("OpenSSL", Box::new(openssl(&key))),
    ];
    for (name, mut sign) in peers {
        verify(b"a message", &sign(b"a message"));
        let mut messages = messages.iter().cycle();
        contenders.push(Contender::new(name, 1, move || {
            if let Some(message) = messages.next() {
                black_box(sign(black_box(message)));
            }
        }));
    }
    measure(
        &mut contenders,
        &["OpenSSL", "aws-lc-rs", "rsa, blinded"],
        plan,
    );
}

fn rsa_blinded(key: &PrivateKey) -> impl FnMut(&[u8]) -> Vec<u8> + use<> {
    let key = pkcs1v15::SigningKey::<Sha256>::new(key.clone());
    move |message| key.sign(message).to_vec()
}

fn rsa_unblinded(key: &PrivateKey) -> impl FnMut(&[u8]) -> Vec<u8> + use<> {
    let key = key.clone();
    move |message| {
        let no_rng = None::<&mut ChaCha20Rng>;
        Pkcs1v15Sign::new::<Sha256>()
            .sign(no_rng, &key, &Sha256::digest(message))
            .expect("a signature")
    }
}

fn ring(key: &PrivateKey) -> impl FnMut(&[u8]) -> Vec<u8> + use<> {
    let key = ring_signature::RsaKeyPair::from_der(&der(key)).expect("a key for ring");
    let rng = ring::rand::SystemRandom::new();
    move |message| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(
            &ring_signature::RSA_PKCS1_SHA256,
            &rng,
            message,
            &mut signature,
        )
        .expect("a signature");
        signature
    }
}

fn aws_lc_rs(key: &PrivateKey) -> impl FnMut(&[u8]) -> Vec<u8> + use<> {
    let key = aws_lc::RsaKeyPair::from_der(&der(key)).expect("a key for aws-lc-rs");
    let rng = aws_lc_rs::rand::SystemRandom::new();
    move |message| {
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(&aws_lc::RSA_PKCS1_SHA256, &rng, message, &mut signature)
            .expect("a signature");
        signature
    }
}

/// The fastest way through OpenSSL's interface: one context for all signatures.
fn openssl(key: &PrivateKey) -> impl FnMut(&[u8]) -> Vec<u8> + use<> {
    let key = Rsa::private_key_from_der(&der(key)).expect("a key for OpenSSL");
    let key: PKey<Private> = PKey::from_rsa(key).expect("a key for OpenSSL");
    let mut context = PkeyCtx::new(&key).expect("a context");
    context.sign_init().expect("a context for signing");
    context.set_rsa_padding(Padding::PKCS1).expect("a padding");
    context.set_signature_md(Md::sha256()).expect("a hash");
    move |message| {
        let mut signature = vec![0; key.size()];
        let digest = openssl::sha::sha256(message);
        context
            .sign(&digest, Some(&mut signature))
            .expect("a signature");
        signature
    }
}

/// The key as an `RSAPrivateKey` of RFC 8017, appendix A.1.2.
fn der(key: &PrivateKey) -> Vec<u8> {
    key.to_pkcs1_der().expect("an encoding").as_bytes().to_vec()
}
