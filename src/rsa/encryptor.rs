//! Encrypts messages under public keys.

use rand_core::TryCryptoRng;

use super::backend::{RsaBackend, compute_by_class};
use super::batch::Source;
use super::encryption::{EncryptionScheme, check_key};
use super::key::{KeyParts, PublicKey};
use super::random::{Randomness, Streams};
use super::signatures::Ciphertexts;
use crate::rsa::Error;

/// Encrypts batches of messages with a backend and a scheme (RFC 8017, section 7).
///
/// Messages and seeds are secret: encoding and exponentiation are constant-time, and copies are
/// wiped. Keys and the lengths of messages are public.
///
/// ```
/// use batch_modexp::backend::Serial;
/// use batch_modexp::rsa::{BatchDecryptor, BatchEncryptor, KeyHandle, RsaesOaep, sha2::Sha256};
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let rng = &mut getrandom::SysRng;
/// let encryptor = BatchEncryptor::new(Serial, RsaesOaep::<Sha256>::new());
/// let ciphertexts = encryptor.encrypt(rng, &key.public_key(), &["one", "two"])?;
///
/// let decryptor = BatchDecryptor::new(Serial, RsaesOaep::<Sha256>::new());
/// let messages = decryptor.decrypt(rng, &key, &[ciphertexts.get(0)?, ciphertexts.get(1)?])?;
/// assert_eq!((messages.get(0)?, messages.get(1)?), (&b"one"[..], &b"two"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchEncryptor<B, S> {
    backend: B,
    scheme: S,
}

impl<B: RsaBackend, S: EncryptionScheme + Sync> BatchEncryptor<B, S> {
    /// Creates an encryptor for the scheme. `backend` may be a reference.
    pub fn new(backend: B, scheme: S) -> Self {
        Self { backend, scheme }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Encrypts `messages` under one key.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], or the backend's error if it failed as a whole. The error of a single
    /// message is stored in its place: [`Error::MessageTooLong`], [`Error::KeyTooShort`], or
    /// [`Error::KeyRestricted`] for a key that may only verify.
    pub fn encrypt<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &PublicKey,
        messages: &[M],
    ) -> Result<Ciphertexts, Error> {
        self.encrypt_items(rng, messages.len(), |i| (key, messages[i].as_ref()))
    }

    /// Encrypts messages, each under its own key. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`encrypt`](Self::encrypt).
    pub fn encrypt_each<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        messages: &[(&PublicKey, M)],
    ) -> Result<Ciphertexts, Error> {
        self.encrypt_items(rng, messages.len(), |i| {
            let (key, message) = &messages[i];
            (*key, message.as_ref())
        })
    }

    fn encrypt_items<'m, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        count: usize,
        item: impl Fn(usize) -> (&'m PublicKey, &'m [u8]) + Sync,
    ) -> Result<Ciphertexts, Error> {
        let streams = Streams::seeded(rng)?;
        let source = ToEncrypt {
            scheme: &self.scheme,
            item: &item,
        };
        compute_by_class(&self.backend, count, &source, &streams, false).map(Ciphertexts::new)
    }
}

/// Encodes messages, and returns their powers as ciphertexts.
struct ToEncrypt<'f, 'm, S> {
    scheme: &'f S,
    /// The key and the message at each position of the batch.
    item: &'f (dyn Fn(usize) -> (&'m PublicKey, &'m [u8]) + Sync),
}

impl<S: EncryptionScheme + Sync> Source for ToEncrypt<'_, '_, S> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn encode(
        &self,
        position: usize,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error> {
        let (key, message) = (self.item)(position);
        check_key(self.scheme, key.bits(), key.restriction())?;
        let max_len = em.len().saturating_sub(self.scheme.overhead());
        if message.len() > max_len {
            return Err(Error::MessageTooLong {
                index: 0,
                len: message.len(),
                max_len,
            });
        }
        let encoded = self.scheme.encode(message, randomness, em);
        encoded.map_err(|_| Error::Rng)
    }
}
