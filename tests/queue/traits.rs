//! Code written against the traits of `signature`, with a queue behind them.

use batch_modexp::backend::Cpu;
use batch_modexp::queue::{BatchQueue, QueueError, QueueKey, Shutdown};
use batch_modexp::rsa::{KeyHandle, Pkcs1v15, Pss, Signature};
use rsa::pkcs8::{DecodePublicKey, EncodePublicKey};
use rsa::sha2::{Digest, Sha256};
use rsa::signature::hazmat::{AsyncPrehashSigner, PrehashSigner};
use rsa::signature::{AsyncSigner, Error, Keypair, SignatureEncoding, Signer, Verifier};
use rsa::{PublicKey, pkcs1v15, pss};

use super::keys;
use super::signatures::block_on;

/// Signs with any signer, and verifies with any verifier.
fn sign_and_verify<S, K, V>(key: &K, verifier: &V)
where
    S: SignatureEncoding,
    K: Signer<S> + PrehashSigner<S> + Keypair<VerifyingKey: EncodePublicKey>,
    V: Verifier<S>,
{
    verifier.verify(b"m", &key.sign(b"m")).unwrap();
    let signature = key.sign_prehash(&Sha256::digest(b"m")).unwrap();
    verifier.verify(b"m", &signature).unwrap();
    assert!(verifier.verify(b"n", &signature).is_err());
    let public = key.verifying_key().to_public_key_der().unwrap();
    PublicKey::from_public_key_der(public.as_bytes()).unwrap();
}

async fn sign_and_verify_async<S, K, V>(key: &K, verifier: &V)
where
    S: SignatureEncoding,
    K: AsyncSigner<S> + AsyncPrehashSigner<S> + Keypair,
    V: Verifier<S>,
{
    let signature = key.sign_async(b"m").await.unwrap();
    verifier.verify(b"m", &signature).unwrap();
    let digest = Sha256::digest(b"m");
    let signature = key.sign_prehash_async(&digest).await.unwrap();
    verifier.verify(b"m", &signature).unwrap();
}

#[test]
fn a_queue_takes_the_place_of_a_signing_key() {
    let rsa = keys::rsa1024();
    let handle = KeyHandle::new(&rsa).unwrap();
    let queue = BatchQueue::new(Cpu::new().unwrap(), getrandom::SysRng).unwrap();

    let theirs = pkcs1v15::SigningKey::<Sha256>::new(rsa.clone());
    let verifier = theirs.verifying_key();
    let ours = QueueKey::new(&queue, &handle, Pkcs1v15::<Sha256>::new());
    assert_eq!(ours.sign(b"m").as_ref(), &*theirs.sign(b"m").to_bytes());
    let ours = ours.with_signatures::<pkcs1v15::Signature>();
    sign_and_verify(&ours, &verifier);
    block_on(sign_and_verify_async(&ours.clone().into_async(), &verifier));

    let verifier = pss::VerifyingKey::<Sha256>::new(rsa.to_public_key());
    let ours = QueueKey::new(&queue, &handle, Pss::<Sha256>::new());
    let ours = ours.with_signatures::<pss::Signature>();
    sign_and_verify(&ours, &verifier);
    block_on(sign_and_verify_async(&ours.into_async(), &verifier));
}

#[test]
fn the_public_key_is_that_of_the_private_one() {
    let rsa = keys::rsa2048();
    let public = KeyHandle::new(&rsa).unwrap().public_key();
    let theirs = rsa.to_public_key().to_public_key_der().unwrap();
    assert_eq!(public.as_der(), theirs.as_bytes());
    assert_eq!(public.to_public_key_der().unwrap(), theirs);
}

#[test]
fn errors_have_their_source() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let queue = BatchQueue::new(Cpu::new().unwrap(), getrandom::SysRng).unwrap();
    let key = QueueKey::new(&queue, &handle, Pkcs1v15::<Sha256>::new());
    queue.shutdown(Shutdown::Drain);
    let is_shut_down = |error: Error| {
        let source = core::error::Error::source(&error).unwrap();
        source.downcast_ref() == Some(&QueueError::ShutDown)
    };
    assert!(is_shut_down(key.try_sign(b"m").unwrap_err()));
    let key = key.into_async();
    assert!(is_shut_down(block_on(key.sign_async(b"m")).unwrap_err()));
}

#[test]
fn signatures_are_octets() {
    for (len, is_ok) in [(127, false), (128, true), (2048, true), (2049, false)] {
        let octets = vec![7; len];
        let signature = Signature::try_from(&octets[..]);
        assert_eq!(signature.is_ok(), is_ok, "{len}");
        if let Ok(signature) = signature {
            assert_eq!(*SignatureEncoding::to_bytes(&signature), octets);
            assert_eq!(signature.encoded_len(), len);
        }
    }
}
