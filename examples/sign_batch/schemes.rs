//! The schemes of the command line, for this library and for the `rsa` crate.

use std::marker::PhantomData;

use batch_modexp::backend::Auto;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Error, KeyHandle, sha3};
use getrandom::SysRng;
use rsa::rand_core::UnwrapErr;
use rsa::sha2::digest::FixedOutputReset;
use rsa::sha2::digest::const_oid::AssociatedOid;
use rsa::sha2::{self, Digest};
use rsa::signature::hazmat::PrehashVerifier;
use rsa::signature::{self, RandomizedSigner, SignatureEncoding, Verifier};
use rsa::{PrivateKey, PublicKey, pkcs1v15, pss};

use super::options::{Compute, HashName, SchemeName, SchemeOptions};

/// This library's signer with the `rsa` crate's verifier.
pub struct Signer {
    batch: BatchSigner<Auto, AnyScheme>,
    /// Checks the signatures, if the `rsa` crate accepts the key.
    verifier: Option<Box<dyn Check>>,
    prehashed: bool,
}

impl Signer {
    /// Creates the signer of the command line. `key` checks its signatures.
    pub fn new(compute: &Compute, backend: Auto, key: Option<&PublicKey>, prehashed: bool) -> Self {
        let batch = BatchSigner::new(backend, any_scheme(compute.scheme));
        Self {
            batch: batch.blinding(!compute.no_blinding),
            verifier: key.map(|key| check_of(compute.scheme, key, prehashed)),
            prehashed,
        }
    }

    pub fn backend(&self) -> &Auto {
        self.batch.backend()
    }

    pub fn verifier(&self) -> Option<&dyn Check> {
        self.verifier.as_deref()
    }

    /// Signs a batch of messages or, if the signer was made for them, digests.
    pub fn sign(&self, key: &KeyHandle, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let signatures = match self.prehashed {
            true => self.batch.sign_prehash(&mut SysRng, key, messages)?,
            false => self.batch.sign(&mut SysRng, key, messages)?,
        };
        signatures
            .into_iter()
            .map(|signature| Ok(signature?.into()))
            .collect()
    }
}

/// Evaluates an expression with the type of a [`HashName`].
macro_rules! with_type {
    ($hash:expr, $D:ident => $value:expr) => {{
        macro_rules! with {
            ($type:path) => {{
                type $D = $type;
                $value
            }};
        }
        match $hash {
            HashName::Sha224 => with!(sha2::Sha224),
            HashName::Sha256 => with!(sha2::Sha256),
            HashName::Sha384 => with!(sha2::Sha384),
            HashName::Sha512 => with!(sha2::Sha512),
            HashName::Sha512_224 => with!(sha2::Sha512_224),
            HashName::Sha512_256 => with!(sha2::Sha512_256),
            HashName::Sha3_224 => with!(sha3::Sha3_224),
            HashName::Sha3_256 => with!(sha3::Sha3_256),
            HashName::Sha3_384 => with!(sha3::Sha3_384),
            HashName::Sha3_512 => with!(sha3::Sha3_512),
        }
    }};
}

/// The scheme for this library's signer and verifier.
pub fn any_scheme(options: SchemeOptions) -> AnyScheme {
    let hash = options.hash.hash();
    match options.scheme {
        SchemeName::Pkcs1v15 => AnyScheme::Pkcs1v15 { hash },
        SchemeName::Pss => AnyScheme::Pss {
            hash,
            salt_len: hash.digest_len(),
        },
    }
}

/// A scheme with a private key of the `rsa` crate, for comparison.
pub trait Single: Sync {
    /// Signs one message, blinded, as is that crate's default.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error>;
}

/// A scheme with a public key.
pub trait Check: Sync {
    /// Whether the `rsa` crate accepts a signature of a message, or of a digest if this was made
    /// for them.
    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool;
}

/// Creates the check of the command line.
fn check_of(scheme: SchemeOptions, key: &PublicKey, prehashed: bool) -> Box<dyn Check> {
    match scheme.scheme {
        SchemeName::Pkcs1v15 => {
            with_type!(scheme.hash, D => Box::new(pkcs1v15_with::<D>(key, prehashed)))
        }
        SchemeName::Pss => with_type!(scheme.hash, D => Box::new(pss_with::<D>(key, prehashed))),
    }
}

/// A signing key of the `rsa` crate, with its type of signatures.
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

/// Creates the scheme for one-by-one signing by the `rsa` crate.
pub fn single(scheme: SchemeOptions, key: &PrivateKey) -> Box<dyn Single> {
    match scheme.scheme {
        SchemeName::Pkcs1v15 => with_type!(scheme.hash, D => single_pkcs1v15::<D>(key)),
        SchemeName::Pss => with_type!(scheme.hash, D => single_pss::<D>(key)),
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
