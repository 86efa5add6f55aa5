//! Hash functions that are chosen at run time.

use alloc::vec::Vec;
use core::fmt;

use pkcs8::ObjectIdentifier;
use sha2::digest::const_oid::AssociatedOid;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A hash function of the SHA-2 family (FIPS 180-4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// The length of a digest in bytes.
    #[must_use]
    pub const fn digest_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The one with this object identifier.
    pub(super) fn of(oid: ObjectIdentifier) -> Option<Self> {
        let all = [Self::Sha256, Self::Sha384, Self::Sha512];
        all.into_iter().find(|hash| hash.oid() == oid)
    }

    /// Whether it is `D`, which may have no object identifier: the digest of nothing tells them apart.
    pub(super) fn is<D: Digest>(self) -> bool {
        D::digest([])[..] == self.digest(&[])
    }

    pub(super) fn oid(self) -> ObjectIdentifier {
        match self {
            Self::Sha256 => Sha256::OID,
            Self::Sha384 => Sha384::OID,
            Self::Sha512 => Sha512::OID,
        }
    }

    pub(super) fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        })
    }
}
