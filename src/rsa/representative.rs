//! Conversion of blocks from others to representatives, the inputs of the private operation.

use super::batch::{Representatives, Source};
use super::key::KeyHandle;
use super::random::Randomness;
use crate::rsa::Error;

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

/// A source whose representatives are blocks of octets.
pub(super) struct Blocks<'f, 'b> {
    /// The key and the block at each position of the batch.
    pub(super) item: &'f (dyn Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync),
    pub(super) accepted: Representatives,
    /// Fails if a key may not be used; the error is that of a batch of one.
    pub(super) check_key: fn(&KeyHandle) -> Result<(), Error>,
}

impl Source<KeyHandle> for Blocks<'_, '_> {
    fn key(&self, position: usize) -> &KeyHandle {
        (self.item)(position).0
    }

    fn accepted(&self) -> Representatives {
        self.accepted
    }

    fn encode(
        &self,
        position: usize,
        key: &KeyHandle,
        _: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error> {
        (self.check_key)(key)?;
        copy_block((self.item)(position).1, em)
    }
}
