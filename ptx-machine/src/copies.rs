//! Bulk copies to shared memory, and the barriers that tell when they are complete (PTX ISA,
//! "mbarrier" and "cp.async.bulk").
//!
//! Here a copy is complete at once; on a device it takes time. The results are equal if no warp
//! accesses the destination before it has waited for the copy itself, and if no barrier begins a
//! phase while warps may still wait for the one before.

use std::collections::BTreeSet;

use crate::fault::{Fault, Location};

/// The bytes that a place has. No access crosses its end, and a barrier fills one.
const PLACE: usize = 8;
/// The unit of addresses and sizes of copies.
pub(crate) const COPIED: u64 = 16;
const MAX_WARPS: usize = 32;
/// The bytes that a barrier can expect.
const MAX_EXPECTED: u64 = (1 << 20) - 1;

/// The copies of a block, and the stores that copies may not see yet.
pub(crate) struct Copies {
    places: Vec<Place>,
    /// For each copy the index of its barrier, and the phase that it completes.
    copies: Vec<(usize, u64)>,
    barriers: Vec<Barrier>,
    /// For each warp the addresses of 16 bytes in global memory that it has stored to since its
    /// last fence. Empty for a program without copies.
    unfenced: Vec<BTreeSet<u64>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Ordinary,
    /// The index of the last copy to the place.
    Copied(u32),
    /// The index of the barrier.
    Barrier(u32),
}

/// A barrier with one arrival in each phase.
struct Barrier {
    /// The number of phases that are complete, and so the number of the current one.
    complete: u64,
    has_arrived: bool,
    /// Bytes that the current phase expects, less those that were copied.
    missing: i64,
    /// For each warp the number of phases that it has waited for.
    waited: [u64; MAX_WARPS],
}

impl Copies {
    pub(crate) fn new(shared_bytes: usize, has_copies: bool) -> Self {
        let unfenced = vec![BTreeSet::new(); if has_copies { MAX_WARPS } else { 0 }];
        Self {
            places: vec![Place::Ordinary; shared_bytes.div_ceil(PLACE)],
            copies: Vec::new(),
            barriers: Vec::new(),
            unfenced,
        }
    }

    /// Checks that a warp may access an address in shared memory.
    pub(crate) fn check(&self, warp: u32, address: u64) -> Result<(), Fault> {
        match self.places[address as usize / PLACE] {
            Place::Ordinary => Ok(()),
            Place::Copied(copy) => {
                let (barrier, phase) = self.copies[copy as usize];
                match self.barriers[barrier].waited[warp as usize] > phase {
                    true => Ok(()),
                    false => Err(Fault::CopyInFlight(Location::Shared(address))),
                }
            }
            Place::Barrier(_) => Err(misuse(address)),
        }
    }

    /// Makes a barrier.
    pub(crate) fn initialise(&mut self, warp: u32, address: u64) -> Result<(), Fault> {
        self.check(warp, address)?;
        self.places[address as usize / PLACE] = Place::Barrier(self.barriers.len() as u32);
        self.barriers.push(Barrier {
            complete: 0,
            has_arrived: false,
            missing: 0,
            waited: [0; MAX_WARPS],
        });
        Ok(())
    }

    /// Arrives at a barrier, whose current phase expects `bytes` more.
    pub(crate) fn arrive(&mut self, warp: u32, address: u64, bytes: u64) -> Result<(), Fault> {
        let index = self.current(warp, address)?;
        let barrier = &mut self.barriers[index];
        if barrier.has_arrived || bytes > MAX_EXPECTED {
            return Err(misuse(address));
        }
        barrier.has_arrived = true;
        barrier.missing += bytes as i64;
        barrier.complete_phase();
        Ok(())
    }

    /// Records a copy of `bytes` to an address.
    pub(crate) fn copy(
        &mut self,
        warp: u32,
        to: u64,
        bytes: u64,
        barrier: u64,
    ) -> Result<(), Fault> {
        let index = self.current(warp, barrier)?;
        for address in (to..to + bytes).step_by(PLACE) {
            self.check(warp, address)?;
            self.places[address as usize / PLACE] = Place::Copied(self.copies.len() as u32);
        }
        let barrier = &mut self.barriers[index];
        self.copies.push((index, barrier.complete));
        barrier.missing -= bytes as i64;
        barrier.complete_phase();
        Ok(())
    }

    /// Whether the phase with this parity is complete. The warp has waited for it then.
    ///
    /// A warp must wait for every phase. A device might take the phase before the last for the one
    /// with the same parity that is meant.
    pub(crate) fn wait(&mut self, warp: u32, address: u64, parity: u64) -> Result<bool, Fault> {
        let index = self.barrier(address)?;
        let barrier = &mut self.barriers[index];
        let waited = &mut barrier.waited[warp as usize];
        if parity > 1 || *waited + 1 < barrier.complete {
            return Err(misuse(address));
        }
        if barrier.complete & 1 == parity {
            return Ok(false);
        }
        *waited = barrier.complete;
        Ok(true)
    }

    /// Checks at the end of a block that a warp has waited for each copy. Otherwise the block might
    /// end before the copy.
    pub(crate) fn none_left(&self) -> Result<(), Fault> {
        let is_left = |&(barrier, phase): &(usize, u64)| {
            let barrier: &Barrier = &self.barriers[barrier];
            barrier.waited.iter().all(|&waited| waited <= phase)
        };
        let Some(copy) = self.copies.iter().position(is_left) else {
            return Ok(());
        };
        let copied = Place::Copied(copy as u32);
        let place = self.places.iter().position(|place| *place == copied);
        let address = place.unwrap_or(0) * PLACE;
        Err(Fault::CopyInFlight(Location::Shared(address as u64)))
    }

    /// The index of a barrier for a warp that takes part in its current phase. It must have waited
    /// for the phases before.
    fn current(&self, warp: u32, address: u64) -> Result<usize, Fault> {
        let index = self.barrier(address)?;
        let barrier = &self.barriers[index];
        match barrier.waited[warp as usize] == barrier.complete {
            true => Ok(index),
            false => Err(misuse(address)),
        }
    }

    fn barrier(&self, address: u64) -> Result<usize, Fault> {
        match self.places[address as usize / PLACE] {
            Place::Barrier(index) => Ok(index as usize),
            _ => Err(misuse(address)),
        }
    }

    /// Records a store to global memory.
    pub(crate) fn store(&mut self, warp: u32, address: u64) {
        if let Some(unfenced) = self.unfenced.get_mut(warp as usize) {
            unfenced.insert(address / COPIED);
        }
    }

    /// Makes the stores of a warp to global memory visible to copies.
    pub(crate) fn fence(&mut self, warp: u32) {
        if let Some(unfenced) = self.unfenced.get_mut(warp as usize) {
            unfenced.clear();
        }
    }

    /// Whether copies see all stores to these bytes in global memory.
    pub(crate) fn see(&self, address: u64, bytes: u64) -> bool {
        let range = address / COPIED..(address + bytes) / COPIED;
        self.unfenced
            .iter()
            .all(|unfenced| unfenced.range(range.clone()).next().is_none())
    }
}

impl Barrier {
    fn complete_phase(&mut self) {
        if self.has_arrived && self.missing == 0 {
            self.complete += 1;
            self.has_arrived = false;
        }
    }
}

fn misuse(address: u64) -> Fault {
    Fault::CopyBarrier(Location::Shared(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: u64 = 64;

    fn copies() -> Copies {
        let mut copies = Copies::new(128, true);
        copies.initialise(0, BARRIER).unwrap();
        copies
    }

    #[test]
    fn every_warp_waits_itself() {
        let mut copies = copies();
        copies.arrive(0, BARRIER, 48).unwrap();
        copies.copy(0, 0, 32, BARRIER).unwrap();
        assert_eq!(copies.wait(1, BARRIER, 0), Ok(false));
        copies.copy(0, 32, 16, BARRIER).unwrap();
        let left = Err(Fault::CopyInFlight(Location::Shared(0)));
        assert_eq!(copies.none_left(), left);
        let in_flight = Err(Fault::CopyInFlight(Location::Shared(40)));
        assert_eq!(copies.check(1, 40), in_flight);
        assert_eq!(copies.wait(1, BARRIER, 0), Ok(true));
        assert_eq!(copies.check(1, 40), Ok(()));
        assert_eq!(copies.none_left(), Ok(()));
        assert_eq!(copies.check(0, 40), in_flight);
        assert_eq!(copies.copy(0, 32, 16, BARRIER), Err(misuse(BARRIER)));
    }

    #[test]
    fn phases_alternate() {
        let mut copies = copies();
        for phase in 0..4 {
            assert_eq!(copies.wait(0, BARRIER, phase & 1), Ok(false));
            // The copy may come before the arrival.
            copies.copy(0, 0, 16, BARRIER).unwrap();
            copies.arrive(0, BARRIER, 16).unwrap();
            assert_eq!(copies.wait(0, BARRIER, phase & 1), Ok(true));
            assert_eq!(copies.wait(0, BARRIER, phase & 1), Ok(true));
            copies.check(0, 0).unwrap();
        }
        // This warp has not waited for the phases before.
        for parity in [0, 1] {
            assert_eq!(copies.wait(1, BARRIER, parity), Err(misuse(BARRIER)));
        }
        assert_eq!(copies.arrive(1, BARRIER, 16), Err(misuse(BARRIER)));
    }

    #[test]
    fn a_phase_has_one_arrival() {
        let mut copies = copies();
        copies.arrive(0, BARRIER, 16).unwrap();
        assert_eq!(copies.arrive(0, BARRIER, 0), Err(misuse(BARRIER)));
    }

    #[test]
    fn impossible_numbers() {
        let mut copies = copies();
        assert_eq!(copies.arrive(0, BARRIER, 1 << 20), Err(misuse(BARRIER)));
        assert_eq!(copies.wait(0, BARRIER, 2), Err(misuse(BARRIER)));
    }

    #[test]
    fn barriers_are_nothing_else() {
        let mut copies = copies();
        assert_eq!(copies.initialise(0, BARRIER), Err(misuse(BARRIER)));
        assert_eq!(copies.check(0, BARRIER + 4), Err(misuse(BARRIER + 4)));
        assert_eq!(copies.copy(0, 48, 32, BARRIER), Err(misuse(BARRIER)));
        assert_eq!(copies.arrive(0, 8, 16), Err(misuse(8)));
        assert_eq!(copies.wait(0, 8, 0), Err(misuse(8)));
    }

    #[test]
    fn stores_want_a_fence() {
        let mut copies = copies();
        copies.store(0, 0x1014);
        copies.store(1, 0x1014);
        copies.fence(0);
        assert!(!copies.see(0x1000, 32));
        assert!(copies.see(0x1000, 16) && copies.see(0x1020, 16));
        copies.fence(1);
        assert!(copies.see(0x1000, 32));
    }
}
