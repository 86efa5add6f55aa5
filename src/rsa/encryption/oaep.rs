//! EME-OAEP (RFC 8017, section 7.1.1, step 2, and section 7.1.2, step 3).

use alloc::vec::Vec;

use batch_modexp_core::secret::{Secret, reveal, reveal_len};
use crypto_bigint::{Choice, CtAssign, CtEq};
use rand_core::TryCryptoRng;
use sha2::Digest;

use crate::rsa::Error;
use crate::rsa::hash::add_mask;

/// The octets of an encoded message beside the message, with digests of `hash_len` octets.
pub(super) fn overhead(hash_len: usize) -> usize {
    2 * hash_len + 2
}

/// Writes `0x00 || maskedSeed || maskedDB` to `em`, with a seed from `rng` and masks by MGF1 with
/// `M`.
///
/// # Panics
///
/// If `em` is shorter than the message, two hashes as long as `label_hash`, and 2 octets.
pub(in crate::rsa) fn encode<M: Digest, R: TryCryptoRng + ?Sized>(
    message: &[u8],
    label_hash: &[u8],
    rng: &mut R,
    em: &mut [u8],
) -> Result<(), R::Error> {
    let (first, masked) = em.split_at_mut(1);
    let (seed, db) = masked.split_at_mut(label_hash.len());
    first[0] = 0;
    rng.try_fill_bytes(seed)?;
    let (hash, rest) = db.split_at_mut(label_hash.len());
    hash.copy_from_slice(label_hash);
    let (padding, end) = rest.split_at_mut(rest.len() - message.len());
    let (one, zeros) = padding.split_last_mut().expect("room for the message");
    zeros.fill(0);
    *one = 1;
    end.copy_from_slice(message);
    add_mask::<M>(seed, db);
    add_mask::<M>(db, seed);
    Ok(())
}

/// Returns the message in `em`, which is unmasked in place, with MGF1 with `M`. `em` has at least 2
/// octets more than two hashes as long as `label_hash`.
///
/// # Errors
///
/// [`Error::Decryption`] for a batch of one. Only its presence becomes public, not its cause.
pub(in crate::rsa) fn decode<M: Digest>(
    em: &mut [u8],
    label_hash: &[u8],
) -> Result<Secret<Vec<u8>>, Error> {
    let (first, masked) = em.split_at_mut(1);
    let (seed, db) = masked.split_at_mut(label_hash.len());
    add_mask::<M>(db, seed);
    add_mask::<M>(seed, db);

    let (hash, rest) = db.split_at(label_hash.len());
    let mut differ = Secret::new(first[0]);
    for (a, b) in hash.iter().zip(label_hash) {
        *differ |= a ^ b;
    }
    // After the label hash come zeros, a one, and the message.
    let (mut found, mut bad) = (Choice::FALSE, Choice::FALSE);
    let mut end = Secret::new(0);
    for (index, octet) in (0u16..).zip(rest) {
        let (is_zero, is_one) = (octet.ct_eq(&0), octet.ct_eq(&1));
        end.ct_assign(&index, is_one & !found);
        bad |= !found & !is_zero & !is_one;
        found |= is_one;
    }
    if !reveal(differ.ct_eq(&0) & found & !bad) {
        return Err(Error::Decryption { index: 0 });
    }
    let start = usize::from(reveal_len(*end)) + 1;
    Ok(Secret::new(rest[start..].to_vec()))
}
