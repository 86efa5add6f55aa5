//! Verifies signatures.

use core::fmt;

use crypto_bigint::Limb;

use super::backend::{RsaBackend, compute_by_class};
use super::batch::{Outputs, Source};
use super::blocks::{Range, copy_block};
use super::key::{KeyParts, PublicKey, Restriction};
use super::random::{Randomness, Streams};
use super::scheme::sealed::Sealed;
use super::scheme::{AnyScheme, Scheme, permit};
use super::signer::Content::{self, Digest, Message};
use crate::rsa::Error;

/// Verifies batches of signatures with a backend and a scheme (RFC 8017, section 8).
///
/// Keys, messages and signatures are public, and running times depend on them: pass no secrets. The
/// whole encoded message is compared, and nothing in a signature is parsed. An invalid item does
/// not affect the others.
///
/// A signature is *malformed* if it is not as long as the modulus in bytes, or not below it as a
/// number: [`Error::BlockOutOfRange`]. It is *wrong* if it is well-formed but no signature of the
/// message: [`Error::Verification`].
///
/// ```
/// use batch_modexp::backend::Serial;
/// use batch_modexp::rsa::{BatchSigner, BatchVerifier, KeyHandle, Pkcs1v15, sha2::Sha256};
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let scheme = Pkcs1v15::<Sha256>::new();
/// let messages = ["one", "two"];
/// let signatures = BatchSigner::new(Serial, scheme).sign(&mut getrandom::SysRng, &key, &messages)?;
///
/// let verifier = BatchVerifier::new(Serial, scheme);
/// let signed = [(messages[0], signatures.get(0)?), (messages[1], signatures.get(1)?), ("three", signatures.get(0)?)];
/// let verdicts = verifier.verify(&key.public_key(), &signed)?;
/// assert!(verdicts.is_valid(0) && verdicts.is_valid(1) && !verdicts.is_valid(2));
/// assert!(verdicts.all_valid().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchVerifier<B, S> {
    backend: B,
    scheme: S,
    narrowest: Restriction,
    any_salt_len: bool,
}

impl<B: RsaBackend, S: Scheme> BatchVerifier<B, S> {
    /// Creates a verifier for the scheme. `backend` may be a reference.
    pub fn new(backend: B, scheme: S) -> Self {
        Self {
            backend,
            narrowest: scheme.narrowest(),
            scheme,
            any_salt_len: false,
        }
    }

    /// Accepts PSS signatures with a salt of any length, instead of only the scheme's; off by
    /// default. If a key's restriction sets a shortest salt, that still holds.
    #[must_use]
    pub fn any_salt_len(mut self, on: bool) -> Self {
        self.any_salt_len = on;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Verifies messages, each with its signature, under one key.
    ///
    /// # Errors
    ///
    /// The backend's error if it failed as a whole. The error of a single signature is its verdict:
    /// [`Error::BlockOutOfRange`], [`Error::Verification`], [`Error::KeyTooShort`] for a key too
    /// short for any signature by the scheme, or [`Error::KeyRestricted`].
    pub fn verify<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        key: &PublicKey,
        signed: &[(M, T)],
    ) -> Result<Verdicts, Error> {
        self.verify_all(signed.len(), |i| {
            let (message, signature) = &signed[i];
            (key, Message(message.as_ref()), signature.as_ref())
        })
    }

    /// Verifies messages, each with its key and its signature. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`verify`](Self::verify).
    pub fn verify_each<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        signed: &[(&PublicKey, M, T)],
    ) -> Result<Verdicts, Error> {
        self.verify_all(signed.len(), |i| {
            let (key, message, signature) = &signed[i];
            (*key, Message(message.as_ref()), signature.as_ref())
        })
    }

    /// Verifies digests, made by the scheme's hash function, each with its signature, under one
    /// key.
    ///
    /// # Errors
    ///
    /// Those of [`verify`](Self::verify), and [`Error::DigestLength`] in the place of a digest of
    /// wrong length.
    pub fn verify_prehash<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        key: &PublicKey,
        signed: &[(M, T)],
    ) -> Result<Verdicts, Error> {
        self.verify_all(signed.len(), |i| {
            let (digest, signature) = &signed[i];
            (key, Digest(digest.as_ref()), signature.as_ref())
        })
    }

    /// Verifies digests, each with its key and its signature. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`verify_prehash`](Self::verify_prehash).
    pub fn verify_prehash_each<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        signed: &[(&PublicKey, M, T)],
    ) -> Result<Verdicts, Error> {
        self.verify_all(signed.len(), |i| {
            let (key, digest, signature) = &signed[i];
            (*key, Digest(digest.as_ref()), signature.as_ref())
        })
    }

    /// Verifies the signature that `item` returns for each of `count` positions, with the key and the
    /// content beside it.
    fn verify_all<'s>(
        &self,
        count: usize,
        item: impl Fn(usize) -> (&'s PublicKey, Content<'s>, &'s [u8]) + Sync,
    ) -> Result<Verdicts, Error> {
        let (scheme, narrowest) = (&self.scheme, self.narrowest);
        self.verdicts(count, |i| {
            let (key, content, signature) = item(i);
            (key, scheme, narrowest, content, signature)
        })
    }

    /// Verifies what `item` returns for each of `count` positions.
    fn verdicts<'s>(
        &self,
        count: usize,
        item: impl Fn(usize) -> Item<'s, S> + Sync,
    ) -> Result<Verdicts, Error>
    where
        S: 's,
    {
        let source = Signed {
            any_salt_len: self.any_salt_len,
            item: &item,
        };
        let streams = Streams::none();
        let outputs = compute_by_class(&self.backend, count, &source, &streams, false)?;
        Ok(Verdicts(outputs.into_inner()))
    }
}

impl<B: RsaBackend> BatchVerifier<B, AnyScheme> {
    /// Verifies messages, each with its key, its scheme and its signature, in one batch.
    ///
    /// # Errors
    ///
    /// Those of [`verify`](Self::verify).
    pub fn verify_mixed<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        signed: &[(&PublicKey, AnyScheme, M, T)],
    ) -> Result<Verdicts, Error> {
        self.verdicts(signed.len(), |i| {
            let (key, scheme, message, signature) = &signed[i];
            let narrowest = scheme.narrowest();
            let message = Message(message.as_ref());
            (*key, scheme, narrowest, message, signature.as_ref())
        })
    }

    /// Verifies digests, each with its key, its scheme and its signature, in one batch.
    ///
    /// # Errors
    ///
    /// Those of [`verify_prehash`](Self::verify_prehash).
    pub fn verify_prehash_mixed<M: AsRef<[u8]> + Sync, T: AsRef<[u8]> + Sync>(
        &self,
        signed: &[(&PublicKey, AnyScheme, M, T)],
    ) -> Result<Verdicts, Error> {
        self.verdicts(signed.len(), |i| {
            let (key, scheme, digest, signature) = &signed[i];
            let narrowest = scheme.narrowest();
            let digest = Digest(digest.as_ref());
            (*key, scheme, narrowest, digest, signature.as_ref())
        })
    }
}

/// The verdicts on a batch of signatures, in the order of its items.
#[must_use = "a signature that is not valid is found in here alone"]
#[derive(Default)]
pub struct Verdicts(Outputs);

impl Verdicts {
    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the signature of item `index` is valid.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    #[must_use]
    pub fn is_valid(&self, index: usize) -> bool {
        self.0.get(index).is_ok()
    }

    /// The verdict on item `index`.
    ///
    /// # Errors
    ///
    /// The reason why the signature is not valid.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    pub fn get(&self, index: usize) -> Result<(), Error> {
        self.0.get(index).map(|_| ())
    }

    /// The verdicts on all items.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<(), Error>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Succeeds if all signatures are valid.
    ///
    /// # Errors
    ///
    /// That of the first invalid item.
    pub fn all_valid(&self) -> Result<(), Error> {
        self.0.all_succeeded()
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A source with signatures as encoded messages; the output of a valid item is empty.
struct Signed<'f, 's, S> {
    any_salt_len: bool,
    /// The item at each position of the batch.
    item: &'f (dyn Fn(usize) -> Item<'s, S> + Sync),
}

/// The key, the scheme, the narrowest restriction of its keys, the signed content and the signature.
type Item<'s, S> = (&'s PublicKey, &'s S, Restriction, Content<'s>, &'s [u8]);

impl<S: Scheme> Signed<'_, '_, S> {
    /// Fails if the key does not permit the scheme. Returns the length that a salt must have at least,
    /// if it may have any.
    fn permit(&self, narrowest: Restriction, key: &PublicKey) -> Result<Option<usize>, Error> {
        let (restriction, mut least) = (key.restriction(), narrowest);
        // The length of the salt is checked when it is known.
        if let (true, Restriction::PssWith { min_salt_len, .. }) = (self.any_salt_len, &mut least) {
            *min_salt_len = usize::MAX;
        }
        permit(restriction, least)?;
        Ok(self.any_salt_len.then_some(match restriction {
            Restriction::PssWith { min_salt_len, .. } => min_salt_len,
            Restriction::None | Restriction::Pss => 0,
        }))
    }
}

impl<S: Scheme> Source for Signed<'_, '_, S> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        let (key, scheme, narrowest, content, signature) = (self.item)(position);
        // A wrong signature does not hide that the item could not be verified.
        self.permit(narrowest, key)?;
        content.check(scheme)?;
        copy_block(signature, em)
    }

    fn check(&self, key: &KeyParts, em: &[Limb]) -> Result<(), Error> {
        Range::BelowModulus.check(key, em)
    }

    fn output_len(&self, _: &KeyParts) -> usize {
        0
    }

    fn decode(&self, position: usize, em: &mut [u8], _: &mut [u8]) -> Result<usize, Error> {
        let (key, scheme, narrowest, content, _) = (self.item)(position);
        let min_salt_len = self.permit(narrowest, key)?;
        content.with_digest(scheme, |digest| {
            match scheme.verify_vartime(digest, key.bits(), min_salt_len, em)? {
                true => Ok(0),
                false => Err(Error::Verification { index: 0 }),
            }
        })
    }
}
