//! Signature schemes chosen at run time.

use alloc::vec::Vec;

use rand_core::TryCryptoRng;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

use super::{Pkcs1v15, Pss, Scheme, emsa_pkcs1_v15, sealed};
use crate::rsa::Error;
use crate::rsa::hash::{Hash, with_type};
use crate::rsa::key::Restriction;

/// RSASSA-PKCS1-v1_5 or RSASSA-PSS (RFC 8017, section 8) with parameters known at run time, such as
/// for TLS: see [`BatchSigner::sign_mixed`](crate::rsa::BatchSigner::sign_mixed).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AnyScheme {
    /// As [`Pkcs1v15`](super::Pkcs1v15).
    Pkcs1v15 {
        /// The hash function.
        hash: Hash,
    },
    /// As [`Pss`](super::Pss).
    Pss {
        /// The hash function, also for the mask generation.
        hash: Hash,
        /// The length of the salt in bytes; verifiers expect [`Hash::digest_len`].
        salt_len: usize,
    },
}

impl AnyScheme {
    /// The hash function of the message.
    pub(crate) fn hash(&self) -> Hash {
        match *self {
            Self::Pkcs1v15 { hash } | Self::Pss { hash, .. } => hash,
        }
    }
}

impl sealed::Sealed for AnyScheme {
    fn narrowest(&self) -> Restriction {
        match *self {
            Self::Pkcs1v15 { .. } => Restriction::None,
            Self::Pss { hash, salt_len } => Restriction::PssWith {
                hash,
                min_salt_len: salt_len,
            },
        }
    }

    fn with_digest<T>(&self, message: &[u8], f: impl FnOnce(&[u8]) -> T) -> T {
        f(self.hash().digest(message).as_ref())
    }
}

/// Converts a typed scheme, for each hash function of [`Hash`].
macro_rules! from_types {
    ($($hash:ident),*) => {$(
        impl From<Pkcs1v15<$hash>> for AnyScheme {
            fn from(_: Pkcs1v15<$hash>) -> Self {
                Self::Pkcs1v15 { hash: Hash::$hash }
            }
        }

        impl From<Pss<$hash>> for AnyScheme {
            fn from(scheme: Pss<$hash>) -> Self {
                Self::Pss {
                    hash: Hash::$hash,
                    salt_len: scheme.salt_len,
                }
            }
        }
    )*};
}

from_types!(Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256);
from_types!(Sha3_224, Sha3_256, Sha3_384, Sha3_512);

impl Scheme for AnyScheme {
    type Digest = Vec<u8>;

    fn digest(&self, message: &[u8]) -> Vec<u8> {
        self.hash().digest(message).as_ref().to_vec()
    }

    fn digest_len(&self) -> usize {
        self.hash().digest_len()
    }

    fn is_randomized(&self) -> bool {
        match *self {
            Self::Pkcs1v15 { .. } => false,
            Self::Pss { salt_len, .. } => salt_len > 0,
        }
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        rng: &mut R,
        em: &mut [u8],
    ) -> Result<(), Error> {
        match *self {
            Self::Pkcs1v15 { hash } => emsa_pkcs1_v15::encode(hash.oid(), digest, n_bits, em),
            Self::Pss { hash, salt_len } => with_type!(hash, D => {
                Pss::<D>::with_salt_len(salt_len).encode(digest, n_bits, rng, em)
            }),
        }
    }

    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        min_salt_len: Option<usize>,
        em: &mut [u8],
    ) -> Result<bool, Error> {
        match *self {
            Self::Pkcs1v15 { hash } => emsa_pkcs1_v15::verify(hash.oid(), digest, n_bits, em),
            Self::Pss { hash, salt_len } => with_type!(hash, D => {
                Pss::<D>::with_salt_len(salt_len).verify_vartime(digest, n_bits, min_salt_len, em)
            }),
        }
    }
}
