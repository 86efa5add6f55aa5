//! EMSA-PKCS1-v1_5 (RFC 8017, section 9.2).

use alloc::vec::Vec;

use rsa::Pkcs1v15Sign;
use rsa::sha2::Digest;
use rsa::sha2::digest::const_oid::AssociatedOid;

use crate::Error;
use crate::secret::Secret;

/// `0x00 01 ff .. ff 00 || DigestInfo`, with at least eight `ff`.
pub(super) fn encode<D: Digest + AssociatedOid>(
    digest: &[u8],
    n_bits: u32,
) -> Result<Secret<Vec<u8>>, Error> {
    let prefix = Pkcs1v15Sign::new::<D>().prefix;
    let len = n_bits.div_ceil(8) as usize;
    let min_len = prefix.len() + digest.len() + 11;
    if len < min_len {
        // The shortest modulus of that many bytes.
        return Err(Error::KeyTooShort {
            bits: n_bits,
            min_bits: 8 * (min_len as u32 - 1) + 1,
        });
    }
    let mut em = Secret::new(alloc::vec![0xff; len]);
    let info_start = len - prefix.len() - digest.len();
    em[0] = 0;
    em[1] = 1;
    em[info_start - 1] = 0;
    em[info_start..len - digest.len()].copy_from_slice(&prefix);
    em[len - digest.len()..].copy_from_slice(digest);
    Ok(em)
}
