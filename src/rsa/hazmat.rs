//! Raw RSASP1, for protocols that bring their own padding.
//!
//! A raw private operation on a block that somebody else chose signs or decrypts whatever they want.
//! Use it only inside a protocol that makes this safe, such as blind RSA signatures (RFC 9474, where it
//! is the `BlindSign` step).

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, CtLt};
use rand_core::TryCryptoRng;

use super::key::KeyHandle;
use super::octets::{i2osp, os2ip};
use super::private_op::{Checked, RsaPrivateOp, check};
use crate::Error;
use crate::secret::{Secret, reveal};

/// RSASP1 (RFC 8017, section 5.2.1) on whole blocks of octets, each with its own key, whatever its
/// [`restriction`](KeyHandle::restriction).
///
/// A block is as many bytes as its modulus, most significant first, and a number below the modulus.
/// So is its result, which is checked with the public exponent like every other private operation of
/// this crate. With a random number generator the base is blinded, with `None` it is not.
///
/// ```
/// use batch_modexp::backend::Serial;
/// use batch_modexp::rsa::{KeyHandle, hazmat::rsasp1};
///
/// # let pem = std::fs::read_to_string("tests/keys/rsa2048-pkcs8.pem")?;
/// let key = KeyHandle::from_pkcs8_pem(&pem)?;
/// let block = vec![7; key.size()];
/// let results = rsasp1(&Serial, Some(&mut getrandom::SysRng), &[(&key, &block)])?;
/// assert_eq!(results[0].as_ref().unwrap().len(), key.size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole. What is wrong with a single block
/// stands in its place: [`Error::BlockOutOfRange`], or [`Error::Fault`] for a result that did not pass
/// its check.
pub fn rsasp1<B, T, R>(
    backend: &B,
    rng: Option<&mut R>,
    blocks: &[(&KeyHandle, T)],
) -> Checked<Vec<u8>>
where
    B: RsaPrivateOp + ?Sized,
    T: AsRef<[u8]>,
    R: TryCryptoRng + ?Sized,
{
    let representatives: Vec<_> = blocks
        .iter()
        .map(|(key, block)| representative(key, block.as_ref()))
        .collect();
    let keys = blocks.iter().map(|(key, _)| *key);
    let results = check::private_op(backend, keys, &representatives, rng)?;
    let octets = |((key, _), result): (&(&KeyHandle, T), Result<Secret<_>, _>)| {
        result.map(|number| i2osp(&number, key.size()))
    };
    Ok(blocks.iter().zip(results).map(octets).collect())
}

/// The message representative that a block stands for.
fn representative(key: &KeyHandle, block: &[u8]) -> Result<Secret<BoxedUint>, Error> {
    // The caller of all lanes gets their positions.
    let out_of_range = Error::BlockOutOfRange {
        index: 0,
        len: block.len(),
        expected: key.size(),
    };
    if block.len() != key.size() {
        return Err(out_of_range);
    }
    let n = &key.parts().n;
    let representative = Secret::new(os2ip(block, n.bits_precision()));
    if !reveal(representative.ct_lt(n.modulus().as_ref())) {
        return Err(out_of_range);
    }
    Ok(representative)
}
