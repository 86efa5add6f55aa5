//! Signatures: equal to those of the `rsa` crate if deterministic, otherwise accepted by it.

use batch_modexp::backend::{Auto, Parallel, Serial};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, Pss, Scheme};
use rsa::PrivateKey;
use rsa::sha2::digest::FixedOutputReset;
use rsa::sha2::digest::const_oid::AssociatedOid;
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::signature::hazmat::PrehashVerifier;
use rsa::signature::{SignatureEncoding, Signer, Verifier};
use rsa::{pkcs1v15, pss};

use super::keys;

/// Messages of different lengths, including an empty one.
fn messages(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| (0..i * 7).map(|j| (i + j) as u8).collect())
        .collect()
}

fn pkcs1v15_equals_rsa<D, B>(backend: &B, key: &PrivateKey, blinding: bool)
where
    D: Digest + AssociatedOid,
    B: RsaBackend,
{
    let handle = KeyHandle::new(key).unwrap();
    let signer = BatchSigner::new(backend, Pkcs1v15::<D>::new()).blinding(blinding);
    let messages = messages(5);
    let signatures = signer.sign(&mut keys::rng(), &handle, &messages).unwrap();
    let one_by_one = pkcs1v15::SigningKey::<D>::new(key.clone());
    assert_eq!(signatures.len(), messages.len());
    for (message, signature) in messages.iter().zip(signatures) {
        let expected = one_by_one.sign(message).to_bytes();
        assert_eq!(
            signature.unwrap().into_bytes(),
            expected,
            "{} bits",
            handle.bits()
        );
        assert_eq!(expected.len(), handle.size());
    }
}

fn pss_is_accepted_by_rsa<D, B>(backend: &B, key: &PrivateKey, blinding: bool)
where
    D: Digest + FixedOutputReset,
    B: RsaBackend,
{
    let handle = KeyHandle::new(key).unwrap();
    let signer = BatchSigner::new(backend, Pss::<D>::new()).blinding(blinding);
    let messages = messages(3);
    let signatures = signer.sign(&mut keys::rng(), &handle, &messages).unwrap();
    let verifier = pss::VerifyingKey::<D>::new(key.to_public_key());
    for (message, signature) in messages.iter().zip(signatures) {
        verifier
            .verify(message, &signature.unwrap().into())
            .unwrap();
    }
}

#[test]
fn every_key_size_and_encoding() {
    let backend = Auto::with_gpus().unwrap();
    for key in keys::all_sizes() {
        pkcs1v15_equals_rsa::<Sha256, _>(&backend, &key, true);
        pss_is_accepted_by_rsa::<Sha256, _>(&backend, &key, true);
    }
}

#[test]
fn every_hash() {
    let key = keys::rsa2048();
    pkcs1v15_equals_rsa::<Sha256, _>(&Serial, &key, true);
    pkcs1v15_equals_rsa::<Sha384, _>(&Serial, &key, true);
    pkcs1v15_equals_rsa::<Sha512, _>(&Serial, &key, true);
    pss_is_accepted_by_rsa::<Sha256, _>(&Serial, &key, true);
    pss_is_accepted_by_rsa::<Sha384, _>(&Serial, &key, true);
    pss_is_accepted_by_rsa::<Sha512, _>(&Serial, &key, true);
}

#[test]
fn every_backend_with_and_without_blinding() {
    let key = keys::rsa1024();
    let parallel = Parallel::with_threads(Serial, 3.try_into().unwrap()).unwrap();
    for blinding in [true, false] {
        pkcs1v15_equals_rsa::<Sha256, _>(&Serial, &key, blinding);
        pkcs1v15_equals_rsa::<Sha256, _>(&parallel, &key, blinding);
        pkcs1v15_equals_rsa::<Sha256, _>(&Auto::with_gpus().unwrap(), &key, blinding);
        pss_is_accepted_by_rsa::<Sha256, _>(&Serial, &key, blinding);
        pss_is_accepted_by_rsa::<Sha256, _>(&parallel, &key, blinding);
    }
}

#[test]
fn every_kind_of_private_key() {
    for (key, has_crt) in [
        (keys::without_crt(), false),
        (keys::three_primes(), false),
        (keys::wide_primes(), true),
        (keys::wide_integers(), true),
        (keys::swapped_primes(), true),
    ] {
        assert_eq!(KeyHandle::new(&key).unwrap().has_crt(), has_crt);
        for blinding in [true, false] {
            pkcs1v15_equals_rsa::<Sha256, _>(&Serial, &key, blinding);
        }
    }
}

#[test]
fn keys_of_the_rsa_crate_that_wrap_a_key() {
    let key = keys::rsa1024();
    let signing_key = pss::SigningKey::<Sha256>::new(key);
    assert_eq!(
        KeyHandle::from_signing_key(&signing_key).unwrap().bits(),
        1024
    );
}

/// Different keys and sizes in one call, interleaved; every signature matches its key.
#[test]
fn many_keys_in_one_call() {
    let rsa_keys: Vec<_> = keys::all_sizes()
        .into_iter()
        .take(5)
        .chain([keys::three_primes()])
        .collect();
    let handles: Vec<_> = rsa_keys
        .iter()
        .map(|key| KeyHandle::new(key).unwrap())
        .collect();
    let messages = messages(17);
    let order: Vec<usize> = (0..messages.len()).map(|i| i * 5 % handles.len()).collect();
    let batch: Vec<_> = order
        .iter()
        .zip(&messages)
        .map(|(&key, message)| (&handles[key], message))
        .collect();
    let signer = BatchSigner::new(Auto::with_gpus().unwrap(), Pkcs1v15::<Sha256>::new());
    let signatures = signer.sign_each(&mut keys::rng(), &batch).unwrap();
    for ((key, message), signature) in order.iter().zip(&messages).zip(signatures) {
        let verifier = pkcs1v15::VerifyingKey::<Sha256>::new(rsa_keys[*key].to_public_key());
        verifier
            .verify(message, &signature.unwrap().into())
            .unwrap();
    }
}

#[test]
fn digests_instead_of_messages() {
    let key = keys::rsa1024();
    let handle = KeyHandle::new(&key).unwrap();
    let digests: Vec<_> = messages(4).iter().map(Sha384::digest).collect();
    let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha384>::new());
    let signatures = signer
        .sign_prehash(&mut keys::rng(), &handle, &digests)
        .unwrap();
    let verifier = pkcs1v15::VerifyingKey::<Sha384>::new(key.to_public_key());
    for (digest, signature) in digests.iter().zip(&signatures) {
        let signature = pkcs1v15::Signature::try_from(signature.unwrap()).unwrap();
        verifier.verify_prehash(digest, &signature).unwrap();
    }
    let each: Vec<_> = digests.iter().map(|digest| (&handle, digest)).collect();
    assert_eq!(
        signer.sign_prehash_each(&mut keys::rng(), &each).unwrap(),
        signatures
    );
}

#[test]
fn salts_are_fresh_and_of_the_length_that_was_asked_for() {
    let key = keys::rsa1024();
    let handle = KeyHandle::new(&key).unwrap();
    let mut rng = keys::rng();
    for salt_len in [0, 1, 20, 62] {
        let signer = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(salt_len));
        let signatures = signer.sign(&mut rng, &handle, &["same", "same"]).unwrap();
        let verifier =
            pss::VerifyingKey::<Sha512>::new_with_salt_len(key.to_public_key(), salt_len);
        for signature in &signatures {
            let signature = pss::Signature::try_from(signature.unwrap()).unwrap();
            verifier.verify(b"same", &signature).unwrap();
        }
        assert_eq!(signatures.get(0) == signatures.get(1), salt_len == 0);
    }
}

#[test]
fn no_messages_no_signatures() {
    let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
    let signer = BatchSigner::new(Auto::with_gpus().unwrap(), Pss::<Sha256>::new());
    assert!(
        signer
            .sign::<&str, _>(&mut keys::rng(), &handle, &[])
            .unwrap()
            .is_empty()
    );
}

/// A scheme can be a type parameter, as `sign_batch` uses it.
#[test]
fn schemes_are_generic() {
    fn signature_len<S: Scheme>(scheme: S) -> usize {
        let handle = KeyHandle::new(&keys::rsa1024()).unwrap();
        let signer = BatchSigner::new(Serial, scheme);
        let signatures = signer
            .sign(&mut keys::rng(), &handle, &["message"])
            .unwrap();
        signatures.get(0).unwrap().len()
    }
    assert_eq!(signature_len(Pkcs1v15::<Sha256>::new()), 128);
    assert_eq!(signature_len(Pss::<Sha256>::new()), 128);
}
