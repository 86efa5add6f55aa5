//! A backend in which one fault happens once.

use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard};

use batch_modexp_core::engine::Engine;
use chacha20::ChaCha20Rng;
use crypto_bigint::{Limb, Word};
use rand_core::SeedableRng;

use super::super::testing::{Hooked, Stage};
use super::ITEMS;
use super::fault::{Kind, Place};
use crate::rsa::batch::{Batch, Positions};

/// Whether results are checked. Only the control does not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Check {
    On,
    Off,
}

/// A backend with a fault in its first call.
pub(super) struct Faulty<'a> {
    engine: &'a dyn Engine,
    place: Place,
    kind: Kind,
    check: Check,
    /// When a list is hit: before items are encoded, computed or checked.
    moment: u64,
    state: Mutex<State>,
}

struct State {
    random: ChaCha20Rng,
    is_armed: bool,
    hit: Vec<usize>,
    /// The encoded messages that items were computed from.
    blocks: Vec<Vec<Limb>>,
    /// Numbers in memory, to be hit later.
    list: Option<InMemory>,
    block: Option<InMemory>,
}

/// Numbers in consecutive memory.
struct InMemory {
    address: usize,
    numbers: Vec<Vec<Limb>>,
    /// For lists of pointers, the values to write instead of indices.
    pointers: Vec<Limb>,
}

impl<'a> Faulty<'a> {
    pub(super) fn new(
        engine: &'a dyn Engine,
        place: Place,
        kind: Kind,
        check: Check,
        seed: u64,
    ) -> Self {
        Self {
            engine,
            place,
            kind,
            check,
            moment: seed % 3,
            state: Mutex::new(State {
                random: ChaCha20Rng::seed_from_u64(seed),
                is_armed: true,
                hit: Vec::new(),
                blocks: Vec::new(),
                list: None,
                block: None,
            }),
        }
    }

    /// Calls `f` with the backend.
    pub(super) fn with_backend<R>(&self, f: impl FnOnce(&Hooked<'_>) -> R) -> R {
        let hook = |stage, numbers: &mut [Limb], size| self.pass(stage, numbers, size);
        let at_start = |batch: &Batch<'_>| self.note_lists(batch);
        let at_first = |ems: &[Limb]| {
            self.note_blocks(ems);
            if self.place == Place::Block {
                self.inject_into_block();
            }
        };
        let at_check = |ems: &[Limb]| {
            self.note_blocks(ems);
            self.inject_into_kept_block();
        };
        let mut hooked = Hooked::new(self.engine, &hook);
        (hooked.at_start, hooked.at_first, hooked.at_check) = (&at_start, &at_first, &at_check);
        f(&hooked)
    }

    /// Whether the fault has not happened yet.
    pub(super) fn is_armed(&self) -> bool {
        self.state().is_armed
    }

    /// The items whose numbers changed.
    pub(super) fn hit_items(&self) -> Vec<usize> {
        self.state().hit.clone()
    }

    /// The encoded messages that all items were computed from.
    pub(super) fn blocks(&self) -> Vec<Vec<Limb>> {
        self.state().blocks.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Damages numbers of all items, if the fault is one of this stage and has not happened yet.
    fn pass(&self, stage: Stage, numbers: &mut [Limb], size: usize) {
        match stage {
            Stage::Bases => {
                // Unblinded items without primes are computed from these alone.
                if numbers.len() == ITEMS * size {
                    self.note_blocks(numbers);
                }
                self.inject_into_list(1);
            }
            Stage::Results => {
                self.inject_into_list(2);
                self.inject_into_kept_block();
            }
            Stage::Verdicts if self.check == Check::Off => {
                return match size {
                    1 => numbers.fill(Limb::ONE),
                    _ => numbers.copy_from_slice(&self.blocks().concat()),
                };
            }
            _ => {}
        }
        if self.place == Place::Stage(stage) {
            let mut numbers: Vec<_> = numbers.chunks_exact_mut(size).collect();
            self.inject(&mut numbers);
        }
    }

    fn inject(&self, numbers: &mut [&mut [Limb]]) {
        let mut state = self.state();
        if state.is_armed {
            let changed = self.kind.inject(numbers, &mut state.random);
            state.hit = changed.into_iter().map(|i| i % ITEMS).collect();
            state.is_armed = false;
        }
    }

    /// Records the address of the list to hit: keys or positions.
    fn note_lists(&self, batch: &Batch<'_>) {
        let words = |numbers: &mut dyn Iterator<Item = usize>| -> Vec<Limb> {
            numbers.map(|number| Limb(number as Word)).collect()
        };
        let (address, numbers, pointers) = match (self.place, batch.positions) {
            (Place::Keys, _) => {
                let keys = batch
                    .keys
                    .iter()
                    .map(|key| core::ptr::from_ref(*key).addr());
                let order = words(&mut (0..batch.keys.len()));
                (
                    batch.keys.as_ptr().addr(),
                    order,
                    words(&mut keys.into_iter()),
                )
            }
            (Place::Positions, Positions::Lists([positions, _])) => {
                let numbers = words(&mut positions.iter().copied());
                (positions.as_ptr().addr(), numbers, Vec::new())
            }
            _ => return,
        };
        self.state().list = Some(InMemory {
            address,
            numbers: numbers.chunks(1).map(<[Limb]>::to_vec).collect(),
            pointers,
        });
        self.inject_into_list(0);
    }

    fn inject_into_list(&self, moment: u64) {
        let list = match moment == self.moment {
            true => self.state().list.take(),
            false => None,
        };
        if let Some(list) = list {
            self.inject_into_memory(list);
        }
    }

    /// Records the encoded messages and their address.
    fn note_blocks(&self, ems: &[Limb]) {
        let mut state = self.state();
        if state.blocks.is_empty() {
            let blocks = ems.chunks_exact(ems.len() / ITEMS);
            state.blocks = blocks.map(<[Limb]>::to_vec).collect();
            state.block = Some(InMemory {
                address: ems.as_ptr().addr(),
                numbers: state.blocks.clone(),
                pointers: Vec::new(),
            });
        }
    }

    fn inject_into_block(&self) {
        let block = self.state().block.take();
        if let Some(block) = block {
            let blocks = self.inject_into_memory(block);
            self.state().blocks = blocks;
        }
    }

    fn inject_into_kept_block(&self) {
        let block = match self.place {
            Place::KeptBlock => self.state().block.take(),
            _ => None,
        };
        if let Some(block) = block {
            self.inject_into_memory(block);
        }
    }

    /// Damages numbers in memory, and returns the new numbers.
    fn inject_into_memory(&self, list: InMemory) -> Vec<Vec<Limb>> {
        let InMemory {
            address,
            mut numbers,
            pointers,
        } = list;
        if self.state().is_armed {
            self.inject(
                &mut numbers
                    .iter_mut()
                    .map(|number| &mut number[..])
                    .collect::<Vec<_>>(),
            );
            let words = numbers.iter().flatten();
            let words: Vec<Limb> = match pointers.is_empty() {
                true => words.copied().collect(),
                false => words.map(|i| pointers[i.0 as usize]).collect(),
            };
            #[cfg(target_os = "linux")]
            super::memory::overwrite_at(address, &words);
            #[cfg(not(target_os = "linux"))]
            unreachable!("there is no such place: {address}, {words:?}");
        }
        numbers
    }
}
