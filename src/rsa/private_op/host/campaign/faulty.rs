//! A backend around another one, in which one thing goes wrong once.

use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard};

use chacha20::ChaCha20Rng;
use crypto_bigint::{BoxedUint, Limb, Word};
use rand_core::SeedableRng;

use super::super::{FaultInjection, Intermediate, Stage, with_faults};
use super::LANES;
use super::fault::{Kind, Place};
use crate::rsa::Error;
use crate::rsa::private_op::batch::Batch;
use crate::rsa::private_op::group::Positions;
use crate::rsa::{HostEngine, KeyHandle, PrivateOps, RsaPrivateOp};
use crate::{BatchModExp, ModExp};

/// Whether candidates are checked. They are not for the control alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Check {
    On,
    Off,
}

/// Computes like `backend` but for one fault, which comes in the first call.
pub(super) struct Faulty<B> {
    backend: B,
    place: Place,
    kind: Kind,
    check: Check,
    /// When a fault in a list comes: 0, 1 or 2.
    moment: u64,
    state: Mutex<State>,
}

struct State {
    random: ChaCha20Rng,
    is_armed: bool,
    hit: Vec<usize>,
    blocks: Vec<Vec<Limb>>,
}

impl<B> Faulty<B> {
    pub(super) fn new(backend: B, place: Place, kind: Kind, check: Check, seed: u64) -> Self {
        Self {
            backend,
            place,
            kind,
            check,
            moment: seed % 3,
            state: Mutex::new(State {
                random: ChaCha20Rng::seed_from_u64(seed),
                is_armed: true,
                hit: Vec::new(),
                blocks: Vec::new(),
            }),
        }
    }

    /// Whether the fault is still to come.
    pub(super) fn is_armed(&self) -> bool {
        self.state().is_armed
    }

    /// The lanes in which a number has changed.
    pub(super) fn hit_lanes(&self) -> Vec<usize> {
        self.state().hit.clone()
    }

    /// The encoded messages that all lanes were computed from.
    pub(super) fn blocks(&self) -> Vec<Vec<Limb>> {
        self.state().blocks.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Strikes `numbers` of all lanes, if the fault is one of this place and has not come yet.
    fn pass(&self, place: Place, numbers: &mut [&mut [Limb]]) {
        let mut state = self.state();
        if place == self.place && state.is_armed {
            let changed = self.kind.strike(numbers, &mut state.random);
            state.hit = changed.into_iter().map(|i| i % LANES).collect();
            state.is_armed = false;
        }
    }

    /// The keys and positions of the lanes of a batch of two keys, with the fault if it is one of theirs.
    fn struck_lists<'k>(&self, batch: &Batch<'k>) -> (Vec<&'k KeyHandle>, Positions) {
        let words = |numbers: &[usize]| -> Vec<Limb> {
            numbers.iter().map(|&number| Limb(number as Word)).collect()
        };
        let mut order = words(&Vec::from_iter(0..batch.keys.len()));
        self.pass(Place::Keys, &mut flat(&mut order, 1));
        let keys = order.iter().map(|i| batch.keys[i.0 as usize]).collect();

        let Positions::Sorted([positions, copy]) = batch.positions else {
            unreachable!("there are two keys");
        };
        let mut struck = words(positions);
        self.pass(Place::Positions, &mut flat(&mut struck, 1));
        let struck = struck.iter().map(|word| word.0 as usize).collect();
        (keys, Positions::Sorted([struck, copy.clone()]))
    }

    /// Candidates of a lane too few, or too many.
    fn miscount(&self, candidates: &mut Vec<Limb>, limbs: usize) {
        let mut state = self.state();
        if self.place == Place::Count && state.is_armed {
            match self.kind {
                Kind::Dropped => candidates.truncate(candidates.len() - limbs),
                _ => candidates.extend_from_within(..limbs),
            }
            state.hit = (0..LANES).collect();
            state.is_armed = false;
        }
    }

    fn pass_verdicts(&self, verdicts: &mut [bool]) {
        if self.check == Check::Off {
            return verdicts.fill(true);
        }
        let mut words: Vec<_> = verdicts.iter().map(|&v| Limb(Word::from(v))).collect();
        self.pass(Place::Verdicts, &mut flat(&mut words, 1));
        for (verdict, word) in verdicts.iter_mut().zip(words) {
            *verdict = word == Limb::ONE;
        }
    }
}

/// Numbers of so many limbs each.
fn flat(numbers: &mut [Limb], limbs: usize) -> Vec<&mut [Limb]> {
    numbers.chunks_exact_mut(limbs).collect()
}

fn boxed(numbers: &mut [BoxedUint]) -> Vec<&mut [Limb]> {
    let numbers = numbers.iter_mut();
    numbers.map(BoxedUint::as_mut_limbs).collect()
}

impl<B> FaultInjection for &Faulty<B> {
    fn inject_fault(&mut self, stage: Stage, intermediate: Intermediate<'_>) {
        let mut numbers = match intermediate {
            Intermediate::Flat(numbers, limbs) => flat(numbers, limbs),
            Intermediate::Boxed(numbers) => boxed(numbers),
        };
        self.pass(Place::Stage(stage), &mut numbers);
    }
}

impl<B: RsaPrivateOp> BatchModExp<BoxedUint> for Faulty<B> {
    type Error = crate::Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, BoxedUint>],
        exponent_bits: u32,
        out: &mut [BoxedUint],
    ) -> Result<(), crate::Error> {
        let mut order: Vec<_> = (0..batch.len()).map(|i| Limb(i as Word)).collect();
        self.pass(Place::Instances, &mut flat(&mut order, 1));
        let mut bases: Vec<_> = batch.iter().map(|instance| instance.base.clone()).collect();
        self.pass(Place::GivenBases, &mut boxed(&mut bases));
        let exponents = batch.iter().map(|instance| instance.exponent.clone());
        let mut exponents: Vec<_> = exponents.collect();
        self.pass(Place::GivenExponents, &mut boxed(&mut exponents));
        let instance = |i: &Limb| {
            let i = i.0 as usize;
            ModExp::new(&bases[i], &exponents[i], batch[i].params)
        };
        let instances: Vec<_> = order.iter().map(instance).collect();
        self.backend.batch_mod_exp(&instances, exponent_bits, out)?;
        self.pass(Place::Powers, &mut boxed(out));
        Ok(())
    }
}

impl<B: RsaPrivateOp> RsaPrivateOp for Faulty<B> {
    fn engine(&self) -> HostEngine<'_> {
        self.backend.engine()
    }

    fn private_op(&self, ops: PrivateOps<'_>) -> Result<(), Error> {
        let lists = self.struck_lists(ops.batch);
        let (keys, positions) = &lists;
        let struck = Batch {
            keys,
            positions,
            ..*ops.batch
        };
        // A fault in the lists comes before lanes are opened, before they are computed, or before they are delivered.
        let sound = ops.batch;
        let batch = |step| match step < self.moment {
            true => sound,
            false => &struck,
        };
        let mut chunk = PrivateOps {
            batch: batch(0),
            ..ops
        }
        .open()?;
        let limbs = chunk.limbs();
        let opened = &mut chunk.opened;
        let blocks = &mut opened.representatives;
        self.pass(Place::Block, &mut flat(blocks, limbs));
        self.state().blocks = blocks.chunks_exact(limbs).map(<[_]>::to_vec).collect();
        if let Some(blinds) = &mut opened.blinds {
            self.pass(Place::Blinds, &mut flat(&mut blinds.numbers, limbs));
            let masks = blinds.masks.iter();
            let mut words: Vec<_> = masks.map(|&mask| Limb(mask.into())).collect();
            self.pass(Place::Masks, &mut flat(&mut words, 1));
            for (mask, word) in blinds.masks.iter_mut().zip(words) {
                *mask = word.0 as u16;
            }
        }
        chunk.batch = batch(1);
        let mut candidates = with_faults(
            self,
            self.backend.engine().0,
            chunk.batch,
            &chunk.opened,
            &mut &*self,
        )?;
        let blocks = &mut chunk.opened.representatives;
        self.pass(Place::KeptBlock, &mut flat(blocks, limbs));
        self.miscount(&mut candidates, limbs);
        chunk.batch = batch(2);
        if self.check == Check::Off || self.place == Place::Verdicts {
            chunk.close_with(&candidates, |verdicts| self.pass_verdicts(verdicts));
            return Ok(());
        }
        chunk.deliver(&candidates)
    }
}
