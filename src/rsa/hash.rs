//! Hash functions chosen at run time, and the mask generation function MGF1.

use core::fmt;

use pkcs8::ObjectIdentifier;
use sha2::Digest;
use sha2::digest::OutputSizeUser;
use sha2::digest::const_oid::AssociatedOid;
use sha2::digest::typenum::Unsigned;
use zeroize::Zeroize;

/// A hash function of the SHA-2 family (FIPS 180-4) or the SHA-3 family (FIPS 202).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Hash {
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// SHA-512/224.
    Sha512_224,
    /// SHA-512/256.
    Sha512_256,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
}

/// Evaluates an expression with the type of a [`Hash`].
macro_rules! with_type {
    ($hash:expr, $D:ident => $value:expr) => {{
        macro_rules! with {
            ($type:path) => {{
                type $D = $type;
                $value
            }};
        }
        match $hash {
            $crate::rsa::hash::Hash::Sha224 => with!(::sha2::Sha224),
            $crate::rsa::hash::Hash::Sha256 => with!(::sha2::Sha256),
            $crate::rsa::hash::Hash::Sha384 => with!(::sha2::Sha384),
            $crate::rsa::hash::Hash::Sha512 => with!(::sha2::Sha512),
            $crate::rsa::hash::Hash::Sha512_224 => with!(::sha2::Sha512_224),
            $crate::rsa::hash::Hash::Sha512_256 => with!(::sha2::Sha512_256),
            $crate::rsa::hash::Hash::Sha3_224 => with!(::sha3::Sha3_224),
            $crate::rsa::hash::Hash::Sha3_256 => with!(::sha3::Sha3_256),
            $crate::rsa::hash::Hash::Sha3_384 => with!(::sha3::Sha3_384),
            $crate::rsa::hash::Hash::Sha3_512 => with!(::sha3::Sha3_512),
        }
    }};
}

pub(super) use with_type;

impl Hash {
    const ALL: [Self; 10] = [
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Sha512_224,
        Self::Sha512_256,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
    ];

    /// The length of a digest in bytes.
    #[must_use]
    pub const fn digest_len(self) -> usize {
        with_type!(self, D => <D as OutputSizeUser>::OutputSize::USIZE)
    }

    /// The hash function with this object identifier.
    pub(super) fn of(oid: ObjectIdentifier) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.oid() == oid)
    }

    /// The hash function `D`, which may have no object identifier. The digest of the empty message
    /// identifies it.
    pub(super) fn of_type<D: Digest>() -> Option<Self> {
        let empty = D::digest([]);
        let same_len = Self::ALL
            .into_iter()
            .filter(|hash| hash.digest_len() == empty.len());
        let mut same = same_len.filter(|hash| *hash.digest(&[]).as_ref() == empty[..]);
        same.next()
    }

    pub(super) fn oid(self) -> ObjectIdentifier {
        with_type!(self, D => D::OID)
    }

    pub(crate) fn digest(self, message: &[u8]) -> AnyDigest {
        with_type!(self, D => AnyDigest::new(&D::digest(message)))
    }
}

/// A digest by any [`Hash`], stored inline: no item of a batch needs an allocation for it.
pub(crate) struct AnyDigest {
    octets: [u8; 64],
    len: usize,
}

impl AnyDigest {
    /// # Panics
    ///
    /// If `digest` is longer than 64 octets.
    pub(crate) fn new(digest: &[u8]) -> Self {
        let mut octets = [0; 64];
        octets[..digest.len()].copy_from_slice(digest);
        Self {
            octets,
            len: digest.len(),
        }
    }
}

impl AsRef<[u8]> for AnyDigest {
    fn as_ref(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// Adds (exclusive or) to `octets` the mask that MGF1 makes of `seed` (RFC 8017, appendix B.2.1).
pub(super) fn add_mask<D: Digest>(seed: &[u8], octets: &mut [u8]) {
    let len = <D as Digest>::output_size();
    for (counter, chunk) in (0u32..).zip(octets.chunks_mut(len)) {
        let mut mask = D::new()
            .chain_update(seed)
            .chain_update(counter.to_be_bytes())
            .finalize();
        for (octet, mask) in chunk.iter_mut().zip(&mask) {
            *octet ^= mask;
        }
        mask.as_mut_slice().zeroize();
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha224 => "SHA-224",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
            Self::Sha512_224 => "SHA-512/224",
            Self::Sha512_256 => "SHA-512/256",
            Self::Sha3_224 => "SHA3-224",
            Self::Sha3_256 => "SHA3-256",
            Self::Sha3_384 => "SHA3-384",
            Self::Sha3_512 => "SHA3-512",
        })
    }
}
