//! RSASSA-PSS with the encoding EMSA-PSS (RFC 8017, section 9.1) and MGF1 (appendix B.2.1).

use core::fmt;
use core::marker::PhantomData;

use rand_core::TryCryptoRng;
use sha2::Digest;
use sha2::digest::{FixedOutputReset, Output};

use super::{Scheme, sealed};
use crate::rsa::Error;
use crate::rsa::hash::{Hash, add_mask};
use crate::rsa::key::Restriction;

/// RSASSA-PSS (RFC 8017, section 8.1) with the hash function `D`, and `M` for its mask generation
/// (MGF1), by default also `D`. Every signature has a fresh random salt.
pub struct Pss<D, M = D> {
    pub(super) salt_len: usize,
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
        encode::<D, M, R>(digest, self.salt_len, n_bits, rng, encoded)
    }

    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        min_salt_len: Option<usize>,
        encoded: &mut [u8],
    ) -> Result<bool, Error> {
        let least = min_salt_len.unwrap_or(self.salt_len);
        verify::<D, M>(digest, least, min_salt_len.is_some(), n_bits, encoded)
    }
}

impl<D: Digest + FixedOutputReset> Default for Pss<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D, M> Clone for Pss<D, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, M> Copy for Pss<D, M> {}

impl<D, M> fmt::Debug for Pss<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pss")
            .field("salt_len", &self.salt_len)
            .finish()
    }
}

/// Writes an encoding with a salt of `salt_len` bytes from `rng`. `M` is the hash function of the
/// mask generation.
fn encode<D: Digest, M: Digest, R: TryCryptoRng + ?Sized>(
    digest: &[u8],
    salt_len: usize,
    n_bits: u32,
    rng: &mut R,
    encoded: &mut [u8],
) -> Result<(), Error> {
    check_length(digest.len(), salt_len, n_bits)?;
    let (top, em, unused) = split(n_bits, encoded);
    top.fill(0);
    let (db, rest) = em.split_at_mut(em.len() - digest.len() - 1);
    let (padding, salt) = db.split_at_mut(db.len() - salt_len);
    if salt_len > 0 {
        rng.try_fill_bytes(salt).map_err(|_| Error::Rng)?;
    }

    let h = hash::<D>(digest, salt);
    padding.fill(0);
    padding[padding.len() - 1] = 1;
    add_mask::<M>(&h, db);
    db[0] &= !unused;
    rest[..h.len()].copy_from_slice(&h);
    rest[h.len()] = 0xbc;
    Ok(())
}

/// Whether `encoded` is an encoding of `digest` (RFC 8017, section 9.1.2) with a salt of `salt_len`
/// bytes, or a longer one if `or_longer`. Variable-time. The octets are overwritten.
fn verify<D: Digest, M: Digest>(
    digest: &[u8],
    salt_len: usize,
    or_longer: bool,
    n_bits: u32,
    encoded: &mut [u8],
) -> Result<bool, Error> {
    check_length(digest.len(), salt_len, n_bits)?;
    let (top, em, unused) = split(n_bits, encoded);
    let (db, rest) = em.split_at_mut(em.len() - digest.len() - 1);
    let (h, trailer) = rest.split_at(digest.len());
    if top.iter().any(|octet| *octet != 0) || db[0] & unused != 0 || trailer != [0xbc] {
        return Ok(false);
    }
    add_mask::<M>(h, db);
    db[0] &= !unused;
    let Some(end) = db.iter().position(|octet| *octet != 0) else {
        return Ok(false);
    };
    let (one, salt) = db[end..].split_at(1);
    let fits = salt.len() == salt_len || or_longer && salt.len() > salt_len;
    Ok(one == [1] && fits && hash::<D>(digest, salt)[..] == *h)
}

/// Splits an encoding for a modulus of `n_bits` bits into a zero byte, if the modulus is one bit
/// longer than a whole number of bytes, and `maskedDB || H || 0xbc`. Also returns the highest bits
/// of maskedDB, which are zero.
// A call costs verifiers 2 % of their rate.
#[inline(always)]
fn split(n_bits: u32, encoded: &mut [u8]) -> (&mut [u8], &mut [u8], u8) {
    let len = n_bits.div_ceil(8) as usize;
    assert_eq!(
        encoded.len(),
        len,
        "an encoded message is as long as the modulus"
    );
    let em_bits = n_bits - 1;
    let em_len = em_bits.div_ceil(8);
    let (top, em) = encoded.split_at_mut(len - em_len as usize);
    (top, em, !(0xff >> (8 * em_len - em_bits)))
}

/// The hash of eight zeros, a digest and a salt.
fn hash<D: Digest>(digest: &[u8], salt: &[u8]) -> Output<D> {
    D::new()
        .chain_update([0; 8])
        .chain_update(digest)
        .chain_update(salt)
        .finalize()
}

/// Fails unless a modulus of `n_bits` bits is long enough for a digest and a salt of these lengths
/// in bytes.
fn check_length(digest_len: usize, salt_len: usize, n_bits: u32) -> Result<(), Error> {
    let em_len = (n_bits - 1).div_ceil(8) as usize;
    let min_len = digest_len.saturating_add(salt_len).saturating_add(2);
    if em_len >= min_len {
        return Ok(());
    }
    // The shortest modulus whose encoded message has that many bytes.
    let min_bits = u32::try_from(min_len - 1).unwrap_or(u32::MAX);
    Err(Error::KeyTooShort {
        index: 0,
        bits: n_bits,
        min_bits: min_bits.saturating_mul(8).saturating_add(2),
    })
}
