//! EMSA-PKCS1-v1_5 (RFC 8017, section 9.2).

use pkcs8::ObjectIdentifier;

use crate::rsa::Error;

/// `0x00 01 ff .. ff 00 || DigestInfo`, with at least eight `ff`, for a digest of the hash function `oid`, in `em`,
/// which is as long as a modulus of `n_bits` bits.
pub(super) fn encode(
    oid: ObjectIdentifier,
    digest: &[u8],
    n_bits: u32,
    em: &mut [u8],
) -> Result<(), Error> {
    // DigestInfo ::= SEQUENCE { SEQUENCE { OBJECT IDENTIFIER, NULL }, OCTET STRING }, before each its tag and length.
    let oid = oid.as_bytes();
    let (oid_len, digest_len) = (short_length(oid.len()), short_length(digest.len()));
    let info_len = short_length(oid.len() + digest.len() + 8);
    let parts = [
        &[0x30, info_len, 0x30, oid_len + 4, 0x06, oid_len][..],
        oid,
        &[0x05, 0x00, 0x04, digest_len],
        digest,
    ];
    let info_len = 2 + usize::from(info_len);

    let len = n_bits.div_ceil(8) as usize;
    let min_len = info_len + 11;
    if len < min_len {
        // The shortest modulus of that many bytes.
        return Err(Error::KeyTooShort {
            index: 0,
            bits: n_bits,
            min_bits: 8 * (min_len as u32 - 1) + 1,
        });
    }
    assert_eq!(em.len(), len, "room for the encoded message");
    em.fill(0xff);
    let mut at = len - info_len;
    em[0] = 0;
    em[1] = 1;
    em[at - 1] = 0;
    for part in parts {
        em[at..][..part.len()].copy_from_slice(part);
        at += part.len();
    }
    Ok(())
}

/// A length that DER writes in one octet. The longest digest of SHA-2 has 64, and its DigestInfo 81.
fn short_length(len: usize) -> u8 {
    assert!(len < 0x80, "no hash function has such long digests");
    len as u8
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
    }
}
