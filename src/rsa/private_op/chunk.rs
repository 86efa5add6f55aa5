//! Lanes that a backend has opened: their numbers, and the way back for its candidates.

use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, Limb};

use super::batch::Batch;
use super::host;
use super::opened::Opened;
use super::places::Places;
use crate::BatchModExp;
use crate::engine::Engine;
use crate::rsa::{Error, KeyHandle};
use crate::secret::Secret;

/// Lanes with their numbers. All numbers are in flat buffers: [`limbs`](Self::limbs) limbs each, as many as the
/// moduli have, least significant first, those of all lanes one after the other.
#[allow(missing_debug_implementations)]
pub struct Chunk<'a> {
    pub(super) batch: &'a Batch<'a>,
    engine: &'a dyn Engine,
    pub(super) opened: Opened,
    places: Places<'a>,
}

impl<'a> Chunk<'a> {
    pub(super) fn new(
        batch: &'a Batch<'a>,
        engine: &'a dyn Engine,
        opened: Opened,
        places: Places<'a>,
    ) -> Self {
        Self {
            batch,
            engine,
            opened,
            places,
        }
    }

    /// The key of each lane.
    #[must_use]
    pub fn keys(&self) -> &'a [&'a KeyHandle] {
        self.opened.keys(self.batch)
    }

    /// Limbs in each number.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.batch.class.limbs()
    }

    /// The message representatives, each below its modulus: secret.
    #[must_use]
    pub fn representatives(&self) -> &[Limb] {
        &self.opened.representatives
    }

    /// For blinded lanes a random number r from 1 to n - 1 for each: secret.
    ///
    /// There is no need to invert them: with the representative m, the factor `f = m r^(e - 1)` and the base `b = f r`, the
    /// result is `f b^(d - 1) = m^d mod n`.
    #[must_use]
    pub fn blinds(&self) -> Option<&[Limb]> {
        Some(&self.opened.blinds.as_ref()?.numbers)
    }

    /// Computes the candidates on the calling thread, blinded if the lanes are, with the exponentiations on
    /// `backend`. Nobody has checked them yet.
    ///
    /// # Errors
    ///
    /// Those of `backend`.
    pub fn candidates<B>(&self, backend: &B) -> Result<Secret<Vec<Limb>>, Error>
    where
        B: BatchModExp<BoxedUint, Error = crate::Error> + ?Sized,
    {
        host::candidates(backend, self.engine, self.batch, &self.opened)
    }

    /// Checks `candidates`, which should be `representative ^ d mod n`, unblinded: each is raised to e and
    /// compared with the representative of its lane, by the [engine](super::RsaPrivateOp::engine), whatever the backend is. Those
    /// that pass are on their way to the caller; the others are [`Error::Fault`] in their lanes. If there are
    /// more or fewer candidates than lanes, all of them are.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn deliver(self, candidates: &[Limb]) -> Result<(), Error> {
        // A copy, so that nobody changes what was checked.
        self.close(Secret::new(candidates.to_vec()))
    }

    pub(super) fn close(self, candidates: Secret<Vec<Limb>>) -> Result<(), Error> {
        self.opened
            .close(self.engine, self.batch, &candidates, self.places);
        Ok(())
    }

    /// Delivers with a hand on the verdicts, for tests of what the check is worth.
    #[cfg(test)]
    pub(super) fn close_with(self, candidates: &[Limb], verdicts: impl FnOnce(&mut [bool])) {
        self.opened
            .close_with(self.engine, self.batch, candidates, self.places, verdicts);
    }
}
