//! The numbers of lanes while they are computed: from the source to operands, and from candidates through the check to octets.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crypto_bigint::Limb;

use super::batch::Batch;
use super::blinding::{Blinds, Operands};
use super::check;
use super::places::Places;
use crate::engine::Engine;
use crate::rsa::octets::{limbs_to_octets, octets_to_limbs};
use crate::rsa::{Error, KeyHandle};
use crate::secret::Secret;

/// The numbers of lanes, wiped on drop.
pub(super) struct Opened {
    /// Which lanes of the batch they are.
    pub(super) range: Range<usize>,
    /// Lanes without a representative, by their places in the range, ascending. They are computed as zeros.
    refused: Vec<(usize, Error)>,
    pub(super) representatives: Secret<Vec<Limb>>,
    pub(super) blinds: Option<Blinds>,
}

impl Opened {
    /// Asks the source for representatives, and draws random numbers to blind them with.
    pub(super) fn new(batch: &Batch<'_>, range: Range<usize>) -> Result<Self, Error> {
        let (keys, limbs) = (&batch.keys[range.clone()], batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut representatives = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut refused = Vec::new();
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let lanes = keys.iter().zip(representatives.chunks_exact_mut(limbs));
        for (lane, (key, number)) in lanes.enumerate() {
            let Some(position) = batch.position_with_key(range.start + lane) else {
                refused.push((lane, batch.fault(range.start + lane)));
                continue;
            };
            let octets = &mut octets[..key.size()];
            match batch
                .source
                .representative(position, key, &mut randomness, octets)
            {
                Ok(()) => octets_to_limbs(octets, number),
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => {
                    refused.push((lane, error.at(position)));
                }
            }
        }
        let blinds = match batch.is_blinded {
            true => Some(Blinds::draw(keys, limbs, &mut randomness)?),
            false => None,
        };
        Ok(Self {
            range,
            refused,
            representatives,
            blinds,
        })
    }

    /// Lanes with given numbers, for tests.
    #[cfg(test)]
    pub(super) fn with(
        range: Range<usize>,
        representatives: &[Limb],
        blinds: Option<Blinds>,
    ) -> Self {
        Self {
            range,
            refused: Vec::new(),
            representatives: Secret::new(representatives.to_vec()),
            blinds,
        }
    }

    /// What the results are computed from, blinded if the lanes are.
    pub(super) fn operands(&self, engine: &dyn Engine, batch: &Batch<'_>) -> Operands {
        match &self.blinds {
            Some(blinds) => {
                Operands::blinded(engine, self.keys(batch), &self.representatives, blinds)
            }
            None => Operands::plain(&self.representatives),
        }
    }

    pub(super) fn keys<'a>(&self, batch: &Batch<'a>) -> &'a [&'a KeyHandle] {
        &batch.keys[self.range.clone()]
    }

    /// Whether the lane at this place in the range has no representative.
    fn is_refused(&self, lane: usize) -> bool {
        let place = |refused: &(usize, Error)| refused.0;
        self.refused.binary_search_by_key(&lane, place).is_ok()
    }

    /// Checks candidates, and puts what the source makes of those that pass to their places.
    pub(super) fn close(
        self,
        engine: &dyn Engine,
        batch: &Batch<'_>,
        candidates: &[Limb],
        places: Places<'_>,
    ) {
        self.close_with(engine, batch, candidates, places, |_| ());
    }

    /// The same with a look at the verdicts of all lanes, for tests that change them.
    pub(super) fn close_with(
        self,
        engine: &dyn Engine,
        batch: &Batch<'_>,
        candidates: &[Limb],
        mut places: Places<'_>,
        look: impl FnOnce(&mut [bool]),
    ) {
        let (keys, limbs) = (self.keys(batch), batch.class.limbs());
        assert_eq!(places.len(), keys.len(), "a place for each lane");
        let position = |lane| batch.position_with_key(self.range.start + lane);
        for lane in 0..keys.len() {
            places.put(lane, Err(batch.fault(self.range.start + lane)));
        }
        // Otherwise nobody knows which candidate belongs to which lane.
        if candidates.len() == keys.len() * limbs {
            let masks = self.blinds.as_ref().map(|blinds| &blinds.masks[..]);
            let (class, expected) = (&batch.class, &self.representatives);
            let mut verdicts = check::verdicts(engine, class, keys, expected, candidates, masks);
            look(&mut verdicts);
            let lanes = candidates.chunks_exact(limbs).zip(keys).zip(verdicts);
            for (lane, ((candidate, key), passed)) in lanes.enumerate() {
                // What was computed for lanes without a representative is nobody's.
                let Some(position) = position(lane).filter(|_| passed && !self.is_refused(lane))
                else {
                    continue;
                };
                let octets = limbs_to_octets(candidate, key.size());
                places.put(lane, batch.source.finish(position, key, octets));
            }
        }
        for (lane, error) in self.refused {
            places.put(lane, Err(error));
        }
    }
}
