//! Signature schemes: encoding of digests before signing.

use rand_core::TryCryptoRng;

pub use self::any::AnyScheme;
pub use self::emsa_pkcs1_v15::Pkcs1v15;
pub use self::emsa_pss::Pss;
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

/// Fails if a key with this restriction may not sign by a scheme with the `narrowest`. The error is
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

#[cfg(test)]
mod tests;
