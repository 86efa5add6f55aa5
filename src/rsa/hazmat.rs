//! Raw RSASP1, for protocols that bring their own padding.
//!
//! A raw private operation on a block that somebody else chose signs or decrypts anything. Use it
//! only inside a protocol that makes this safe. For blind signatures (RFC 9474) use
//! [`blind`](super::blind).

use rand_core::TryCryptoRng;

use super::backend::{RsaBackend, compute_by_class};
use super::blocks::{Blocks, Range};
use super::key::KeyHandle;
use super::random::Streams;
use super::signatures::SecretOctets;
use crate::rsa::Error;

/// RSASP1 (RFC 8017, section 5.2.1) on whole blocks of octets, each with its own key, whatever its
/// [`restriction`](KeyHandle::restriction).
///
/// A block and its result are as many bytes as the modulus, most significant first, and below the
/// modulus as numbers. The result is checked with the public exponent, as every private operation
/// of this crate. With a random number generator the base is blinded, with `None` it is not.
///
/// ```
/// use batch_modexp::backend::Serial;
/// use batch_modexp::rsa::{KeyHandle, hazmat::rsasp1};
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let block = vec![7; key.size()];
/// let results = rsasp1(&Serial, Some(&mut getrandom::SysRng), &[(&key, &block)])?;
/// assert_eq!(results.get(0)?.len(), key.size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole. The error of a single block is
/// stored in its place: [`Error::BlockOutOfRange`], or [`Error::Fault`] for a result that did not
/// pass its check.
pub fn rsasp1<B: RsaBackend + ?Sized, T: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
    backend: &B,
    rng: Option<&mut R>,
    blocks: &[(&KeyHandle, T)],
) -> Result<SecretOctets, Error> {
    raw(backend, rng, blocks, Range::BelowModulus)
}

/// RSADP as in SP 800-56B (Rev. 2, section 7.1.2): [`rsasp1`] only for ciphertexts c with 1 < c <
/// n - 1.
///
/// # Errors
///
/// Those of [`rsasp1`]; the ciphertexts 0, 1 and n - 1 are out of range too.
pub fn rsadp<B: RsaBackend + ?Sized, T: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
    backend: &B,
    rng: Option<&mut R>,
    ciphertexts: &[(&KeyHandle, T)],
) -> Result<SecretOctets, Error> {
    raw(backend, rng, ciphertexts, Range::Sp800_56b)
}

fn raw<B: RsaBackend + ?Sized, T: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
    backend: &B,
    rng: Option<&mut R>,
    blocks: &[(&KeyHandle, T)],
    range: Range,
) -> Result<SecretOctets, Error> {
    let (streams, is_blinded) = match rng {
        Some(rng) => (Streams::seeded(rng)?, true),
        None => (Streams::none(), false),
    };
    let source = Blocks {
        item: &|i: usize| (blocks[i].0, blocks[i].1.as_ref()),
        range,
        check_key: |_| Ok(()),
    };
    compute_by_class(backend, blocks.len(), &source, &streams, is_blinded).map(SecretOctets::new)
}
