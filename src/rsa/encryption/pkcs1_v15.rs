//! EME-PKCS1-v1_5 (RFC 8017, sections 7.2.1 and 7.2.2) with implicit rejection:
//! draft-irtf-cfrg-rsa-guidance-10, sections 7.1 and 7.2.

use alloc::vec;
use alloc::vec::Vec;
use core::slice;

use batch_modexp_core::secret::{Secret, reveal, reveal_len};
use crypto_bigint::{Choice, CtAssign, CtEq, CtLt};
use hmac::{Hmac, KeyInit, Mac};
use rand_core::TryCryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// 00, 02, at least eight octets of padding, 00.
pub(super) const SHORTEST_OVERHEAD: u16 = 11;

/// The number of candidate lengths for the alternative message. With more candidates it is less
/// likely that none fits and the message is empty.
const LENGTHS: usize = 128;

/// Writes `00 02 || padding || 00 || message` to `em`, with nonzero octets from `rng` as padding.
///
/// Zeros are drawn again; their number says nothing about the octets kept.
///
/// # Panics
///
/// If `em` is shorter than the message and 11 octets.
pub(in crate::rsa) fn encode<R: TryCryptoRng + ?Sized>(
    message: &[u8],
    rng: &mut R,
    em: &mut [u8],
) -> Result<(), R::Error> {
    let (head, end) = em.split_at_mut(em.len() - message.len());
    let [first, second, padding @ .., zero] = head else {
        panic!("no room for the message");
    };
    (*first, *second, *zero) = (0, 2, 0);
    rng.try_fill_bytes(padding)?;
    for octet in padding {
        while reveal(octet.ct_eq(&0)) {
            rng.try_fill_bytes(slice::from_mut(octet))?;
        }
    }
    end.copy_from_slice(message);
    Ok(())
}

/// SHA-256 of the private exponent (step 3.1), given in big-endian octets and padded to the length
/// of the modulus.
pub(in crate::rsa) fn hash_of_exponent(d: &[u8], size: usize) -> Secret<[u8; 32]> {
    let d = &d[d.len().saturating_sub(size)..];
    let zeros = vec![0; size - d.len()];
    let mut digest = Sha256::new().chain_update(zeros).chain_update(d).finalize();
    let hash = Secret::new(digest.into());
    digest.as_mut_slice().zeroize();
    hash
}

/// The result of decrypting a ciphertext with wrong padding.
pub(in crate::rsa) struct Alternative {
    /// As long as the modulus, with the message at the end.
    octets: Secret<Vec<u8>>,
    /// The length of the message. Secret until it has been mixed with that of the real one.
    len: Secret<u16>,
}

impl Alternative {
    /// Makes the alternative (step 3) from the hash of d and a ciphertext as long as the modulus.
    pub(in crate::rsa) fn new(d_hash: &[u8; 32], ciphertext: &[u8]) -> Self {
        let key = hmac(d_hash, &[ciphertext]);
        let octets = prf(&key, b"message", ciphertext.len());
        let candidates = prf(&key, b"length", 2 * LENGTHS);

        let limit = ciphertext.len() as u16 - SHORTEST_OVERHEAD + 1;
        let mask = u16::MAX >> (limit - 1).leading_zeros();
        let mut len = Secret::new(0u16);
        for candidate in candidates.chunks_exact(2) {
            let candidate = u16::from_be_bytes([candidate[0], candidate[1]]) & mask;
            let fits = candidate.ct_lt(&limit);
            len.ct_assign(&candidate, fits);
        }
        Self { octets, len }
    }
}

/// Returns the message in `em`, or the alternative if the padding is wrong. The choice stays
/// secret, the length becomes public.
pub(in crate::rsa) fn decode(em: &[u8], alternative: &Alternative) -> Secret<Vec<u8>> {
    let size = em.len() as u16;
    // The first zero after the first two octets ends the padding.
    let mut found = Choice::FALSE;
    let mut end = Secret::new(0);
    for (index, octet) in (0u16..).zip(em).skip(2) {
        let is_zero = octet.ct_eq(&0);
        end.ct_assign(&index, is_zero & !found);
        found |= is_zero;
    }
    // Without a zero `end` is 0.
    let valid = em[0].ct_eq(&0) & em[1].ct_eq(&2) & !end.ct_lt(&(SHORTEST_OVERHEAD - 1));

    let mut len = Secret::new(*alternative.len);
    len.ct_assign(&(size - 1 - *end), valid);
    let start = em.len() - usize::from(reveal_len(*len));
    let mut message = Secret::new(em[start..].to_vec());
    for (octet, other) in message.iter_mut().zip(&alternative.octets[start..]) {
        octet.ct_assign(other, !valid);
    }
    message
}

/// IRPRF (section 7.1): `len` octets, at most 8191, derived from `key` and `label`.
fn prf(key: &[u8; 32], label: &[u8], len: usize) -> Secret<Vec<u8>> {
    let bits = (8 * len as u16).to_be_bytes();
    let mut octets = Secret::new(vec![0; len]);
    for (counter, chunk) in (0u16..).zip(octets.chunks_mut(32)) {
        let block = hmac(key, &[&counter.to_be_bytes(), label, &bits]);
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
    octets
}

/// HMAC-SHA256 of the concatenation of `parts`.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> Secret<[u8; 32]> {
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
    let mut mac = mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    parts.iter().for_each(|part| mac.update(part));
    let mut tag = mac.finalize().into_bytes();
    let secret = Secret::new(tag.into());
    tag.as_mut_slice().zeroize();
    secret
}
