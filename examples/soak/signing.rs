//! Batches of signatures, verified by the `rsa` crate.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, Signature};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use rsa::sha2::{Sha256, Sha384, Sha512};
use rsa::signature::hazmat::PrehashVerifier;
use rsa::{PublicKey, pkcs1v15, pss};

use crate::keys::Key;
use crate::work::{Done, Outcome, Place, below, expect, pick};

/// The number of verified signatures in a batch.
const SAMPLE: usize = 4;

/// Random digests, keys and schemes, some with digests of wrong length or keys that are too short.
pub(crate) fn signatures(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let items: Vec<_> = (0..place.size(rng))
        .map(|_| {
            let (key, scheme) = (pick(rng, &place.keys), scheme(rng));
            let is_wrong = below(rng, 20) == 0;
            let mut digest = vec![0; hash(scheme).digest_len() - usize::from(is_wrong)];
            rng.fill_bytes(&mut digest);
            (key, scheme, digest)
        })
        .collect();
    let batch: Vec<_> = items
        .iter()
        .map(|(key, scheme, digest)| (&key.handle, *scheme, digest))
        .collect();
    let backend = place.backend(rng);
    let signer = BatchSigner::new(backend, items[0].1).blinding(below(rng, 4) != 0);
    let signatures = signer
        .sign_prehash_mixed(rng, &batch)
        .map_err(|error| format!("{}: {error}", backend.name()))?;
    let mut done = Done {
        items: items.len() as u64,
        ..Done::default()
    };
    let from = below(rng, items.len());
    for (index, ((key, scheme, digest), result)) in items.iter().zip(signatures).enumerate() {
        match (result, expected_error(index, key, *scheme, digest)) {
            (Ok(signature), None) if (from..from + SAMPLE).contains(&index) => {
                verify(key, *scheme, digest, &signature)?;
                done.checked += 1;
            }
            (Ok(_), None) => {}
            (Err(error), Some(expected)) if error == expected => done.errors += 1,
            (result, _) => {
                return Err(format!("{}: signature {index}: {result:?}", backend.name()));
            }
        }
    }
    Ok(done)
}

/// The expected error of an item: a wrong digest is reported before a short key.
pub(crate) fn expected_error(
    index: usize,
    key: &Key,
    scheme: AnyScheme,
    digest: &[u8],
) -> Option<Error> {
    let (len, expected) = (digest.len(), hash(scheme).digest_len());
    if len != expected {
        return Some(Error::DigestLength {
            index,
            len,
            expected,
        });
    }
    // RFC 8017, section 9.1.1: the encoded message is at least as long as the digest, the salt and
    // two octets. It has one bit less than the modulus.
    let bits = key.handle.bits();
    let min_bits = match scheme {
        AnyScheme::Pss { salt_len, .. } => 8 * (expected + salt_len + 1) as u32 + 2,
        AnyScheme::Pkcs1v15 { .. } => 0,
    };
    (bits < min_bits).then_some(Error::KeyTooShort {
        index,
        bits,
        min_bits,
    })
}

/// PKCS#1 v1.5, or PSS with a salt as long as the digest, with a random hash function.
pub(crate) fn scheme(rng: &mut ChaCha20Rng) -> AnyScheme {
    let hash = *pick(rng, &[Hash::Sha256, Hash::Sha384, Hash::Sha512]);
    let salt_len = hash.digest_len();
    *pick(
        rng,
        &[
            AnyScheme::Pkcs1v15 { hash },
            AnyScheme::Pss { hash, salt_len },
        ],
    )
}

pub(crate) fn hash(scheme: AnyScheme) -> Hash {
    match scheme {
        AnyScheme::Pkcs1v15 { hash } | AnyScheme::Pss { hash, .. } => hash,
    }
}

/// Verifies with the `rsa` crate.
pub(crate) fn verify(
    key: &Key,
    scheme: AnyScheme,
    digest: &[u8],
    signature: &Signature,
) -> Result<(), String> {
    let public = PublicKey::from(&key.reference);
    let (pkcs1v15, pss): (pkcs1v15::Signature, pss::Signature) =
        (signature.into(), signature.into());
    macro_rules! verify {
        ($($hash:ident),*) => {
            match scheme {
                $(AnyScheme::Pkcs1v15 { hash: Hash::$hash } => {
                    pkcs1v15::VerifyingKey::<$hash>::new(public).verify_prehash(digest, &pkcs1v15)
                })*
                $(AnyScheme::Pss { hash: Hash::$hash, salt_len } => {
                    pss::VerifyingKey::<$hash>::new_with_salt_len(public, salt_len).verify_prehash(digest, &pss)
                })*
                _ => return Err(format!("no verifier for {scheme:?}")),
            }
        };
    }
    let verdict = verify!(Sha256, Sha384, Sha512);
    expect(verdict.is_ok(), || {
        format!(
            "a wrong signature: {scheme:?} with {} bits",
            key.handle.bits()
        )
    })
}
