//! Encryption schemes chosen at run time.

use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use rand_core::TryCryptoRng;

use super::oaep;
use super::sealed::Sealed;
use super::{RsaesPkcs1v15, check_oaep_size, oaep_overhead};
use crate::rsa::Error;
use crate::rsa::hash::{Hash, with_type};
use crate::rsa::key::KeyHandle;

/// RSAES-PKCS1-v1_5 or RSAES-OAEP (RFC 8017, section 7) with parameters known at run time: see
/// [`BatchDecryptor::decrypt_mixed`](crate::rsa::BatchDecryptor::decrypt_mixed).
///
/// For OAEP with a hash function that [`Hash`](enum@Hash) lacks, such as SHA-1, use
/// [`RsaesOaep`](super::RsaesOaep).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AnyEncryptionScheme<'l> {
    /// As [`RsaesPkcs1v15`].
    Pkcs1v15,
    /// As [`RsaesOaep`](super::RsaesOaep).
    Oaep {
        /// The hash function for the label.
        hash: Hash,
        /// The hash function for the mask generation; usually the same.
        mgf_hash: Hash,
        /// The label, which is public; usually empty.
        label: &'l [u8],
    },
}

impl Sealed for AnyEncryptionScheme<'_> {
    fn check_size(&self, n_bits: u32) -> Result<(), Error> {
        match self {
            Self::Pkcs1v15 => RsaesPkcs1v15.check_size(n_bits),
            Self::Oaep { hash, .. } => check_oaep_size(hash.digest_len(), n_bits),
        }
    }

    fn overhead(&self) -> usize {
        match self {
            Self::Pkcs1v15 => RsaesPkcs1v15.overhead(),
            Self::Oaep { hash, .. } => oaep_overhead(hash.digest_len()),
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
            } => {
                let label_hash = hash.digest(label);
                with_type!(mgf_hash, M => oaep::encode::<M, R>(message, label_hash.as_ref(), rng, em))
            }
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
            } => {
                let label_hash = hash.digest(label);
                with_type!(mgf_hash, M => oaep::decode::<M>(em, label_hash.as_ref()))
            }
        }
    }
}
