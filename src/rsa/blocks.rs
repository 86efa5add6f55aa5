//! Blocks from others: octets as long as the modulus, such as ciphertexts and blinded messages.

use batch_modexp_core::limbs::is_below;
use batch_modexp_core::secret::reveal;
use crypto_bigint::{Choice, CtEq, Limb};

use super::batch::Source;
use super::error::Error;
use super::key::{KeyHandle, KeyParts};
use super::random::Randomness;

/// Copies a block that should be as long as the modulus. The error is that of a batch of one.
pub(super) fn copy_block(block: &[u8], em: &mut [u8]) -> Result<(), Error> {
    if block.len() != em.len() {
        return Err(Error::BlockOutOfRange {
            index: 0,
            len: block.len(),
            expected: em.len(),
        });
    }
    em.copy_from_slice(block);
    Ok(())
}

/// The blocks that are accepted, as numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// Below n (RFC 8017, sections 5.1.2 and 5.2.1).
    BelowModulus,
    /// Above 1 and below n - 1 (SP 800-56B Rev. 2, section 7.1.2).
    Sp800_56b,
}

impl Range {
    /// Fails if a number, as wide as the key's modulus, is outside. Constant-time; the verdict is
    /// public. The error is that of a batch of one.
    pub(super) fn check(self, key: &KeyParts, number: &[Limb]) -> Result<(), Error> {
        let n = key.n().limbs;
        let is_inside = match self {
            Self::BelowModulus => is_below(number, n),
            Self::Sp800_56b => is_below(number, n) & !is_extreme(number, n),
        };
        match reveal(is_inside) {
            true => Ok(()),
            false => Err(Error::BlockOutOfRange {
                index: 0,
                len: key.n_octets(),
                expected: key.n_octets(),
            }),
        }
    }
}

/// Whether a number is 0, 1 or n - 1, for an odd n.
fn is_extreme(number: &[Limb], n: &[Limb]) -> Choice {
    let (low, high) = (number[0], number.iter().zip(n).skip(1));
    // No bits but the lowest one.
    let above_1 = high
        .clone()
        .fold(low & !Limb::ONE, |bits, (a, _)| bits | *a);
    // n - 1 differs from n in the lowest bit.
    let from_last = high.fold(low ^ n[0] ^ Limb::ONE, |bits, (a, b)| bits | (*a ^ *b));
    above_1.ct_eq(&Limb::ZERO) | from_last.ct_eq(&Limb::ZERO)
}

/// A source of blocks from others, whose results are the caller's outputs.
pub(super) struct Blocks<'f, 'b> {
    /// The key and the block at each position of the batch.
    pub(super) item: &'f (dyn Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync),
    pub(super) range: Range,
    /// Fails if a key may not be used; the error is that of a batch of one.
    pub(super) check_key: fn(&KeyHandle) -> Result<(), Error>,
}

impl Source for Blocks<'_, '_> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        let (key, block) = (self.item)(position);
        (self.check_key)(key)?;
        copy_block(block, em)
    }

    fn check(&self, key: &KeyParts, em: &[Limb]) -> Result<(), Error> {
        self.range.check(key, em)
    }
}
