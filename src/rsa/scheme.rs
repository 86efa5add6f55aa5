//! Signature schemes: how a digest becomes the message representative that is signed.

use alloc::vec::Vec;
use core::marker::PhantomData;

use rand_core::TryCryptoRng;
use rsa::pkcs1v15;
use rsa::pss;
use rsa::sha2::Digest;
use rsa::sha2::digest::FixedOutputReset;
use rsa::sha2::digest::const_oid::AssociatedOid;

use crate::Error;
use crate::secret::Secret;

mod emsa_pkcs1_v15;
mod emsa_pss;

mod sealed {
    pub trait Sealed {}
}

/// A signature scheme with its hash function: [`Pkcs1v15`] or [`Pss`].
pub trait Scheme: sealed::Sealed {
    /// The hash function.
    type Hash: Digest;

    /// The signature type of the `rsa` crate.
    type Signature;

    /// The encoding method EMSA: `digest`, as long as the hash function's output, becomes an encoded
    /// message for a modulus of `n_bits` bits, as long as the modulus in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTooShort`], or [`Error::Rng`] if a salt is needed and cannot be had.
    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        rng: &mut R,
    ) -> Result<Secret<Vec<u8>>, Error>;

    /// Wraps the octets of a signature, at most 1024 of them.
    fn signature(&self, octets: &[u8]) -> Self::Signature;
}

/// RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2) with the hash function `D`: deterministic signatures.
pub struct Pkcs1v15<D> {
    hash: PhantomData<fn() -> D>,
}

impl<D: Digest + AssociatedOid> Pkcs1v15<D> {
    /// The scheme; it has no parameters.
    #[must_use]
    pub const fn new() -> Self {
        Self { hash: PhantomData }
    }
}

/// RSASSA-PSS (RFC 8017, section 8.1) with the hash function `D`, also for its mask generation (MGF1): a
/// fresh random salt in every signature.
pub struct Pss<D> {
    salt_len: usize,
    hash: PhantomData<fn() -> D>,
}

impl<D: Digest + FixedOutputReset> Pss<D> {
    /// The scheme with a salt as long as the digest, which is what verifiers expect.
    #[must_use]
    pub fn new() -> Self {
        Self::with_salt_len(<D as Digest>::output_size())
    }

    /// The scheme with a salt of `salt_len` bytes, 0 for none. Keys that are too short for it fail with
    /// [`Error::KeyTooShort`].
    #[must_use]
    pub const fn with_salt_len(salt_len: usize) -> Self {
        Self {
            salt_len,
            hash: PhantomData,
        }
    }
}

impl<D> sealed::Sealed for Pkcs1v15<D> {}
impl<D> sealed::Sealed for Pss<D> {}

impl<D: Digest + AssociatedOid> Scheme for Pkcs1v15<D> {
    type Hash = D;
    type Signature = pkcs1v15::Signature;

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        _: &mut R,
    ) -> Result<Secret<Vec<u8>>, Error> {
        emsa_pkcs1_v15::encode::<D>(digest, n_bits)
    }

    fn signature(&self, octets: &[u8]) -> Self::Signature {
        pkcs1v15::Signature::from_bytes_with_max_len(octets, octets.len()).expect("its own length")
    }
}

impl<D: Digest + FixedOutputReset> Scheme for Pss<D> {
    type Hash = D;
    type Signature = pss::Signature;

    fn encode<R: TryCryptoRng + ?Sized>(
        &self,
        digest: &[u8],
        n_bits: u32,
        rng: &mut R,
    ) -> Result<Secret<Vec<u8>>, Error> {
        // Before anything is allocated that might not fit into the memory either.
        emsa_pss::check_room(digest.len(), self.salt_len, n_bits)?;
        let mut salt = Secret::new(alloc::vec![0; self.salt_len]);
        rng.try_fill_bytes(&mut salt).map_err(|_| Error::Rng)?;
        emsa_pss::encode::<D>(digest, &salt, n_bits)
    }

    fn signature(&self, octets: &[u8]) -> Self::Signature {
        pss::Signature::from_bytes_with_max_len(octets, octets.len()).expect("its own length")
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

impl<D> Clone for Pss<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Pss<D> {}

impl<D> core::fmt::Debug for Pkcs1v15<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Pkcs1v15")
    }
}

impl<D> core::fmt::Debug for Pss<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pss")
            .field("salt_len", &self.salt_len)
            .finish()
    }
}
