//! Encryption schemes: how what a private operation returns becomes a message again.

use alloc::vec::Vec;
use core::marker::PhantomData;

use batch_modexp_core::secret::Secret;
use sha2::Digest;
use sha2::digest::Output;

use self::sealed::Sealed;
use super::key::{KeyHandle, Restriction};
use crate::rsa::Error;

pub(super) mod oaep;
pub(super) mod pkcs1_v15;

mod sealed {
    use super::*;

    pub trait Sealed {
        /// Fails if the key is too short for the scheme; the error is that of a batch of one.
        fn check_size(&self, key: &KeyHandle) -> Result<(), Error>;

        /// The message in `em`, which is the result of the private operation on `ciphertext`, all as long as the
        /// modulus.
        fn decode(
            &self,
            key: &KeyHandle,
            ciphertext: &[u8],
            em: &mut [u8],
        ) -> Result<Secret<Vec<u8>>, Error>;
    }
}

/// An encryption scheme: [`RsaesPkcs1v15`] or [`RsaesOaep`].
pub trait EncryptionScheme: Sealed {}

impl<S: Sealed> EncryptionScheme for S {}

/// RSAES-PKCS1-v1_5 (RFC 8017, section 7.2) with implicit rejection (draft-irtf-cfrg-rsa-guidance-10, section 7.2).
///
/// A ciphertext whose padding is wrong does not fail: it decrypts to a message that nobody can tell from a real one
/// without the key. Its length and octets follow from the ciphertext and the private exponent alone, so that
/// the same ciphertext always gives the same message. Who sends made-up ciphertexts learns nothing from the answer
/// (Bleichenbacher, CRYPTO 1998), as long as the protocol above goes on with that message as with any
/// other: it must not say whether the length, or what is in it, was as it expected, and must look at both
/// without branches. The length of the message becomes public, and nothing else.
///
/// New protocols should take [`RsaesOaep`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RsaesPkcs1v15;

/// RSAES-OAEP (RFC 8017, section 7.1) with the hash function `D` for the label and `M` for MGF1.
///
/// A ciphertext whose padding is wrong fails with [`Error::Decryption`], whatever is wrong with it: all of the padding is
/// looked at, without branches, before one verdict becomes public (Manger, CRYPTO 2001). The length of a message
/// that decrypts becomes public too.
pub struct RsaesOaep<D: Digest, M: Digest = D> {
    label_hash: Output<D>,
    mgf: PhantomData<fn() -> M>,
}

impl<D: Digest, M: Digest> RsaesOaep<D, M> {
    /// The scheme with an empty label.
    #[must_use]
    pub fn new() -> Self {
        Self::with_label(&[])
    }

    /// The scheme with `label`, which is not secret. It is hashed here; its length is not limited.
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
    /// The shortest key that can be imported has room for 11 octets.
    fn check_size(&self, _: &KeyHandle) -> Result<(), Error> {
        Ok(())
    }

    fn decode(
        &self,
        key: &KeyHandle,
        ciphertext: &[u8],
        em: &mut [u8],
    ) -> Result<Secret<Vec<u8>>, Error> {
        let alternative = pkcs1_v15::Alternative::new(&key.parts().d_hash, ciphertext);
        Ok(pkcs1_v15::decode(em, &alternative))
    }
}

impl<D: Digest, M: Digest> Sealed for RsaesOaep<D, M> {
    fn check_size(&self, key: &KeyHandle) -> Result<(), Error> {
        let shortest = 2 * self.label_hash.len() + 2;
        if key.size() >= shortest {
            return Ok(());
        }
        Err(Error::KeyTooShort {
            index: 0,
            bits: key.bits(),
            min_bits: 8 * (shortest as u32 - 1) + 1,
        })
    }

    fn decode(&self, _: &KeyHandle, _: &[u8], em: &mut [u8]) -> Result<Secret<Vec<u8>>, Error> {
        oaep::decode::<M>(em, &self.label_hash)
    }
}

/// Fails unless the key may decrypt; the error is that of a batch of one.
pub(super) fn check_key<S: Sealed>(scheme: &S, key: &KeyHandle) -> Result<(), Error> {
    match key.restriction() {
        Restriction::None => scheme.check_size(key),
        restriction => Err(Error::KeyRestricted {
            index: 0,
            restriction,
        }),
    }
}
