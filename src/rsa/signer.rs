//! From keys and messages to signatures.

use alloc::vec::Vec;
use core::fmt;

use crypto_bigint::BoxedUint;
use rand_core::TryCryptoRng;
use rsa::sha2::Digest;

use super::key::KeyHandle;
use super::octets::{i2osp, os2ip};
use super::private_op::{RsaPrivateOp, check};
use super::scheme::Scheme;
use crate::Error;
use crate::secret::Secret;

/// What a signing call returns: the signatures in the order of the messages, each with its own verdict;
/// or the reason why nothing could be signed at all.
pub type Signatures<S> = Result<Vec<Result<<S as Scheme>::Signature, Error>>, Error>;

/// Signs batches of messages with a backend and a scheme.
///
/// The methods take a random number generator for the blinding and for the salts of PSS; PKCS#1 v1.5
/// without blinding does not use it.
pub struct BatchSigner<B, S> {
    backend: B,
    scheme: S,
    blinding: bool,
}

impl<B: RsaPrivateOp, S: Scheme> BatchSigner<B, S> {
    /// A signer that blinds and checks. `backend` may be a reference.
    pub fn new(backend: B, scheme: S) -> Self {
        Self {
            backend,
            scheme,
            blinding: true,
        }
    }

    /// Turns the blinding of the base on or off; it is on at first.
    ///
    /// Blinding multiplies the representative by `r^e` for a fresh random r and the result by `r^-1`, so that
    /// whoever chooses the messages does not choose the numbers that are exponentiated. The
    /// exponentiations are constant-time without it: no branch and no address depends on the base.
    /// What it adds is a second line against what constant time in software does not cover: power
    /// analysis and other physical channels, processors whose multiplications or clock depend on the data
    /// (Hertzbleed), and faults aimed at a chosen input. It does not hide the exponents. It costs one
    /// more exponentiation by e, a few multiplications and its share of one inversion for each signature;
    /// `docs/performance.md` has the measured figure.
    #[must_use]
    pub fn blinding(mut self, on: bool) -> Self {
        self.blinding = on;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Hashes and signs `messages` with one key.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], or the backend's error if it failed as a whole. What is wrong with a single
    /// signature stands in its place: [`Error::KeyTooShort`], or [`Error::Fault`] for a result that did
    /// not pass its check.
    pub fn sign<M, R>(&self, rng: &mut R, key: &KeyHandle, messages: &[M]) -> Signatures<S>
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        self.sign_digests(
            rng,
            messages
                .iter()
                .map(|message| (key, S::Hash::digest(message))),
        )
    }

    /// Hashes and signs messages, each with its own key. The keys may have different sizes.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign).
    pub fn sign_each<M, R>(&self, rng: &mut R, messages: &[(&KeyHandle, M)]) -> Signatures<S>
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = messages
            .iter()
            .map(|(key, message)| (*key, S::Hash::digest(message)));
        self.sign_digests(rng, digests)
    }

    /// Signs `digests`, made by the scheme's hash function, with one key.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign), and [`Error::DigestLength`] in the place of a digest that is too
    /// long or too short.
    pub fn sign_prehash<M, R>(&self, rng: &mut R, key: &KeyHandle, digests: &[M]) -> Signatures<S>
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        self.sign_digests(rng, digests.iter().map(|digest| (key, digest)))
    }

    /// Signs digests, each with its own key. The keys may have different sizes.
    ///
    /// # Errors
    ///
    /// Those of [`sign_prehash`](Self::sign_prehash).
    pub fn sign_prehash_each<M, R>(&self, rng: &mut R, digests: &[(&KeyHandle, M)]) -> Signatures<S>
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        self.sign_digests(rng, digests.iter().map(|(key, digest)| (*key, digest)))
    }

    fn sign_digests<'k, M, R>(
        &self,
        rng: &mut R,
        digests: impl Iterator<Item = (&'k KeyHandle, M)>,
    ) -> Signatures<S>
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let (keys, representatives): (Vec<_>, Vec<_>) = digests
            .map(|(key, digest)| (key, self.representative(rng, key, digest.as_ref())))
            .unzip();
        if representatives
            .iter()
            .any(|lane| matches!(lane, Err(Error::Rng)))
        {
            return Err(Error::Rng);
        }
        let rng = self.blinding.then_some(rng);
        let each_key = keys.iter().copied();
        let results = check::private_op(&self.backend, each_key, &representatives, rng)?;
        let wrap = |(key, result): (&KeyHandle, Result<Secret<BoxedUint>, Error>)| {
            result.map(|number| self.scheme.signature(&i2osp(&number, key.size())))
        };
        Ok(keys.into_iter().zip(results).map(wrap).collect())
    }

    /// Encodes one digest as a message representative.
    fn representative<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &KeyHandle,
        digest: &[u8],
    ) -> Result<Secret<BoxedUint>, Error> {
        let (len, expected) = (digest.len(), S::Hash::output_size());
        if len != expected {
            return Err(Error::DigestLength { len, expected });
        }
        let encoded = self.scheme.encode(digest, key.bits(), rng)?;
        let width = key.parts().n.bits_precision();
        Ok(Secret::new(os2ip(&encoded, width)))
    }
}

impl<B: fmt::Debug, S: fmt::Debug> fmt::Debug for BatchSigner<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchSigner")
            .field("backend", &self.backend)
            .field("scheme", &self.scheme)
            .field("blinding", &self.blinding)
            .finish()
    }
}
