//! Batches of several schemes and keys, and backends behind pointers.

use std::sync::Arc;

use batch_modexp::backend::{Auto, Serial};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, KeyHandle, Pkcs1v15};
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::signature::Verifier;
use rsa::{pkcs1v15, pss};

use super::keys;

/// Both schemes, all hash functions and two keys in one batch; each signature equals that of its
/// scheme alone.
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
    let signatures: Vec<_> = signatures.into_iter().collect();
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
    fn sign(backend: impl RsaBackend) -> Vec<u8> {
        let handle = KeyHandle::from_pkcs1_pem(include_str!("../keys/rsa1024.pem")).unwrap();
        let signer = BatchSigner::new(backend, Pkcs1v15::<Sha256>::new());
        let signatures = signer.sign(&mut keys::rng(), &handle, &["m"]).unwrap();
        signatures.into_vec().unwrap()
    }
    let expected = sign(Serial);
    assert_eq!(sign(Arc::new(Auto::with_gpus().unwrap())), expected);
    assert_eq!(sign(Box::new(Serial)), expected);
    let chosen: Box<dyn RsaBackend> = Box::new(Serial);
    assert_eq!(sign(&chosen), expected);
    assert_eq!(sign(chosen), expected);
    let shared: Arc<dyn RsaBackend> = Arc::new(Serial);
    assert_eq!(sign(shared), expected);
}
