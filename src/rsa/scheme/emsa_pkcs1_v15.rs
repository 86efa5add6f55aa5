//! RSASSA-PKCS1-v1_5 with the encoding EMSA-PKCS1-v1_5 (RFC 8017, section 9.2).

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
pub(super) fn encode(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em: &mut [u8],
) -> Result<(), Error> {
    let (info, padding_len) = digest_info(oid, digest, n_bits, em.len())?;
    let (padding, rest) = em.split_at_mut(padding_len);
    padding.fill(0xff);
    padding[..2].copy_from_slice(&[0x00, 0x01]);
    rest.copy_from_slice(&info[..rest.len()]);
    Ok(())
}

/// Whether every octet of `em` is as [`encode`] makes it; nothing is parsed. Variable-time.
pub(super) fn verify(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em: &[u8],
) -> Result<bool, Error> {
    let (info, padding_len) = digest_info(oid, digest, n_bits, em.len())?;
    let (padding, rest) = em.split_at(padding_len);
    let is_padding = |ones: &[u8]| ones.iter().all(|octet| *octet == 0xff);
    let is_padded = matches!(padding, [0x00, 0x01, ones @ ..] if is_padding(ones));
    Ok(is_padded && rest == &info[..rest.len()])
}

/// `0x00 || DigestInfo`, then zeros, and the number of octets before it in an encoded message.
///
/// The DigestInfo is `SEQUENCE { SEQUENCE { OBJECT IDENTIFIER, NULL }, OCTET STRING }`, each with tag
/// and length.
fn digest_info(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em_len: usize,
) -> Result<([u8; 0x80], usize), Error> {
    let oid = oid.as_bytes();
    let len = oid.len() + digest.len() + 11;
    // The longest digest has 64 octets, and its DigestInfo 83.
    assert!(len <= 0x80, "no hash function has such long digests");
    let min_len = len + 10;
    if (n_bits.div_ceil(8) as usize) < min_len {
        return Err(Error::KeyTooShort {
            index: 0,
            bits: n_bits,
            // The shortest modulus with that many bytes.
            min_bits: 8 * (min_len as u32 - 1) + 1,
        });
    }
    assert_eq!(
        em_len,
        n_bits.div_ceil(8) as usize,
        "an encoded message is as long as the modulus"
    );
    let [len_u8, oid_len, digest_len] = [len, oid.len(), digest.len()].map(|len| len as u8);
    let head = [0x00, 0x30, len_u8 - 3, 0x30, oid_len + 4, 0x06, oid_len];
    let mut info = [0; 0x80];
    let mut rest = &mut info[..];
    for part in [&head[..], oid, &[0x05, 0x00, 0x04, digest_len], digest] {
        let (octets, others) = rest.split_at_mut(part.len());
        octets.copy_from_slice(part);
        rest = others;
    }
    Ok((info, em_len - len))
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
