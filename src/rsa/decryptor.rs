//! Decrypts ciphertexts.

use batch_modexp_core::secret::scrubbed;
use crypto_bigint::Limb;
use rand_core::TryCryptoRng;

use super::backend::{RsaBackend, compute_by_class};
use super::batch::Source;
use super::blocks::{Range, copy_block};
use super::encryption::{AnyEncryptionScheme, EncryptionScheme, check_key};
use super::key::{KeyHandle, KeyParts};
use super::random::{Randomness, Streams};
use super::signatures::SecretOctets;
use crate::rsa::Error;

/// Decrypts batches of ciphertexts with a backend and a scheme.
///
/// The private operation is that of [`BatchSigner`](super::BatchSigner): blinded unless that is
/// turned off, and checked with the public exponent for every backend. So a fault is an error and
/// no oracle. Until the message is decoded, no branch and no address depends on a secret, except
/// for what the scheme makes public.
///
/// ```
/// use batch_modexp::backend::Serial;
/// use batch_modexp::rsa::{BatchDecryptor, KeyHandle, RsaesOaep, sha2::Sha256};
/// # use batch_modexp::rsa::Error;
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let decryptor = BatchDecryptor::new(Serial, RsaesOaep::<Sha256>::new());
/// let ciphertexts = [vec![1; key.size()], vec![2; key.size()]]; // made up
/// let messages = decryptor.decrypt(&mut getrandom::SysRng, &key, &ciphertexts)?;
/// assert_eq!(messages.get(1).unwrap_err(), Error::Decryption { index: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BatchDecryptor<B, S> {
    backend: B,
    scheme: S,
    blinding: bool,
    range: Range,
}

impl<B: RsaBackend, S: EncryptionScheme + Sync> BatchDecryptor<B, S> {
    /// Creates a decryptor that blinds and checks. `backend` may be a reference.
    pub fn new(backend: B, scheme: S) -> Self {
        Self {
            backend,
            scheme,
            blinding: true,
            range: Range::BelowModulus,
        }
    }

    /// Turns the blinding of the base on or off; it is on by default. See
    /// [`BatchSigner::blinding`](super::BatchSigner::blinding). It matters more here, because
    /// others choose the ciphertexts.
    #[must_use]
    pub fn blinding(mut self, on: bool) -> Self {
        self.blinding = on;
        self
    }

    /// Turns the range check of SP 800-56B (Rev. 2, section 7.1.2) on or off; it is off by default.
    ///
    /// With it, a ciphertext c must satisfy 1 < c < n - 1, as validation under FIPS 140-3 requires;
    /// without it, 0 <= c < n (RFC 8017, section 5.1.2). The difference is the ciphertexts 0, 1 and
    /// n - 1, which no key hides.
    #[must_use]
    pub fn sp800_56b_range(mut self, on: bool) -> Self {
        self.range = match on {
            true => Range::Sp800_56b,
            false => Range::BelowModulus,
        };
        self
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Decrypts `ciphertexts` with one key. Returns messages in the same order.
    /// Their buffer is wiped on drop.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], or the backend's error if it failed as a whole. The error of a single
    /// ciphertext is stored in its place:
    ///
    /// * [`Error::BlockOutOfRange`] if it is not as long as the modulus in bytes, or not in the
    ///   range;
    ///
    /// * [`Error::KeyTooShort`];
    ///
    /// * [`Error::KeyRestricted`] for a key that may only sign;
    ///
    /// * [`Error::Decryption`] for wrong padding with [`RsaesOaep`](super::RsaesOaep), never with
    ///   [`RsaesPkcs1v15`](super::RsaesPkcs1v15);
    ///
    /// * [`Error::Fault`] for a result that did not pass its check.
    pub fn decrypt<C: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &KeyHandle,
        ciphertexts: &[C],
    ) -> Result<SecretOctets, Error> {
        let scheme = &self.scheme;
        self.decrypt_items(rng, ciphertexts.len(), |i| {
            (key, scheme, ciphertexts[i].as_ref())
        })
    }

    /// Decrypts ciphertexts, each with its own key. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`decrypt`](Self::decrypt).
    pub fn decrypt_each<C: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        ciphertexts: &[(&KeyHandle, C)],
    ) -> Result<SecretOctets, Error> {
        let scheme = &self.scheme;
        self.decrypt_items(rng, ciphertexts.len(), |i| {
            let (key, ciphertext) = &ciphertexts[i];
            (*key, scheme, ciphertext.as_ref())
        })
    }

    /// Decrypts the key, scheme and ciphertext that `item` returns for each of `count` positions.
    fn decrypt_items<'c, T: EncryptionScheme + Sync + 'c, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        count: usize,
        item: impl Fn(usize) -> Item<'c, T> + Sync,
    ) -> Result<SecretOctets, Error> {
        let streams = match self.blinding {
            true => Streams::seeded(rng)?,
            false => Streams::none(),
        };
        let source = ToDecrypt {
            range: self.range,
            item: &item,
        };
        compute_by_class(&self.backend, count, &source, &streams, self.blinding)
            .map(SecretOctets::new)
    }
}

impl<B: RsaBackend> BatchDecryptor<B, AnyEncryptionScheme<'_>> {
    /// Decrypts ciphertexts, each with its own key and scheme, in one batch.
    ///
    /// ```
    /// use batch_modexp::backend::Serial;
    /// use batch_modexp::rsa::{AnyEncryptionScheme, BatchDecryptor, BatchEncryptor, Hash, KeyHandle};
    ///
    /// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
    /// let (key, rng) = (KeyHandle::from_pkcs8_pem(&pem)?, &mut getrandom::SysRng);
    /// let pkcs1v15 = AnyEncryptionScheme::Pkcs1v15;
    /// let hash = Hash::Sha256.into();
    /// let oaep = AnyEncryptionScheme::Oaep { hash, mgf_hash: hash, label: b"" };
    /// let encrypt = |rng: &mut getrandom::SysRng, scheme, message| {
    ///     BatchEncryptor::new(Serial, scheme).encrypt(rng, &key.public_key(), &[message])?.into_vec()
    /// };
    /// let batch = [
    ///     (&key, pkcs1v15, encrypt(rng, pkcs1v15, "one")?),
    ///     (&key, oaep, encrypt(rng, oaep, "two")?),
    /// ];
    /// let messages = BatchDecryptor::new(Serial, oaep).decrypt_mixed(rng, &batch)?;
    /// assert_eq!((messages.get(0)?, messages.get(1)?), (&b"one"[..], &b"two"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`decrypt`](Self::decrypt).
    pub fn decrypt_mixed<C: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        ciphertexts: &[(&KeyHandle, AnyEncryptionScheme<'_>, C)],
    ) -> Result<SecretOctets, Error> {
        self.decrypt_items(rng, ciphertexts.len(), |i| {
            let (key, scheme, ciphertext) = &ciphertexts[i];
            (*key, scheme, ciphertext.as_ref())
        })
    }
}

/// A source that takes numbers from ciphertexts, and decodes messages from the results.
struct ToDecrypt<'f, 'c, S> {
    range: Range,
    /// The item at each position of the batch.
    item: &'f (dyn Fn(usize) -> Item<'c, S> + Sync),
}

/// The key, the scheme and the ciphertext.
type Item<'c, S> = (&'c KeyHandle, &'c S, &'c [u8]);

impl<S: EncryptionScheme> Source for ToDecrypt<'_, '_, S> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        let (key, scheme, ciphertext) = (self.item)(position);
        check_key(scheme, key.bits(), key.restriction())?;
        copy_block(ciphertext, em)
    }

    fn check(&self, key: &KeyParts, em: &[Limb]) -> Result<(), Error> {
        self.range.check(key, em)
    }

    fn decode(&self, position: usize, em: &mut [u8], output: &mut [u8]) -> Result<usize, Error> {
        let (key, scheme, ciphertext) = (self.item)(position);
        // Enough to wipe what hash functions leave on the stack.
        let message = scrubbed(|| scheme.decode(key, ciphertext, em))?;
        output[..message.len()].copy_from_slice(&message);
        Ok(message.len())
    }
}
