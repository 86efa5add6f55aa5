//! Detects races: tracks the warps that accessed shared memory since the last barrier of the block.
//!
//! Here warps run one after another; on a device they run in any order. The results are equal if,
//! since the last barrier, no warp reads bytes that another has written, or writes bytes that
//! another has read or written. Bulk copies have their own rules beside these.

use core::ops::Range;

use crate::copies::Copies;
use crate::fault::{Fault, Location};

/// The bytes of a barrier for copies.
const BARRIER: usize = 8;
/// Several warps have read the byte.
const SEVERAL: u8 = u8::MAX;

/// For each byte the warps that wrote it and that read it, counted from 1.
pub(crate) struct Touched {
    writer: Vec<u8>,
    reader: Vec<u8>,
    /// The warp that wrote the byte, if it has executed no `fence.proxy.async` since. Barriers do
    /// not count.
    unfenced: Vec<u8>,
    pub(crate) copies: Copies,
}

impl Touched {
    pub(crate) fn new(bytes: usize, has_copies: bool) -> Self {
        Self {
            writer: vec![0; bytes],
            reader: vec![0; bytes],
            unfenced: vec![0; bytes],
            copies: Copies::new(bytes, has_copies),
        }
    }

    /// Records a barrier of all warps.
    pub(crate) fn barrier(&mut self) {
        self.writer.fill(0);
        self.reader.fill(0);
    }

    /// Records a read by warp number `warp`, from 0, of `size` bytes that are within the memory.
    pub(crate) fn read(&mut self, warp: u32, address: u64, size: usize) -> Result<(), Fault> {
        self.copies.check(warp, address)?;
        self.record_read(warp, address, size)
    }

    fn record_read(&mut self, warp: u32, address: u64, size: usize) -> Result<(), Fault> {
        let own = warp as u8 + 1;
        for byte in address as usize..address as usize + size {
            if ![0, own].contains(&self.writer[byte]) {
                return Err(race(address));
            }
            let reader = &mut self.reader[byte];
            *reader = if [0, own].contains(reader) {
                own
            } else {
                SEVERAL
            };
        }
        Ok(())
    }

    /// Records a write by warp number `warp`, from 0, of `size` bytes that are within the memory.
    pub(crate) fn write(&mut self, warp: u32, address: u64, size: usize) -> Result<(), Fault> {
        self.copies.check(warp, address)?;
        let range = address as usize..address as usize + size;
        self.check_write(warp, range.clone())?;
        let own = warp as u8 + 1;
        self.writer[range.clone()].fill(own);
        self.unfenced[range].fill(own);
        Ok(())
    }

    /// Checks that no other warp accesses bytes that a warp writes.
    fn check_write(&self, warp: u32, bytes: Range<usize>) -> Result<(), Fault> {
        let start = bytes.start as u64;
        let is_own = |other: &u8| [0, warp as u8 + 1].contains(other);
        let mut others = self.writer[bytes.clone()].iter().chain(&self.reader[bytes]);
        match others.all(is_own) {
            true => Ok(()),
            false => Err(race(start)),
        }
    }

    /// Makes the writes of warp number `warp` visible to matrix products and bulk copies, also of
    /// warps that meet it in a barrier afterwards.
    pub(crate) fn proxy_fence(&mut self, warp: u32) {
        let own = warp as u8 + 1;
        let mine = self.unfenced.iter_mut().filter(|writer| **writer == own);
        mine.for_each(|writer| *writer = 0);
    }

    /// Records a [`read`](Self::read) by a matrix product.
    pub(crate) fn read_async(&mut self, warp: u32, address: u64, size: usize) -> Result<(), Fault> {
        self.check_fenced(address as usize..address as usize + size)?;
        self.read(warp, address, size)
    }

    /// Checks that all stores to bytes are visible to matrix products and bulk copies.
    fn check_fenced(&self, bytes: Range<usize>) -> Result<(), Fault> {
        let start = bytes.start as u64;
        match self.unfenced[bytes].iter().all(|&writer| writer == 0) {
            true => Ok(()),
            false => Err(Fault::Unseen(Location::Shared(start))),
        }
    }

    /// Records that warp number `warp` makes a barrier for copies. This is a write.
    pub(crate) fn init_barrier(&mut self, warp: u32, address: u64) -> Result<(), Fault> {
        self.write(warp, address, BARRIER)?;
        self.copies.initialise(warp, address)
    }

    /// Records an arrival at a barrier, whose phase expects `bytes` more. A warp that waits for the
    /// phase before must meet this one first, or it might miss the phase.
    pub(crate) fn arrive(&mut self, warp: u32, address: u64, bytes: u64) -> Result<(), Fault> {
        self.check_write(warp, address as usize..address as usize + BARRIER)?;
        self.copies.arrive(warp, address, bytes)
    }

    /// Whether the phase of this parity is complete. The barrier is read then.
    pub(crate) fn wait(&mut self, warp: u32, address: u64, parity: u64) -> Result<bool, Fault> {
        let is_complete = self.copies.wait(warp, address, parity)?;
        if is_complete {
            self.record_read(warp, address, BARRIER)?;
        }
        Ok(is_complete)
    }

    /// Records a bulk copy to bytes within the memory. No later access needs a barrier of the
    /// block, since each warp waits for the copy.
    pub(crate) fn copy(
        &mut self,
        warp: u32,
        to: u64,
        bytes: u64,
        barrier: u64,
    ) -> Result<(), Fault> {
        for (start, size) in [(to, bytes), (barrier, BARRIER as u64)] {
            let range = start as usize..(start + size) as usize;
            self.check_write(warp, range.clone())?;
            self.check_fenced(range)?;
        }
        self.copies.copy(warp, to, bytes, barrier)
    }
}

fn race(address: u64) -> Fault {
    Fault::Race(Location::Shared(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_want_a_fence_after_stores() {
        let unseen = Err(Fault::Unseen(Location::Shared(8)));
        let mut touched = Touched::new(32, false);
        touched.write(0, 8, 8).unwrap();
        touched.proxy_fence(1);
        touched.barrier();
        assert_eq!(touched.read_async(0, 8, 8), unseen);
        touched.proxy_fence(0);
        assert_eq!(touched.read_async(0, 8, 8), Ok(()));
        assert_eq!(touched.read_async(1, 8, 8), Ok(()));
        touched.barrier();
        touched.write(0, 8, 8).unwrap();
        touched.proxy_fence(0);
        // There was a fence, but no barrier.
        assert_eq!(touched.read_async(1, 8, 8), Err(race(8)));
    }

    #[test]
    fn a_phase_must_not_end_while_warps_wait_for_the_one_before() {
        let mut touched = Touched::new(32, true);
        touched.init_barrier(0, 16).unwrap();
        touched.proxy_fence(0);
        touched.barrier();
        touched.arrive(0, 16, 16).unwrap();
        assert_eq!(touched.wait(1, 16, 1), Ok(true));
        assert_eq!(touched.copy(0, 0, 16, 16), Err(race(16)));
        touched.barrier();
        assert_eq!(touched.copy(0, 0, 16, 16), Ok(()));
        assert_eq!(touched.wait(1, 16, 0), Ok(true));
        assert_eq!(touched.arrive(0, 16, 16), Err(race(16)));
    }

    #[test]
    fn warps_must_meet_between_their_accesses() {
        let race = Err(race(8));
        let mut touched = Touched::new(32, false);
        assert_eq!(touched.write(0, 8, 8), Ok(()));
        assert_eq!(touched.read(0, 8, 8), Ok(()));
        assert_eq!(touched.read(1, 8, 4), race);
        assert_eq!(touched.write(1, 8, 4), race);
        assert_eq!(touched.write(1, 16, 8), Ok(()));
        touched.barrier();
        assert_eq!(touched.read(1, 8, 4), Ok(()));
        assert_eq!(touched.read(2, 8, 4), Ok(()));
        assert_eq!(touched.write(1, 8, 4), race);
        assert_eq!(touched.write(3, 16, 4), Ok(()));
    }
}
