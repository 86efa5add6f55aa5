//! Powers by a table as a device job.

use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::Error;
use crypto_bigint::Limb;

use super::DeviceTable;
use crate::backend::cuda::family::Grid;
use crate::backend::cuda::family::fixed::{self, FixedChunk};
use crate::backend::cuda::runtime::device::Call;
use crate::backend::cuda::runtime::launch::Loaded;
use crate::backend::cuda::runtime::pipeline::{ChunkLens, Job, Stop};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::slot::Slot;
use crate::backend::cuda::words::{COPIED_AT_A_TIME, HostPool, NonTemporal, copy_out};

/// The powers with all exponents.
pub(super) struct FixedJob<'a> {
    pub(super) table: &'a DeviceTable,
    pub(super) exponents: &'a [&'a [Limb]],
    pub(super) exponent_bits: u32,
    pub(super) threads: HostPool<'a>,
}

/// The kernel with which a device computes its share, and the record of the table there.
pub(super) struct Share {
    grid: Grid,
    loaded: Loaded,
    index: u32,
}

impl FixedJob<'_> {
    /// The bits in which the highest digit is changed: signed exponents are raised by half of their
    /// range.
    fn flipped(&self) -> u32 {
        match self.exponent_bits.checked_sub(1) {
            Some(top) if self.table.is_signed => 1 << (top % fixed::WINDOW_BITS),
            _ => 0,
        }
    }

    /// Writes the exponents of a chunk.
    fn fill(&self, chunk: &Range<usize>, words: &mut [u64]) {
        let size = self.table.shape.entry.words();
        let exponents = self.exponents[chunk.clone()].chunks(COPIED_AT_A_TIME);
        let parts = exponents.zip(words.chunks_mut(COPIED_AT_A_TIME * size));
        self.threads
            .each_item(parts.collect(), |(exponents, words)| {
                NonTemporal::with(|stores| {
                    for (exponent, words) in exponents.iter().zip(words.chunks_exact_mut(size)) {
                        stores.copy_in(exponent, words);
                    }
                });
            });
    }
}

impl<'p> Job<&'p mut [&mut [Limb]]> for FixedJob<'_> {
    type Share = Share;
    type Chunk = ();
    type Error = Error;

    /// The time of as many exponentiations. It is proportional, and only the ratio of devices
    /// matters.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        let (entry, bits) = (self.table.shape.entry, self.exponent_bits);
        let milliseconds = || entry.milliseconds(device, count, bits);
        entry.runs_on(device).then(milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, _: usize) -> Result<(Share, ChunkLens), Error> {
        let (device, shape) = (call.device(), &self.table.shape);
        let records = call.table(shape.record_kind());
        let index = records.index_of(&self.table.residence, |words| {
            words.copy_from_slice(&self.table.record);
        });
        let index = index.map_err(|error| device.fault(error))?;
        let mut loaded = Loaded {
            kernels: Vec::new(),
            records: Some(records.hold()),
        };
        let grid = Grid::load(shape.entry, device, &mut loaded)?;
        let per_block = shape.entry.image.instances_per_block;
        let lens = ChunkLens::halves(grid.resident_instances(), per_block);
        let share = Share {
            grid,
            loaded,
            index,
        };
        Ok((share, lens))
    }

    fn submit(
        &self,
        share: &Share,
        chunk: &Range<usize>,
        slot: &mut Slot,
    ) -> Result<(), Stop<Error>> {
        let what = FixedChunk {
            count: chunk.len(),
            exponent_bits: self.exponent_bits,
            index: share.index,
            flipped: self.flipped(),
        };
        let work = fixed::powers(&self.table.shape, share.grid, &what);
        let fill = |input: &mut [u64]| self.fill(chunk, input);
        slot.submit(&work.layout, fill, &work.launches, &share.loaded)?;
        Ok(())
    }

    fn take(
        &self,
        _: &Share,
        (): (),
        _: &Range<usize>,
        words: &mut [u64],
        places: &'p mut [&mut [Limb]],
    ) {
        let size = self.table.shape.entry.words();
        self.threads
            .each_with_number(places, words, size, |place, words| copy_out(words, place));
    }
}
