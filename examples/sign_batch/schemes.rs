//! The schemes that the command line can name, behind traits.

use std::marker::PhantomData;

use batch_modexp::backend::Auto;
use batch_modexp::rsa::{BatchSigner, Error, KeyHandle, Pkcs1v15, Pss, Scheme};
use getrandom::SysRng;
use rsa::rand_core::UnwrapErr;
use rsa::sha2::digest::FixedOutputReset;
use rsa::sha2::digest::const_oid::AssociatedOid;
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::signature::hazmat::PrehashVerifier;
use rsa::signature::{self, RandomizedSigner, SignatureEncoding, Verifier};
use rsa::{PrivateKey, PublicKey, pkcs1v15, pss};

use super::options::{Compute, HashName, SchemeName, SchemeOptions};

/// A scheme with a private key, by the batch.
pub trait Signer: Sync {
    fn backend(&self) -> &Auto;

    /// What checks the signatures, if the `rsa` crate takes the key.
    fn verifier(&self) -> Option<&dyn Check>;

    /// Signs messages, or digests if the signer was made for them, by the batch.
    fn sign(&self, key: &KeyHandle, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error>;
}

/// A scheme with a private key of the `rsa` crate, for comparison.
pub trait Single: Sync {
    /// Signs one message, blinded, which is that crate's default.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error>;
}

/// A scheme with a public key.
pub trait Check: Sync {
    /// Whether the `rsa` crate accepts a signature of a message, or of a digest if this was made for them.
    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool;
}

/// The signer that the command line asks for. `key` is for the check of its signatures.
pub fn signer(
    compute: &Compute,
    backend: Auto,
    key: Option<&PublicKey>,
    prehashed: bool,
) -> Box<dyn Signer> {
    let job = Job {
        backend,
        key,
        blinding: !compute.no_blinding,
        prehashed,
    };
    match (compute.scheme.scheme, compute.scheme.hash) {
        (SchemeName::Pkcs1v15, HashName::Sha256) => job.pkcs1v15::<Sha256>(),
        (SchemeName::Pkcs1v15, HashName::Sha384) => job.pkcs1v15::<Sha384>(),
        (SchemeName::Pkcs1v15, HashName::Sha512) => job.pkcs1v15::<Sha512>(),
        (SchemeName::Pss, HashName::Sha256) => job.pss::<Sha256>(),
        (SchemeName::Pss, HashName::Sha384) => job.pss::<Sha384>(),
        (SchemeName::Pss, HashName::Sha512) => job.pss::<Sha512>(),
    }
}

/// The verifier that the command line asks for.
pub fn verifier(scheme: SchemeOptions, key: &PublicKey, prehashed: bool) -> Box<dyn Check> {
    match (scheme.scheme, scheme.hash) {
        (SchemeName::Pkcs1v15, HashName::Sha256) => {
            Box::new(pkcs1v15_with::<Sha256>(key, prehashed))
        }
        (SchemeName::Pkcs1v15, HashName::Sha384) => {
            Box::new(pkcs1v15_with::<Sha384>(key, prehashed))
        }
        (SchemeName::Pkcs1v15, HashName::Sha512) => {
            Box::new(pkcs1v15_with::<Sha512>(key, prehashed))
        }
        (SchemeName::Pss, HashName::Sha256) => Box::new(pss_with::<Sha256>(key, prehashed)),
        (SchemeName::Pss, HashName::Sha384) => Box::new(pss_with::<Sha384>(key, prehashed)),
        (SchemeName::Pss, HashName::Sha512) => Box::new(pss_with::<Sha512>(key, prehashed)),
    }
}

/// What a signer is made of, but for scheme and hash.
struct Job<'a> {
    backend: Auto,
    key: Option<&'a PublicKey>,
    blinding: bool,
    prehashed: bool,
}

impl Job<'_> {
    fn pkcs1v15<D>(self) -> Box<dyn Signer>
    where
        D: Digest + AssociatedOid + Sync + Send + 'static,
    {
        Box::new(Pair {
            batch: BatchSigner::new(self.backend, Pkcs1v15::<D>::new()).blinding(self.blinding),
            verifier: self.key.map(|key| pkcs1v15_with::<D>(key, self.prehashed)),
            prehashed: self.prehashed,
        })
    }

    fn pss<D>(self) -> Box<dyn Signer>
    where
        D: Digest + FixedOutputReset + Sync + Send + 'static,
    {
        Box::new(Pair {
            batch: BatchSigner::new(self.backend, Pss::<D>::new()).blinding(self.blinding),
            verifier: self.key.map(|key| pss_with::<D>(key, self.prehashed)),
            prehashed: self.prehashed,
        })
    }
}

/// Our signer beside the `rsa` crate's verifier.
struct Pair<S, V> {
    batch: BatchSigner<Auto, S>,
    verifier: Option<With<V>>,
    prehashed: bool,
}

/// A signing key of the `rsa` crate, with the type of its signatures.
struct OneByOne<K, T> {
    key: K,
    signature: PhantomData<fn() -> T>,
}

impl<T, K> Single for OneByOne<K, T>
where
    T: SignatureEncoding,
    K: RandomizedSigner<T> + Sync,
{
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let signature = self
            .key
            .try_sign_with_rng(&mut UnwrapErr(SysRng), message)?;
        Ok(signature.to_vec())
    }
}

/// The same scheme one by one, with the `rsa` crate.
pub fn single(scheme: SchemeOptions, key: &PrivateKey) -> Box<dyn Single> {
    match (scheme.scheme, scheme.hash) {
        (SchemeName::Pkcs1v15, HashName::Sha256) => single_pkcs1v15::<Sha256>(key),
        (SchemeName::Pkcs1v15, HashName::Sha384) => single_pkcs1v15::<Sha384>(key),
        (SchemeName::Pkcs1v15, HashName::Sha512) => single_pkcs1v15::<Sha512>(key),
        (SchemeName::Pss, HashName::Sha256) => single_pss::<Sha256>(key),
        (SchemeName::Pss, HashName::Sha384) => single_pss::<Sha384>(key),
        (SchemeName::Pss, HashName::Sha512) => single_pss::<Sha512>(key),
    }
}

fn single_pkcs1v15<D>(key: &PrivateKey) -> Box<dyn Single>
where
    D: Digest + AssociatedOid + Sync + 'static,
{
    Box::new(OneByOne {
        key: pkcs1v15::SigningKey::<D>::new(key.clone()),
        signature: PhantomData::<fn() -> pkcs1v15::Signature>,
    })
}

fn single_pss<D>(key: &PrivateKey) -> Box<dyn Single>
where
    D: Digest + FixedOutputReset + Sync + 'static,
{
    Box::new(OneByOne {
        key: pss::SigningKey::<D>::new(key.clone()),
        signature: PhantomData::<fn() -> pss::Signature>,
    })
}

/// A verifying key of the `rsa` crate, for messages or for digests.
struct With<V> {
    key: V,
    prehashed: bool,
}

fn pkcs1v15_with<D>(key: &PublicKey, prehashed: bool) -> With<pkcs1v15::VerifyingKey<D>>
where
    D: Digest + AssociatedOid,
{
    With {
        key: pkcs1v15::VerifyingKey::new(key.clone()),
        prehashed,
    }
}

fn pss_with<D: Digest>(key: &PublicKey, prehashed: bool) -> With<pss::VerifyingKey<D>> {
    With {
        key: pss::VerifyingKey::new(key.clone()),
        prehashed,
    }
}

impl<V> With<V> {
    fn accepts<S>(&self, message: &[u8], signature: &[u8]) -> bool
    where
        S: SignatureEncoding,
        V: Verifier<S> + PrehashVerifier<S>,
    {
        let Ok(signature) = S::try_from(signature) else {
            return false;
        };
        if self.prehashed {
            self.key.verify_prehash(message, &signature).is_ok()
        } else {
            self.key.verify(message, &signature).is_ok()
        }
    }
}

impl<D: Digest + AssociatedOid + Sync> Check for With<pkcs1v15::VerifyingKey<D>> {
    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        self.accepts::<pkcs1v15::Signature>(message, signature)
    }
}

impl<D: Digest + FixedOutputReset + Sync> Check for With<pss::VerifyingKey<D>> {
    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        self.accepts::<pss::Signature>(message, signature)
    }
}

impl<S, V> Signer for Pair<S, V>
where
    S: Scheme + Sync,
    V: Sync,
    With<V>: Check,
{
    fn backend(&self) -> &Auto {
        self.batch.backend()
    }

    fn verifier(&self) -> Option<&dyn Check> {
        self.verifier
            .as_ref()
            .map(|verifier| verifier as &dyn Check)
    }

    fn sign(&self, key: &KeyHandle, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let signatures = if self.prehashed {
            self.batch.sign_prehash(&mut SysRng, key, messages)?
        } else {
            self.batch.sign(&mut SysRng, key, messages)?
        };
        signatures
            .into_iter()
            .map(|signature| Ok(signature?.into()))
            .collect()
    }
}
