//! Encryption schemes chosen at run time.

use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use rand_core::TryCryptoRng;
use sha2::Digest;

use super::RsaesPkcs1v15;
use super::oaep;
use super::sealed::Sealed;
use crate::rsa::Error;
use crate::rsa::hash::{AnyDigest, Hash, with_type};
use crate::rsa::key::KeyHandle;

/// RSAES-PKCS1-v1_5 or RSAES-OAEP (RFC 8017, section 7) with parameters known at run time: see
/// [`BatchDecryptor::decrypt_mixed`](crate::rsa::BatchDecryptor::decrypt_mixed).
///
/// ```
/// use batch_modexp::rsa::{AnyEncryptionScheme, Hash, OaepHash};
///
/// // "RSA/ECB/OAEPWithSHA-256AndMGF1Padding" of Java.
/// let scheme = AnyEncryptionScheme::Oaep {
///     hash: Hash::Sha256.into(),
///     mgf_hash: OaepHash::Sha1,
///     label: b"",
/// };
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AnyEncryptionScheme<'l> {
    /// As [`RsaesPkcs1v15`].
    Pkcs1v15,
    /// As [`RsaesOaep`](super::RsaesOaep).
    Oaep {
        /// The hash function for the label.
        hash: OaepHash,
        /// The hash function for the mask generation; usually the same.
        mgf_hash: OaepHash,
        /// The label, which is public; usually empty.
        label: &'l [u8],
    },
}

/// A hash function for OAEP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OaepHash {
    /// SHA-1, the default of many programs. Its collisions do not weaken OAEP (RFC 8017, appendix
    /// B.1).
    Sha1,
    /// SHA-2 or SHA-3.
    Other(Hash),
}

impl From<Hash> for OaepHash {
    fn from(hash: Hash) -> Self {
        Self::Other(hash)
    }
}

/// Evaluates an expression with the type of an [`OaepHash`].
macro_rules! with_oaep_type {
    ($hash:expr, $D:ident => $value:expr) => {
        match $hash {
            OaepHash::Sha1 => {
                type $D = sha1::Sha1;
                $value
            }
            OaepHash::Other(hash) => with_type!(hash, $D => $value),
        }
    };
}

impl OaepHash {
    fn digest_len(self) -> usize {
        with_oaep_type!(self, D => <D as Digest>::output_size())
    }

    fn digest(self, message: &[u8]) -> AnyDigest {
        with_oaep_type!(self, D => AnyDigest::new(&D::digest(message)))
    }
}

impl Sealed for AnyEncryptionScheme<'_> {
    fn overhead(&self) -> usize {
        match self {
            Self::Pkcs1v15 => RsaesPkcs1v15.overhead(),
            Self::Oaep { hash, .. } => oaep::overhead(hash.digest_len()),
        }
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        message: &[u8],
        rng: &mut R,
        em: &mut [u8],
    ) -> Result<(), R::Error> {
        match *self {
            Self::Pkcs1v15 => RsaesPkcs1v15.encode(message, rng, em),
            Self::Oaep {
                hash,
                mgf_hash,
                label,
            } => with_oaep_type!(mgf_hash, M => {
                oaep::encode::<M, R>(message, hash.digest(label).as_ref(), rng, em)
            }),
        }
    }

    fn decode(
        &self,
        key: &KeyHandle,
        ciphertext: &[u8],
        em: &mut [u8],
    ) -> Result<Secret<Vec<u8>>, Error> {
        match *self {
            Self::Pkcs1v15 => RsaesPkcs1v15.decode(key, ciphertext, em),
            Self::Oaep {
                hash,
                mgf_hash,
                label,
            } => with_oaep_type!(mgf_hash, M => oaep::decode::<M>(em, hash.digest(label).as_ref())),
        }
    }
}
