//! The issuer's part: makes blind signatures.

use rand_core::TryCryptoRng;

use super::Variant;
use crate::rsa::Error;
use crate::rsa::backend::{RsaBackend, compute_by_class};
use crate::rsa::blocks::{Blocks, Range};
use crate::rsa::key::KeyHandle;
use crate::rsa::random::Streams;
use crate::rsa::signatures::Signatures;

/// Signs batches of blinded messages with a backend (BlindSign of RFC 9474, section 4.3).
///
/// The private operation is that of [`BatchSigner`](crate::rsa::BatchSigner): its base is blinded
/// again, against side channels, and every result is checked before it is returned. The operation
/// is the same for all variants, so the signer needs no [`Variant`].
///
/// A key must be used for blind signatures alone, since a client can have anything signed. The
/// caller must limit how many signatures a client gets.
#[derive(Debug)]
pub struct BlindSigner<B> {
    backend: B,
}

impl<B: RsaBackend> BlindSigner<B> {
    /// Creates a signer on `backend`, which may be a reference.
    pub fn new(backend: B) -> Self {
        Self { backend }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Signs blinded messages with one key. Returns blind signatures in the same order, each as
    /// long as the modulus.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`], or the backend's error if it failed as a whole. The error of a single
    /// message is stored in its place:
    ///
    /// * [`Error::BlockOutOfRange`] if it is not as long as the modulus in bytes, or not below it;
    ///
    /// * [`Error::KeyRestricted`] for a key that may sign by no [`Variant`];
    ///
    /// * [`Error::Fault`] for a result that did not pass its check.
    pub fn sign<T: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        key: &KeyHandle,
        blinded: &[T],
    ) -> Result<Signatures, Error> {
        self.sign_items(rng, blinded.len(), |i| (key, blinded[i].as_ref()))
    }

    /// Signs blinded messages, each with its own key. The keys may differ in size.
    ///
    /// # Errors
    ///
    /// Those of [`sign`](Self::sign).
    pub fn sign_each<T: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        blinded: &[(&KeyHandle, T)],
    ) -> Result<Signatures, Error> {
        self.sign_items(rng, blinded.len(), |i| {
            let (key, message) = &blinded[i];
            (*key, message.as_ref())
        })
    }

    fn sign_items<'b, R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        count: usize,
        item: impl Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync,
    ) -> Result<Signatures, Error> {
        let source = Blocks {
            item: &item,
            range: Range::BelowModulus,
            check_key,
        };
        let streams = Streams::seeded(rng)?;
        compute_by_class(&self.backend, count, &source, &streams, true).map(Signatures::new)
    }
}

/// Fails if the key permits no variant. A restriction sets the shortest salt, so a key that permits
/// any variant permits one with a salt.
fn check_key(key: &KeyHandle) -> Result<(), Error> {
    Variant::PssRandomized.check_key(key.restriction())
}
