//! Signs messages.

use rand_core::TryCryptoRng;

use self::Content::{Digest, Message};
use super::backend::{RsaBackend, compute_by_class};
use super::batch::Source;
use super::key::{KeyHandle, KeyParts, Restriction};
use super::random::{Randomness, Streams};
use super::scheme::sealed::Sealed;
use super::scheme::{AnyScheme, Scheme, permit};
use super::signatures::Signatures;
use crate::rsa::Error;

/// Signs batches of messages with a backend and a scheme.
///
/// The methods take a random number generator for blinding and for PSS salts; PKCS#1 v1.5 without
/// blinding does not use it.
#[derive(Debug)]
pub struct BatchSigner<B, S> {
    backend: B,
    scheme: S,
    narrowest: Restriction,
    blinding: bool,
}

impl<B: RsaBackend, S: Scheme> BatchSigner<B, S> {
    /// Creates a signer that blinds and checks. `backend` may be a reference. Keep a signer for many
    /// calls: for a typed [`Pss`](super::Pss) this computes some digests of the empty message.
    pub fn new(backend: B, scheme: S) -> Self {
        Self {
            backend,
            narrowest: scheme.narrowest(),
            scheme,
            blinding: true,
        }
    }

    /// Turns the blinding of the base on or off; it is on by default.
    ///
    /// Blinding multiplies the encoded message m by `r^e` for a fresh random r, and the power `(m
    /// r^e)^(d - 1)` by `m r^(e - 1)`. So an attacker who chooses messages does not choose the
    /// numbers that are exponentiated. The exponentiations are constant-time even without it: no
    /// branch and no address depends on the base.
    ///
    /// Blinding is a second defence where constant time in software does not help. Examples are
    /// power analysis and other physical channels, processors whose multiplications or clock depend
    /// on the data (Hertzbleed), and faults aimed at a chosen input. It does not hide the
    /// exponents. It costs one more exponentiation by e and a few multiplications for each
    /// signature; `docs/performance.md` has the measured figure.
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
    /// [`Error::Rng`], or the backend's error if it failed as a whole. The error of a single
    /// signature is stored in its place: [`Error::KeyTooShort`], [`Error::KeyRestricted`], or
    /// [`Error::Fault`] for a result that did not pass its check.
    pub fn sign<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &KeyHandle,
        messages: &[M],
    ) -> Result<Signatures, Error> {
        let (scheme, narrowest) = (&self.scheme, self.narrowest);
        self.sign_items(rng, messages.len(), |i| {
            (key, scheme, narrowest, Message(messages[i].as_ref()))
        })
    }

    /// Hashes and signs messages, each with its own key. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign).
    pub fn sign_each<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        messages: &[(&KeyHandle, M)],
    ) -> Result<Signatures, Error> {
        let (scheme, narrowest) = (&self.scheme, self.narrowest);
        self.sign_items(rng, messages.len(), |i| {
            let (key, message) = &messages[i];
            (*key, scheme, narrowest, Message(message.as_ref()))
        })
    }

    /// Signs `digests`, made by the scheme's hash function, with one key.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign), and [`Error::DigestLength`] in the place of a digest of wrong
    /// length.
    pub fn sign_prehash<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &KeyHandle,
        digests: &[M],
    ) -> Result<Signatures, Error> {
        let (scheme, narrowest) = (&self.scheme, self.narrowest);
        self.sign_items(rng, digests.len(), |i| {
            (key, scheme, narrowest, Digest(digests[i].as_ref()))
        })
    }

    /// Signs digests, each with its own key. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`sign_prehash`](Self::sign_prehash).
    pub fn sign_prehash_each<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        digests: &[(&KeyHandle, M)],
    ) -> Result<Signatures, Error> {
        let (scheme, narrowest) = (&self.scheme, self.narrowest);
        self.sign_items(rng, digests.len(), |i| {
            let (key, digest) = &digests[i];
            (*key, scheme, narrowest, Digest(digest.as_ref()))
        })
    }

    /// Signs what `item` returns for each of `count` positions.
    fn sign_items<'s, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        count: usize,
        item: impl Fn(usize) -> Item<'s, S> + Sync,
    ) -> Result<Signatures, Error>
    where
        S: 's,
    {
        let draws_salts = || (0..count).any(|i| item(i).1.is_randomized());
        let streams = match self.blinding || draws_salts() {
            true => Streams::seeded(rng)?,
            false => Streams::none(),
        };
        let source = ToSign { item: &item };
        compute_by_class(&self.backend, count, &source, &streams, self.blinding)
            .map(Signatures::new)
    }
}

impl<B: RsaBackend> BatchSigner<B, AnyScheme> {
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
    pub fn sign_mixed<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        messages: &[(&KeyHandle, AnyScheme, M)],
    ) -> Result<Signatures, Error> {
        self.sign_items(rng, messages.len(), |i| {
            let (key, scheme, message) = &messages[i];
            let message = Message(message.as_ref());
            (*key, scheme, scheme.narrowest(), message)
        })
    }

    /// Signs digests, each with its own key and scheme, in one batch.
    ///
    /// # Errors
    ///
    /// Those of [`sign_prehash`](Self::sign_prehash).
    pub fn sign_prehash_mixed<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        digests: &[(&KeyHandle, AnyScheme, M)],
    ) -> Result<Signatures, Error> {
        self.sign_items(rng, digests.len(), |i| {
            let (key, scheme, digest) = &digests[i];
            let digest = Digest(digest.as_ref());
            (*key, scheme, scheme.narrowest(), digest)
        })
    }
}

/// A message to sign or verify, or its digest.
pub(super) enum Content<'a> {
    /// A message.
    Message(&'a [u8]),
    /// The digest of a message by the scheme's hash function.
    Digest(&'a [u8]),
}

impl Content<'_> {
    /// Passes the digest to `f`, or fails as [`check`](Self::check).
    pub(super) fn with_digest<S: Scheme, T>(
        &self,
        scheme: &S,
        f: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check(scheme)?;
        match self {
            Self::Message(message) => scheme.with_digest(message, f),
            Self::Digest(digest) => f(digest),
        }
    }

    /// Fails with [`Error::DigestLength`] for a batch of one, if the scheme's digests have another
    /// length.
    pub(super) fn check<S: Scheme>(&self, scheme: &S) -> Result<(), Error> {
        let expected = scheme.digest_len();
        match self {
            Self::Digest(digest) if digest.len() != expected => Err(Error::DigestLength {
                index: 0,
                len: digest.len(),
                expected,
            }),
            Self::Digest(_) | Self::Message(_) => Ok(()),
        }
    }
}

/// Fails if `digest` cannot be signed with `key`; the error is that of a batch of one.
#[cfg(feature = "queue")]
pub(crate) fn check_prehash(
    key: &KeyHandle,
    scheme: AnyScheme,
    digest: &[u8],
) -> Result<(), Error> {
    Digest(digest).check(&scheme)?;
    permit(key.restriction(), scheme.narrowest())
}

/// A source that encodes what is to be signed.
struct ToSign<'f, 's, S> {
    /// The item at each position of the batch.
    item: &'f (dyn Fn(usize) -> Item<'s, S> + Sync),
}

/// The key, the scheme, the narrowest restriction of its keys, and the content.
type Item<'s, S> = (&'s KeyHandle, &'s S, Restriction, Content<'s>);

impl<S: Scheme> Source for ToSign<'_, '_, S> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn encode(
        &self,
        position: usize,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error> {
        let (key, scheme, narrowest, content) = (self.item)(position);
        permit(key.restriction(), narrowest)?;
        content.with_digest(scheme, |digest| {
            scheme.encode(digest, key.bits(), randomness, em)
        })
    }
}
