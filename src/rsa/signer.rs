//! From keys and messages to signatures.

use alloc::vec::Vec;
use core::fmt;

use crypto_bigint::BoxedUint;
use rand_core::TryCryptoRng;

use super::key::KeyHandle;
use super::octets::{i2osp, os2ip};
use super::private_op::{RsaPrivateOp, check};
use super::scheme::{AnyScheme, Scheme};
use super::signature::Signature;
use crate::Error;
use crate::secret::Secret;

/// What a signing call returns: the signatures in the order of the messages, each with its own verdict;
/// or the reason why nothing could be signed at all.
pub type Signatures = Result<Vec<Result<Signature, Error>>, Error>;

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
    /// signature stands in its place: [`Error::KeyTooShort`], [`Error::KeyRestricted`], or [`Error::Fault`] for a
    /// result that did not pass its check.
    pub fn sign<M, R>(&self, rng: &mut R, key: &KeyHandle, messages: &[M]) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digest = |message: &M| self.scheme.digest(message.as_ref());
        self.sign_digests(
            rng,
            messages
                .iter()
                .map(|message| (key, &self.scheme, digest(message))),
        )
    }

    /// Hashes and signs messages, each with its own key. The keys may have different sizes.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign).
    pub fn sign_each<M, R>(&self, rng: &mut R, messages: &[(&KeyHandle, M)]) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = messages.iter().map(|(key, message)| {
            let digest = self.scheme.digest(message.as_ref());
            (*key, &self.scheme, digest)
        });
        self.sign_digests(rng, digests)
    }

    /// Signs `digests`, made by the scheme's hash function, with one key.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign), and [`Error::DigestLength`] in the place of a digest that is too
    /// long or too short.
    pub fn sign_prehash<M, R>(&self, rng: &mut R, key: &KeyHandle, digests: &[M]) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = digests.iter().map(|digest| (key, &self.scheme, digest));
        self.sign_digests(rng, digests)
    }

    /// Signs digests, each with its own key. The keys may have different sizes.
    ///
    /// # Errors
    ///
    /// Those of [`sign_prehash`](Self::sign_prehash).
    pub fn sign_prehash_each<M, R>(&self, rng: &mut R, digests: &[(&KeyHandle, M)]) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = digests
            .iter()
            .map(|(key, digest)| (*key, &self.scheme, digest));
        self.sign_digests(rng, digests)
    }

    /// Signs digests, each with its own key and scheme.
    fn sign_digests<'k, M, R>(
        &self,
        rng: &mut R,
        digests: impl Iterator<Item = (&'k KeyHandle, &'k S, M)>,
    ) -> Signatures
    where
        S: 'k,
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let (keys, representatives): (Vec<_>, Vec<_>) = digests
            .map(|(key, scheme, digest)| (key, representative(rng, key, scheme, digest.as_ref())))
            .unzip();
        if representatives
            .iter()
            .any(|lane| matches!(lane, Err(Error::Rng)))
        {
            return Err(Error::Rng);
        }
        let rng = self.blinding.then_some(rng);
        let each_key = keys.iter().copied();
        // Errors get the positions of their lanes here.
        let results = check::private_op(&self.backend, each_key, &representatives, rng)?;
        let wrap = |(key, result): (&KeyHandle, Result<Secret<BoxedUint>, Error>)| {
            result.map(|number| Signature::new(&i2osp(&number, key.size())))
        };
        Ok(keys.into_iter().zip(results).map(wrap).collect())
    }
}

impl<B: RsaPrivateOp> BatchSigner<B, AnyScheme> {
    /// Hashes and signs messages, each with its own key and scheme, in one batch.
    ///
    /// ```
    /// use batch_modexp::backend::Serial;
    /// use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, KeyHandle};
    ///
    /// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
    /// let key = KeyHandle::from_pkcs8_pem(&pem)?;
    /// let pkcs1v15 = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };
    /// let pss = AnyScheme::Pss { hash: Hash::Sha512, salt_len: Hash::Sha512.digest_len() };
    /// let signer = BatchSigner::new(Serial, pss);
    /// let batch = [(&key, pkcs1v15, "one"), (&key, pss, "two")];
    /// for signature in signer.sign_mixed(&mut getrandom::SysRng, &batch)? {
    ///     println!("{:x}", signature?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign).
    pub fn sign_mixed<M, R>(
        &self,
        rng: &mut R,
        messages: &[(&KeyHandle, AnyScheme, M)],
    ) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = messages
            .iter()
            .map(|(key, scheme, message)| (*key, scheme, scheme.digest(message.as_ref())));
        self.sign_digests(rng, digests)
    }

    /// Signs digests, each with its own key and scheme, in one batch.
    ///
    /// # Errors
    ///
    /// Those of [`sign_prehash`](Self::sign_prehash).
    pub fn sign_prehash_mixed<M, R>(
        &self,
        rng: &mut R,
        digests: &[(&KeyHandle, AnyScheme, M)],
    ) -> Signatures
    where
        M: AsRef<[u8]>,
        R: TryCryptoRng + ?Sized,
    {
        let digests = digests
            .iter()
            .map(|(key, scheme, digest)| (*key, scheme, digest));
        self.sign_digests(rng, digests)
    }
}

/// Encodes one digest as a message representative. Its errors are those of a batch of this one.
fn representative<S: Scheme, R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    key: &KeyHandle,
    scheme: &S,
    digest: &[u8],
) -> Result<Secret<BoxedUint>, Error> {
    let restriction = key.restriction();
    if !scheme.is_permitted_by(restriction) {
        return Err(Error::KeyRestricted {
            index: 0,
            restriction,
        });
    }
    let (len, expected) = (digest.len(), scheme.digest_len());
    if len != expected {
        return Err(Error::DigestLength {
            index: 0,
            len,
            expected,
        });
    }
    let encoded = scheme.encode(digest, key.bits(), rng)?;
    let width = key.parts().n.bits_precision();
    Ok(Secret::new(os2ip(&encoded, width)))
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
