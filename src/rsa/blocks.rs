//! Blocks from others: octets as long as the modulus, such as ciphertexts and blinded messages.

use super::batch::{Accepted, Source};
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

/// A source of blocks from others, whose results are the caller's outputs.
pub(super) struct Blocks<'f, 'b> {
    /// The key and the block at each position of the batch.
    pub(super) item: &'f (dyn Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync),
    pub(super) accepted: Accepted,
    /// Fails if a key may not be used; the error is that of a batch of one.
    pub(super) check_key: fn(&KeyHandle) -> Result<(), Error>,
}

impl Source for Blocks<'_, '_> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn accepted(&self) -> Accepted {
        self.accepted
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        let (key, block) = (self.item)(position);
        (self.check_key)(key)?;
        copy_block(block, em)
    }
}
