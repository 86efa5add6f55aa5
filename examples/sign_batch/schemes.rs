//! The schemes that the command line can name, behind one trait.

use std::marker::PhantomData;

use batch_modexp::Error;
use batch_modexp::backend::Auto;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15, Pss, Scheme};
use getrandom::SysRng;
use rsa::rand_core::UnwrapErr;
use rsa::sha2::digest::FixedOutputReset;
use rsa::sha2::digest::const_oid::AssociatedOid;
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::signature::{RandomizedSigner, SignatureEncoding, Verifier};
use rsa::{RsaPrivateKey, pkcs1v15, pss};

use super::args::{HashName, SchemeName};

/// A scheme with a key: by the batch, one by one with the `rsa` crate, and back.
pub trait Signer: Sync {
    fn backend(&self) -> &Auto;

    /// Signs by the batch.
    fn sign(&self, key: &KeyHandle, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error>;

    /// Signs one message with the `rsa` crate, blinded, which is its default.
    fn sign_with_rsa(&self, message: &[u8]) -> Result<Vec<u8>, rsa::signature::Error>;

    /// Whether the `rsa` crate accepts a signature.
    fn verify_with_rsa(&self, message: &[u8], signature: &[u8]) -> bool;
}

/// The signer that the command line asks for.
pub fn signer(
    scheme: SchemeName,
    hash: HashName,
    backend: Auto,
    key: &RsaPrivateKey,
    blinding: bool,
) -> Box<dyn Signer> {
    match (scheme, hash) {
        (SchemeName::Pkcs1v15, HashName::Sha256) => pkcs1v15::<Sha256>(backend, key, blinding),
        (SchemeName::Pkcs1v15, HashName::Sha384) => pkcs1v15::<Sha384>(backend, key, blinding),
        (SchemeName::Pkcs1v15, HashName::Sha512) => pkcs1v15::<Sha512>(backend, key, blinding),
        (SchemeName::Pss, HashName::Sha256) => pss::<Sha256>(backend, key, blinding),
        (SchemeName::Pss, HashName::Sha384) => pss::<Sha384>(backend, key, blinding),
        (SchemeName::Pss, HashName::Sha512) => pss::<Sha512>(backend, key, blinding),
    }
}

fn pkcs1v15<D>(backend: Auto, key: &RsaPrivateKey, blinding: bool) -> Box<dyn Signer>
where
    D: Digest + AssociatedOid + Sync + Send + 'static,
{
    Box::new(Pair {
        of_rsa: PhantomData::<fn() -> pkcs1v15::Signature>,
        batch: BatchSigner::new(backend, Pkcs1v15::<D>::new()).blinding(blinding),
        single: pkcs1v15::SigningKey::<D>::new(key.clone()),
        verifier: pkcs1v15::VerifyingKey::<D>::new(key.to_public_key()),
    })
}

fn pss<D>(backend: Auto, key: &RsaPrivateKey, blinding: bool) -> Box<dyn Signer>
where
    D: Digest + FixedOutputReset + Sync + Send + 'static,
{
    Box::new(Pair {
        of_rsa: PhantomData::<fn() -> pss::Signature>,
        batch: BatchSigner::new(backend, Pss::<D>::new()).blinding(blinding),
        single: pss::SigningKey::<D>::new(key.clone()),
        verifier: pss::VerifyingKey::<D>::new(key.to_public_key()),
    })
}

/// Our signer beside the `rsa` crate's.
struct Pair<S, K, V, T> {
    of_rsa: PhantomData<fn() -> T>,
    batch: BatchSigner<Auto, S>,
    single: K,
    verifier: V,
}

impl<S, K, V, T> Signer for Pair<S, K, V, T>
where
    S: Scheme + Sync,
    T: SignatureEncoding,
    K: RandomizedSigner<T> + Sync,
    V: Verifier<T> + Sync,
{
    fn backend(&self) -> &Auto {
        self.batch.backend()
    }

    fn sign(&self, key: &KeyHandle, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let signatures = self.batch.sign(&mut SysRng, key, messages)?;
        signatures
            .into_iter()
            .map(|signature| Ok(signature?.to_vec()))
            .collect()
    }

    fn sign_with_rsa(&self, message: &[u8]) -> Result<Vec<u8>, rsa::signature::Error> {
        Ok(self
            .single
            .try_sign_with_rng(&mut UnwrapErr(SysRng), message)?
            .to_vec())
    }

    fn verify_with_rsa(&self, message: &[u8], signature: &[u8]) -> bool {
        T::try_from(signature)
            .is_ok_and(|signature| self.verifier.verify(message, &signature).is_ok())
    }
}
