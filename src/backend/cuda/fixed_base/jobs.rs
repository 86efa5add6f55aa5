//! The work of devices: the entries of a table, as exponentiations of one base whose results are
//! operands, and powers by a table.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;
use std::sync::Mutex;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::{BoxedUint, Limb, Resize, Unsigned};

use super::{DeviceTable, Inputs};
use crate::backend::cuda::family::fixed::{self, FixedChunk};
use crate::backend::cuda::family::{Entry, Grid};
use crate::backend::cuda::feed::Feed;
use crate::backend::cuda::runtime::device::Call;
use crate::backend::cuda::runtime::launch::Loaded;
use crate::backend::cuda::runtime::pipeline::{ChunkLens, Job, Stop};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::slot::Slot;
use crate::backend::cuda::words::{COPIED_AT_A_TIME, HostPool, NonTemporal, copy_in, copy_out};

/// The entries of all rows.
pub(super) struct Entries<'a, U: Unsigned> {
    pub(super) kernel: &'static Entry,
    pub(super) inputs: &'a Inputs<'a, U>,
}

impl<'a, U: Unsigned> Entries<'a, U> {
    /// The base of an entry, and its exponent, which is public. An entry of row j for the digit d is
    /// the power with the exponent `d 2^(j w)`.
    ///
    /// Signed exponents are raised by half of their range, for which row 0 compensates: there the
    /// exponent is `d - 2^(exponent_bits - 1)`, a power of the inverse if it is negative.
    fn operands(&self, number: usize) -> (&'a U, BoxedUint) {
        let bits = self.inputs.exponent_bits;
        let (row, digit) = (number / fixed::ENTRIES, number % fixed::ENTRIES);
        let shifted = |number: u64, shift| {
            // Bits above the longest exponents are not used.
            let number = BoxedUint::from(number).resize(self.kernel.bits);
            let shifted = number.shl_vartime(shift);
            shifted.expect("a row begins within the longest exponents")
        };
        let digit = shifted(digit as u64, row as u32 * fixed::WINDOW_BITS);
        let (Some(inverse), 0, Some(top)) = (self.inputs.inverse, row, bits.checked_sub(1)) else {
            return (self.inputs.base, digit);
        };
        let half = shifted(1, top);
        match digit.cmp_vartime(&half) {
            Ordering::Less => (inverse, half.wrapping_sub(&digit)),
            _ => (self.inputs.base, digit.wrapping_sub(&half)),
        }
    }
}

impl<'a, 'p, U: Unsigned + Sync + Send> Feed<&'p mut [&mut [u64]]> for Entries<'a, U> {
    type Opened = Vec<(&'a U, BoxedUint)>;
    type Error = Error;

    fn moduli(&self, items: Range<usize>) -> Vec<(ModulusRef<'_>, usize)> {
        vec![(ModulusRef::of(self.inputs.params), items.len())]
    }

    fn open(&self, items: Range<usize>, _: bool) -> Result<Self::Opened, Error> {
        Ok(items.map(|number| self.operands(number)).collect())
    }

    fn numbers<'n>(&'n self, operands: &'n Self::Opened, item: usize) -> [&'n [Limb]; 2] {
        let (base, exponent) = &operands[item];
        [base.as_limbs(), exponent.as_limbs()]
    }

    fn take(&self, _: Self::Opened, results: &[Limb], places: &'p mut [&mut [u64]]) {
        let operands = results.chunks_exact(results.len() / places.len());
        for (place, operand) in places.iter_mut().zip(operands) {
            copy_in(operand, place);
        }
    }
}

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
        let (device, shape) = (call.device, &self.table.shape);
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
        _: &Mutex<()>,
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
