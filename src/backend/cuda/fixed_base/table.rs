//! Tables for powers of one base on the devices: their shape, their entries, and the powers. Only the
//! RNS kernels have them (`kernels/README.md`).
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;
use core::ptr;
use std::sync::Mutex;

use batch_modexp_core::Error;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Limb, Resize, Unsigned};

use crate::backend::cuda::family::{Entry, Operation};
use crate::backend::cuda::feed::{
    COPIED_AT_A_TIME, Feed, HostPool, NonTemporal, copy_in, copy_out,
};
use crate::backend::cuda::runtime::buffers::DeviceWords;
use crate::backend::cuda::runtime::device::Call;
use crate::backend::cuda::runtime::launch::{Argument, Kernel, Work};
use crate::backend::cuda::runtime::pipeline::{Job, Stop, chunk_len};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::resident::Resident;
use crate::backend::cuda::runtime::slot::Slot;

/// Bits in a digit. With 6, an H100 took 3 to 8 % longer and the table two thirds more memory.
pub(super) const WINDOW_BITS: u32 = 5;

/// Entries in a row.
pub(super) const ENTRIES: usize = 1 << WINDOW_BITS;

/// The shape of a table, which is public.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableShape {
    /// The kernel that reads it.
    pub(super) entry: &'static Entry,
    pub(super) exponent_bits: u32,
}

impl TableShape {
    pub(super) fn rows(&self) -> usize {
        self.exponent_bits.div_ceil(WINDOW_BITS).max(1) as usize
    }

    /// The length of the table in 64-bit words: the modulus and the rows.
    pub(super) fn words(&self) -> usize {
        self.entry.words() + self.rows() * ENTRIES * self.entry.limbs
    }

    /// Writes the rows to the table, behind the modulus. `operands` are the entries of all rows, as
    /// `fixed_entries_BITS_tT` writes them.
    pub(super) fn arrange(&self, operands: &[u64], table: &mut [u64]) {
        let moduli = self.entry.limbs;
        let residue = |row: usize, entry: usize, number: usize| {
            let word = operands[(row * ENTRIES + entry) * moduli + number / 2];
            (word >> (32 * (number % 2))) as u32
        };
        let mut words = table[self.entry.words()..].iter_mut();
        let mut put = |row, entry, number, byte: usize| {
            let octets: [usize; 8] = core::array::from_fn(|i| i);
            let octets = octets.map(|i| (residue(row, entry + i, number) >> (8 * byte)) as u8);
            let word = words.next().expect("a place for every entry");
            *word = u64::from_le_bytes(octets);
        };
        for row in 0..self.rows() {
            // Four residues at a time, first in base B and then in base A.
            for four in (0..2 * moduli).step_by(4) {
                for (t, g) in (0..4).flat_map(|t| (0..8).map(move |g| (t, g))) {
                    for byte in [g % 2, 2 + g % 2] {
                        put(row, 8 * t, four + g / 2, byte);
                    }
                }
            }
        }
    }
}

/// A table for the devices.
pub(super) struct DeviceTable {
    pub(super) shape: TableShape,
    /// The modulus and the rows.
    pub(super) words: Resident,
}

/// The numbers that a table is made of.
pub(super) struct Inputs<'a, U: Unsigned> {
    pub(super) base: &'a U,
    /// For signed exponents the inverse of the base.
    pub(super) inverse: Option<&'a U>,
    pub(super) params: &'a MontyParams<U>,
    pub(super) exponent_bits: u32,
}

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
        let (row, digit) = (number / ENTRIES, number % ENTRIES);
        let shifted = |number: u64, shift| {
            // Bits above the longest exponents are not used.
            let number = BoxedUint::from(number).resize(self.kernel.bits);
            let shifted = number.shl_vartime(shift);
            shifted.expect("a row begins within the longest exponents")
        };
        let digit = shifted(digit as u64, row as u32 * WINDOW_BITS);
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
    pub(super) is_signed: bool,
    pub(super) threads: HostPool<'a>,
}

/// The kernel with which a device computes its share, and the table there.
pub(super) struct Prepared {
    kernel: Kernel,
    shape: TableShape,
    table: Arc<DeviceWords>,
    exponent_bits: u32,
    /// The bits in which the highest digit is changed: signed exponents are raised by half of their
    /// range.
    flipped: u32,
}

impl Prepared {
    /// Lays out a chunk of `count` powers in memory, and makes its launch.
    fn work(&self, count: usize) -> Work<'_> {
        let entry = self.kernel.entry;
        assert!(
            ptr::eq(entry, self.shape.entry) && self.table.len() == self.shape.words(),
            "a kernel for another table"
        );
        let longest = self.shape.exponent_bits;
        entry.check(&[Operation::FixedExp], entry.bits, longest);
        assert!(self.exponent_bits <= longest, "the exponents are too long");
        let mut work = Work::with_resident(self.table.clone());
        let exponent = work.input(count * entry.words());
        let power = work.output(count * entry.words());
        let scratch = work.scratch(self.kernel.scratch_words(count, 0));
        let arguments = vec![
            Argument::Words(power),
            Argument::Words(exponent),
            Argument::Resident,
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(self.exponent_bits),
            Argument::U32(self.flipped),
        ];
        // SAFETY: these are the parameters of `fixed_exp_BITS_tT`, checked above. Every part has the
        // length that its buffer must have, and the table a row for each digit.
        unsafe { work.add_launch(&self.kernel, count, arguments) };
        work
    }
}

impl FixedJob<'_> {
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
    type Prepared = Prepared;
    type Chunk = ();
    type Error = Error;

    /// The time of as many exponentiations. It is proportional, and only the ratio of devices
    /// matters.
    fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<f64> {
        let (entry, bits) = (self.table.shape.entry, self.exponent_bits);
        let milliseconds = || entry.milliseconds(device, count, bits);
        entry.runs_on(device).then(milliseconds)
    }

    fn prepare(&self, call: &Call<'_>, share: usize) -> Result<(Prepared, usize), Error> {
        let (device, shape) = (call.device, &self.table.shape);
        let kernel = device.kernel(shape.entry)?;
        let half = kernel.resident_instances().div_ceil(2);
        let len = chunk_len(share, half, shape.entry.instances_per_block);
        let prepared = Prepared {
            kernel,
            shape: *shape,
            table: device.resident(&self.table.words)?,
            exponent_bits: self.exponent_bits,
            flipped: match self.exponent_bits.checked_sub(1) {
                Some(top) if self.is_signed => 1 << (top % WINDOW_BITS),
                _ => 0,
            },
        };
        Ok((prepared, len))
    }

    fn submit(
        &self,
        prepared: &Prepared,
        chunk: &Range<usize>,
        slot: &mut Slot,
        _: &Mutex<()>,
    ) -> Result<(), Stop<Error>> {
        slot.submit(&prepared.work(chunk.len()), |input| self.fill(chunk, input))?;
        Ok(())
    }

    fn take(
        &self,
        _: &Prepared,
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
