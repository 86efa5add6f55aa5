//! Encryption schemes: encoding of messages before encryption, and decoding after decryption.

use alloc::vec::Vec;
use core::marker::PhantomData;

use batch_modexp_core::secret::Secret;
use rand_core::TryCryptoRng;
use sha2::Digest;
use sha2::digest::Output;

pub use self::any::{AnyEncryptionScheme, OaepHash};
use self::sealed::Sealed;
use super::key::{KeyHandle, Restriction};
use super::scheme::permit;
use crate::rsa::Error;

mod any;
pub(super) mod oaep;
pub(super) mod pkcs1_v15;

mod sealed {
    use super::*;

    pub trait Sealed {
        /// The least difference between the lengths of an encoded message and its message, in
        /// octets. No modulus may be shorter.
        fn overhead(&self) -> usize;

        /// Encodes `message` in `em`, which is as long as a sufficiently long modulus. The error is
        /// that of `rng`.
        fn encode<R: TryCryptoRng + ?Sized>(
            &self,
            message: &[u8],
            rng: &mut R,
            em: &mut [u8],
        ) -> Result<(), R::Error>;

        /// Decodes the message in `em`, the result of the private operation on `ciphertext`. Both
        /// are as long as the modulus.
        fn decode(
            &self,
            key: &KeyHandle,
            ciphertext: &[u8],
            em: &mut [u8],
        ) -> Result<Secret<Vec<u8>>, Error>;
    }
}

/// An encryption scheme: [`RsaesPkcs1v15`], [`RsaesOaep`], or [`AnyEncryptionScheme`] to choose at
/// run time.
pub trait EncryptionScheme: Sealed {}

impl<S: Sealed> EncryptionScheme for S {}

/// RSAES-PKCS1-v1_5 (RFC 8017, section 7.2) with implicit rejection
/// (draft-irtf-cfrg-rsa-guidance-10, section 7.2).
///
/// A ciphertext with wrong padding does not fail: it decrypts to an alternative message, which only
/// holders of the key can tell from a real one. Its length and octets depend only on the ciphertext
/// and the private exponent, so the same ciphertext always gives the same message.
///
/// An attacker who sends chosen ciphertexts (Bleichenbacher, CRYPTO 1998) learns nothing if the
/// protocol treats that message like any other. It must not reveal whether length or content was as
/// expected, and must inspect both without branches. Only the length of the message becomes public.
///
/// New protocols should use [`RsaesOaep`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RsaesPkcs1v15;

/// RSAES-OAEP (RFC 8017, section 7.1) with the hash function `D` for the label and `M` for MGF1.
///
/// A ciphertext with wrong padding fails with [`Error::Decryption`], whatever the fault. All of the
/// padding is checked without branches before one verdict becomes public (Manger, CRYPTO 2001). The
/// length of a decrypted message becomes public too.
pub struct RsaesOaep<D: Digest, M: Digest = D> {
    label_hash: Output<D>,
    mgf: PhantomData<fn() -> M>,
}

impl<D: Digest, M: Digest> RsaesOaep<D, M> {
    /// Creates the scheme with an empty label.
    #[must_use]
    pub fn new() -> Self {
        Self::with_label(&[])
    }

    /// Creates the scheme with `label`, which is public, hashed here and of any length.
    #[must_use]
    pub fn with_label(label: &[u8]) -> Self {
        Self {
            label_hash: D::digest(label),
            mgf: PhantomData,
        }
    }
}

impl<D: Digest, M: Digest> Default for RsaesOaep<D, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Digest, M: Digest> Clone for RsaesOaep<D, M> {
    fn clone(&self) -> Self {
        Self {
            label_hash: self.label_hash.clone(),
            mgf: PhantomData,
        }
    }
}

impl<D: Digest, M: Digest> core::fmt::Debug for RsaesOaep<D, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RsaesOaep").finish_non_exhaustive()
    }
}

impl Sealed for RsaesPkcs1v15 {
    fn overhead(&self) -> usize {
        pkcs1_v15::SHORTEST_OVERHEAD.into()
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        message: &[u8],
        rng: &mut R,
        em: &mut [u8],
    ) -> Result<(), R::Error> {
        pkcs1_v15::encode(message, rng, em)
    }

    fn decode(
        &self,
        key: &KeyHandle,
        ciphertext: &[u8],
        em: &mut [u8],
    ) -> Result<Secret<Vec<u8>>, Error> {
        let alternative = pkcs1_v15::Alternative::new(&key.parts().private().d_hash, ciphertext);
        Ok(pkcs1_v15::decode(em, &alternative))
    }
}

impl<D: Digest, M: Digest> Sealed for RsaesOaep<D, M> {
    fn overhead(&self) -> usize {
        oaep::overhead(self.label_hash.len())
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        message: &[u8],
        rng: &mut R,
        em: &mut [u8],
    ) -> Result<(), R::Error> {
        oaep::encode::<M, R>(message, &self.label_hash, rng, em)
    }

    fn decode(&self, _: &KeyHandle, _: &[u8], em: &mut [u8]) -> Result<Secret<Vec<u8>>, Error> {
        oaep::decode::<M>(em, &self.label_hash)
    }
}

/// Fails unless a key with a modulus of `n_bits` bits may encrypt and decrypt; the error is that of
/// a batch of one.
pub(super) fn check_key<S: Sealed>(
    scheme: &S,
    n_bits: u32,
    restriction: Restriction,
) -> Result<(), Error> {
    // No restriction is for encryption.
    permit(restriction, Restriction::None)?;
    let shortest = scheme.overhead();
    if n_bits.div_ceil(8) as usize >= shortest {
        return Ok(());
    }
    Err(Error::KeyTooShort {
        index: 0,
        bits: n_bits,
        min_bits: 8 * (shortest as u32 - 1) + 1,
    })
}
