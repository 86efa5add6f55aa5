//! Lanes of keys of one class, and where their representatives come from.

use alloc::vec::Vec;

use super::group::{KeyClass, Positions};
use super::places::Octets;
use super::random::{Randomness, Streams};
use crate::rsa::{Error, KeyHandle};
use crate::secret::Secret;

/// Where message representatives come from, and what becomes of the results.
pub(in crate::rsa) trait Source: Sync {
    /// Whether `key` is the one that the caller gave for the lane at `position` of its batch.
    fn has_key(&self, position: usize, key: &KeyHandle) -> bool;

    /// Writes the representative of the lane at `position` of the caller's batch: a number below n, most
    /// significant octet first, as many octets as the modulus has. What cannot be represented is an error of
    /// this lane alone, with any index; but if `randomness` fails, the whole batch does.
    ///
    /// Called from any thread, and more than once for a lane that is computed again after a device was lost.
    fn representative(
        &self,
        position: usize,
        key: &KeyHandle,
        randomness: &mut Randomness,
        octets: &mut [u8],
    ) -> Result<(), Error>;

    /// Makes of the result of that lane, which has passed its check, what goes to the caller; by itself the result. An error has the
    /// position as its index.
    ///
    /// Called from any thread.
    fn finish(&self, position: usize, key: &KeyHandle, result: Secret<Vec<u8>>) -> Octets {
        let _ = (position, key);
        Ok(result)
    }
}

/// Lanes of keys of one class, those of one key next to each other.
pub(super) struct Batch<'a> {
    pub(super) class: KeyClass,
    pub(super) keys: &'a [&'a KeyHandle],
    /// The positions in the caller's batch of the lanes of all classes.
    pub(super) positions: &'a Positions,
    /// Which of those lanes is the first here.
    pub(super) start: usize,
    pub(super) source: &'a dyn Source,
    pub(super) streams: &'a Streams,
    pub(super) is_blinded: bool,
}

impl Batch<'_> {
    /// The error of a lane with no result.
    pub(super) fn fault(&self, lane: usize) -> Error {
        // Nobody gets the error of a lane without a position.
        let index = self.position(lane).unwrap_or(lane);
        Error::Fault { index }
    }

    pub(super) fn position(&self, lane: usize) -> Option<usize> {
        self.positions.of(self.start + lane)
    }

    /// The position of a lane in the caller's batch, if the lane has the key that the caller gave for that position. So no
    /// key signs what another one should, even if a fault has struck the list of keys or positions.
    pub(super) fn position_with_key(&self, lane: usize) -> Option<usize> {
        let position = self.position(lane)?;
        self.source
            .has_key(position, self.keys[lane])
            .then_some(position)
    }
}
