//! RSASSA-PKCS1-v1_5 with the encoding EMSA-PKCS1-v1_5 (RFC 8017, section 9.2).

use alloc::vec;
use core::fmt;
use core::marker::PhantomData;

use pkcs8::ObjectIdentifier;
use rand_core::TryCryptoRng;
use sha2::Digest;
use sha2::digest::Output;
use sha2::digest::const_oid::AssociatedOid;

use super::{Scheme, sealed};
use crate::rsa::Error;
use crate::rsa::key::Restriction;

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

impl<D: Digest> sealed::Sealed for Pkcs1v15<D> {
    fn narrowest(&self) -> Restriction {
        Restriction::None
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
        encode(D::OID, digest, n_bits, encoded)
    }

    fn verify_vartime(
        &self,
        digest: &[u8],
        n_bits: u32,
        _: Option<usize>,
        encoded: &mut [u8],
    ) -> Result<bool, Error> {
        verify(D::OID, digest, n_bits, encoded)
    }
}

impl<D: Digest + AssociatedOid> Default for Pkcs1v15<D> {
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

impl<D> fmt::Debug for Pkcs1v15<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pkcs1v15")
    }
}

/// Writes `0x00 01 ff .. ff 00 || DigestInfo`, with at least eight `ff`, for a digest of the hash
/// function `oid`. `em` is as long as a modulus of `n_bits` bits.
///
/// The DigestInfo is `SEQUENCE { SEQUENCE { OBJECT IDENTIFIER, NULL }, OCTET STRING }`, each with tag
/// and length.
pub(super) fn encode(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em: &mut [u8],
) -> Result<(), Error> {
    let oid = oid.as_bytes();
    let info_len = oid.len() + digest.len() + 10;
    // The longest digest has 64 octets, and its DigestInfo 83.
    assert!(info_len < 0x80, "DER encodes each length in one octet");
    let [info, oid_len, digest_len] = [info_len, oid.len(), digest.len()].map(|len| len as u8);
    let head = [0x00, 0x30, info - 2, 0x30, oid_len + 4, 0x06, oid_len];
    let middle = [0x05, 0x00, 0x04, digest_len];

    let (len, min_len) = (n_bits.div_ceil(8) as usize, info_len + 11);
    if len < min_len {
        return Err(Error::KeyTooShort {
            index: 0,
            bits: n_bits,
            // The shortest modulus with that many bytes.
            min_bits: 8 * (min_len as u32 - 1) + 1,
        });
    }
    assert_eq!(
        em.len(),
        len,
        "an encoded message is as long as the modulus"
    );
    let mut padding = em;
    for part in [digest, &middle, oid, &head] {
        let (before, octets) = padding.split_at_mut(padding.len() - part.len());
        octets.copy_from_slice(part);
        padding = before;
    }
    padding.fill(0xff);
    padding[..2].copy_from_slice(&[0x00, 0x01]);
    Ok(())
}

/// Whether `em` is as [`encode`] makes it; nothing is parsed. Variable-time.
pub(super) fn verify(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em: &[u8],
) -> Result<bool, Error> {
    let mut expected = vec![0; em.len()];
    encode(oid, digest, n_bits, &mut expected)?;
    Ok(em == expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::digest::const_oid::AssociatedOid;

    /// RFC 8017, section 9.2, note 1.
    #[test]
    fn digest_info_of_sha_256() {
        let mut em = [0; 128];
        encode(sha2::Sha256::OID, &[7; 32], 1024, &mut em).unwrap();
        let info = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        assert_eq!(em[..2], [0, 1]);
        assert_eq!(em[2..128 - 52], [0xff; 128 - 54]);
        assert_eq!(em[128 - 52], 0);
        assert_eq!(em[128 - 51..128 - 32], info);
        assert_eq!(em[128 - 32..], [7; 32]);

        assert!(verify(sha2::Sha256::OID, &[7; 32], 1024, &em).unwrap());
        assert!(!verify(sha2::Sha256::OID, &[8; 32], 1024, &em).unwrap());
        for (octet, bit) in (0..128).flat_map(|octet| (0..8).map(move |bit| (octet, bit))) {
            let mut em = em;
            em[octet] ^= 1 << bit;
            assert!(!verify(sha2::Sha256::OID, &[7; 32], 1024, &em).unwrap());
        }
    }
}
