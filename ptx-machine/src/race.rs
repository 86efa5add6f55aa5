//! Detects races: tracks the warps that accessed shared memory since the last barrier of the block.
//!
//! Here warps run one after another; on a device they run in any order. The results are equal if,
//! since the last barrier, no warp reads bytes that another has written, or writes bytes that
//! another has read or written.

use crate::fault::{Fault, Location};

/// Several warps have read the byte.
const SEVERAL: u8 = u8::MAX;

/// For each byte the warps that wrote it and that read it, counted from 1.
pub(crate) struct Touched {
    writer: Vec<u8>,
    reader: Vec<u8>,
    /// The warp that wrote the byte, if it has executed no `fence.proxy.async` since. Barriers do
    /// not count.
    unfenced: Vec<u8>,
}

impl Touched {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            writer: vec![0; bytes],
            reader: vec![0; bytes],
            unfenced: vec![0; bytes],
        }
    }

    /// Records a barrier of all warps.
    pub(crate) fn barrier(&mut self) {
        self.writer.fill(0);
        self.reader.fill(0);
    }

    /// Records a read by warp number `warp`, from 0, of `size` bytes that are within the memory.
    pub(crate) fn read(&mut self, warp: u32, address: u64, size: usize) -> Result<(), Fault> {
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
        let own = warp as u8 + 1;
        for byte in address as usize..address as usize + size {
            if ![0, own].contains(&self.writer[byte]) || ![0, own].contains(&self.reader[byte]) {
                return Err(race(address));
            }
            self.writer[byte] = own;
            self.unfenced[byte] = own;
        }
        Ok(())
    }

    /// Makes the writes of warp number `warp` visible to matrix products, also of warps that meet
    /// it in a barrier afterwards.
    pub(crate) fn proxy_fence(&mut self, warp: u32) {
        let own = warp as u8 + 1;
        let mine = self.unfenced.iter_mut().filter(|writer| **writer == own);
        mine.for_each(|writer| *writer = 0);
    }

    /// Records a [`read`](Self::read) by a matrix product.
    pub(crate) fn read_by_product(
        &mut self,
        warp: u32,
        address: u64,
        size: usize,
    ) -> Result<(), Fault> {
        let range = address as usize..address as usize + size;
        if self.unfenced[range].iter().any(|&writer| writer != 0) {
            return Err(Fault::Unseen(Location::Shared(address)));
        }
        self.read(warp, address, size)
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
        let mut touched = Touched::new(32);
        touched.write(0, 8, 8).unwrap();
        touched.proxy_fence(1);
        touched.barrier();
        assert_eq!(touched.read_by_product(0, 8, 8), unseen);
        touched.proxy_fence(0);
        assert_eq!(touched.read_by_product(0, 8, 8), Ok(()));
        assert_eq!(touched.read_by_product(1, 8, 8), Ok(()));
        touched.barrier();
        touched.write(0, 8, 8).unwrap();
        touched.proxy_fence(0);
        // There was a fence, but no barrier.
        assert_eq!(touched.read_by_product(1, 8, 8), Err(race(8)));
    }

    #[test]
    fn warps_must_meet_between_their_accesses() {
        let race = Err(race(8));
        let mut touched = Touched::new(32);
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
