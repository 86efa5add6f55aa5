//! Signature schemes: encoding of digests before signing.

use core::marker::PhantomData;

use rand_core::TryCryptoRng;
use sha2::Digest;
use sha2::digest::const_oid::AssociatedOid;
use sha2::digest::{FixedOutputReset, Output};

pub use self::any::AnyScheme;
use self::emsa_pss::SaltLen;
use super::hash::Hash;
use super::key::Restriction;
use crate::rsa::Error;

mod any;
mod emsa_pkcs1_v15;
mod emsa_pss;

pub(super) mod sealed {
    use super::Restriction;

    pub trait Sealed {
        /// The narrowest restriction of a key that may sign by this scheme. Typed schemes compute some
        /// digests to find it, so signers and verifiers keep it.
        fn narrowest(&self) -> Restriction;

        /// Passes the digest of a message to `f`, without an allocation.
        fn with_digest<T>(&self, message: &[u8], f: impl FnOnce(&[u8]) -> T) -> T;
    }
}

/// A signature scheme with its hash function: [`Pkcs1v15`], [`Pss`], or [`AnyScheme`] to choose at
/// run time.
pub trait Scheme: sealed::Sealed + Sync {
    /// The output of the hash function.
    type Digest: AsRef<[u8]>;

    /// Hashes a message.
    fn digest(&self, message: &[u8]) -> Self::Digest;

    /// The length of a digest in bytes.
    fn digest_len(&self) -> usize;

    /// Whether a key with this restriction may sign by this scheme.
    fn is_permitted_by(&self, restriction: Restriction) -> bool {
        restriction.includes(self.narrowest())
    }

    /// Whether [`encode`](Self::encode) draws random octets.
    fn is_randomized(&self) -> bool;

    /// Encodes `digest` (EMSA) as a number of fewer than `n_bits` bits, the length of the modulus,
    /// in `encoded`, which is as long as the modulus in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTooShort`] for a batch of one, or [`Error::Rng`] if a salt cannot be drawn. The
    /// content of `encoded` is then unspecified.
    ///
    /// # Panics
    ///
    /// If `encoded` is not as long as the modulus.
    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        rng: &mut R,
        encoded: &mut [u8],
    ) -> Result<(), Error>;

    /// Whether `encoded`, as long as the modulus in bytes, is an encoding of `digest`.
    ///
    /// Variable-time: both are public. `encoded` may be overwritten. `min_salt_len` accepts any
    /// salt of at least that many bytes, instead of the scheme's own length.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTooShort`] for a batch of one, if the modulus is too short for any encoding.
    ///
    /// # Panics
    ///
    /// If `encoded` is not as long as the modulus.
    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        min_salt_len: Option<usize>,
        encoded: &mut [u8],
    ) -> Result<bool, Error>;
}

/// Fails if a key with this restriction may not sign by a scheme with the `narrowest`; the error is
/// that of a batch of one.
pub(super) fn permit(restriction: Restriction, narrowest: Restriction) -> Result<(), Error> {
    match restriction.includes(narrowest) {
        true => Ok(()),
        false => Err(Error::KeyRestricted {
            index: 0,
            restriction,
        }),
    }
}

/// A message to sign, or its digest.
pub(super) enum Content<'a> {
    /// A message.
    Message(&'a [u8]),
    /// The digest of a message by the scheme's hash function.
    Digest(&'a [u8]),
}

impl Content<'_> {
    /// Passes the digest to `f`, or fails as [`check`](Self::check).
    pub(super) fn with_digest<S: Scheme, T>(
        &self,
        scheme: &S,
        f: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check(scheme)?;
        match self {
            Self::Message(message) => scheme.with_digest(message, f),
            Self::Digest(digest) => f(digest),
        }
    }

    /// Fails with [`Error::DigestLength`] for a batch of one, if the scheme's digests have another
    /// length.
    pub(super) fn check<S: Scheme>(&self, scheme: &S) -> Result<(), Error> {
        let expected = scheme.digest_len();
        match self {
            Self::Digest(digest) if digest.len() != expected => Err(Error::DigestLength {
                index: 0,
                len: digest.len(),
                expected,
            }),
            Self::Digest(_) | Self::Message(_) => Ok(()),
        }
    }
}

/// RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2) with the hash function `D`. Signatures are
/// deterministic.
pub struct Pkcs1v15<D> {
    hash: PhantomData<fn() -> D>,
}

impl<D: Digest + AssociatedOid> Pkcs1v15<D> {
    /// Creates the scheme, which has no parameters.
    #[must_use]
    pub const fn new() -> Self {
        Self { hash: PhantomData }
    }
}

/// RSASSA-PSS (RFC 8017, section 8.1) with the hash function `D`, and `M` for its mask generation
/// (MGF1), by default also `D`. Every signature has a fresh random salt.
pub struct Pss<D, M = D> {
    salt_len: usize,
    hash: PhantomData<fn() -> (D, M)>,
}

impl<D: Digest + FixedOutputReset> Pss<D> {
    /// Creates the scheme with a salt as long as the digest, as verifiers expect.
    #[must_use]
    pub fn new() -> Self {
        Self::with_salt_len(<D as Digest>::output_size())
    }

    /// Creates the scheme with a salt of `salt_len` bytes, 0 for none. Keys that are too short for
    /// it fail with [`Error::KeyTooShort`].
    #[must_use]
    pub const fn with_salt_len(salt_len: usize) -> Self {
        Self::with_mgf_hash(salt_len)
    }
}

impl<D: Digest + FixedOutputReset, M: Digest> Pss<D, M> {
    /// Creates the scheme with a salt of `salt_len` bytes and another hash function for the mask
    /// generation, as in `Pss::<Sha512, Sha256>::with_mgf_hash(32)`.
    #[must_use]
    pub const fn with_mgf_hash(salt_len: usize) -> Self {
        Self {
            salt_len,
            hash: PhantomData,
        }
    }
}

impl<D: Digest> sealed::Sealed for Pkcs1v15<D> {
    fn narrowest(&self) -> Restriction {
        Restriction::None
    }

    fn with_digest<T>(&self, message: &[u8], f: impl FnOnce(&[u8]) -> T) -> T {
        f(&D::digest(message))
    }
}

impl<D: Digest, M: Digest> sealed::Sealed for Pss<D, M> {
    fn narrowest(&self) -> Restriction {
        match Hash::of_type::<D>() {
            Some(hash) if Hash::of_type::<M>() == Some(hash) => Restriction::PssWith {
                hash,
                min_salt_len: self.salt_len,
            },
            // Keys with parameters have a hash function that is known, also for the mask generation.
            _ => Restriction::Pss,
        }
    }

    fn with_digest<T>(&self, message: &[u8], f: impl FnOnce(&[u8]) -> T) -> T {
        f(&D::digest(message))
    }
}

impl<D: Digest + AssociatedOid> Scheme for Pkcs1v15<D> {
    type Digest = Output<D>;

    fn digest(&self, message: &[u8]) -> Output<D> {
        D::digest(message)
    }

    fn digest_len(&self) -> usize {
        <D as Digest>::output_size()
    }

    fn is_randomized(&self) -> bool {
        false
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        _: &mut R,
        encoded: &mut [u8],
    ) -> Result<(), Error> {
        emsa_pkcs1_v15::encode(D::OID, digest, n_bits, encoded)
    }

    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        _: Option<usize>,
        encoded: &mut [u8],
    ) -> Result<bool, Error> {
        emsa_pkcs1_v15::verify(D::OID, digest, n_bits, encoded)
    }
}

impl<D: Digest + FixedOutputReset, M: Digest> Scheme for Pss<D, M> {
    type Digest = Output<D>;

    fn digest(&self, message: &[u8]) -> Output<D> {
        D::digest(message)
    }

    fn digest_len(&self) -> usize {
        <D as Digest>::output_size()
    }

    fn is_randomized(&self) -> bool {
        self.salt_len > 0
    }

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        rng: &mut R,
        encoded: &mut [u8],
    ) -> Result<(), Error> {
        emsa_pss::encode::<D, M, R>(digest, self.salt_len, n_bits, rng, encoded)
    }

    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        min_salt_len: Option<usize>,
        encoded: &mut [u8],
    ) -> Result<bool, Error> {
        let salt = min_salt_len.map_or(SaltLen::Exactly(self.salt_len), SaltLen::AtLeast);
        emsa_pss::verify::<D, M>(digest, salt, n_bits, encoded)
    }
}

impl<D: Digest + AssociatedOid> Default for Pkcs1v15<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Digest + FixedOutputReset> Default for Pss<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> Clone for Pkcs1v15<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Pkcs1v15<D> {}

impl<D, M> Clone for Pss<D, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, M> Copy for Pss<D, M> {}

impl<D> core::fmt::Debug for Pkcs1v15<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Pkcs1v15")
    }
}

impl<D, M> core::fmt::Debug for Pss<D, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pss")
            .field("salt_len", &self.salt_len)
            .finish()
    }
}

#[cfg(test)]
mod tests;
