//! Tables for powers of one base, and launches of `fixed_exp_BITS_tT`: `kernels/README.md`. Only
//! the RNS kernels have them.
#![allow(unsafe_code)]

use alloc::vec;
use core::ptr;

use super::modexp::{check_count, check_operation};
use super::{Entry, Grid, Operation, Work};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;
use crate::backend::cuda::runtime::records::RecordKind;

/// Bits in a digit. With 6, an H100 took 3 to 8 % longer and the table two thirds more memory.
pub(crate) const WINDOW_BITS: u32 = 5;

/// Entries in a row.
pub(crate) const ENTRIES: usize = 1 << WINDOW_BITS;

/// The shape of a table, which is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShape {
    /// The kernel that reads it.
    pub(crate) entry: &'static Entry,
    pub(crate) exponent_bits: u32,
}

impl TableShape {
    pub(crate) fn rows(&self) -> usize {
        self.exponent_bits.div_ceil(WINDOW_BITS).max(1) as usize
    }

    /// The length of the record in 64-bit words: the modulus and the rows.
    pub(crate) fn words(&self) -> usize {
        self.entry.words() + self.rows() * ENTRIES * self.entry.limbs
    }

    pub(crate) fn record_kind(&self) -> RecordKind {
        RecordKind {
            family: self.entry.image.key.family,
            bits: self.entry.bits,
            words: self.words(),
        }
    }

    /// Writes the rows to the record, behind the modulus. `operands` are the entries of all rows, as
    /// `fixed_entries_BITS_tT` writes them.
    pub(crate) fn arrange(&self, operands: &[u64], record: &mut [u64]) {
        let moduli = self.entry.limbs;
        let residue = |row: usize, entry: usize, number: usize| {
            let word = operands[(row * ENTRIES + entry) * moduli + number / 2];
            (word >> (32 * (number % 2))) as u32
        };
        let mut words = record[self.entry.words()..].iter_mut();
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

/// A chunk of powers by a table. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedChunk {
    /// The number of exponents, at least 1.
    pub(crate) count: usize,
    /// The length of the exponents in bits, at most that of the table.
    pub(crate) exponent_bits: u32,
    /// The record of the table.
    pub(crate) index: u32,
    /// The bits in which the highest digit is changed.
    pub(crate) flipped: u32,
}

/// Lays out a chunk of powers in memory, and makes its launch.
pub(crate) fn powers(table: &TableShape, grid: Grid, chunk: &FixedChunk) -> Work {
    let FixedChunk {
        count,
        exponent_bits,
        index,
        flipped,
    } = *chunk;
    let entry = grid.entry;
    assert!(ptr::eq(entry, table.entry), "a kernel for another table");
    check_operation(entry, Operation::FixedExp);
    check_count(count);
    assert!(
        exponent_bits <= table.exponent_bits && table.exponent_bits <= entry.bits,
        "the exponents are too long"
    );
    let (numbers, blocks) = (count * entry.words(), grid.blocks(count));
    let threads = blocks * entry.image.threads as usize;
    let mut layout = Layout::default();
    let exponent = layout.input(numbers);
    let power = layout.output(numbers);
    let scratch = layout.scratch(threads * entry.scratch_doubles * entry.family.fewest_entries());
    let arguments = vec![
        Argument::Words(power),
        Argument::Words(exponent),
        Argument::Record {
            kind: table.record_kind(),
            index,
        },
        Argument::Words(scratch),
        Argument::U32(count as u32),
        Argument::U32(exponent_bits),
        Argument::U32(flipped),
    ];
    // SAFETY: these are the parameters of `fixed_exp_BITS_tT`, checked above. Every part has the
    // length that its buffer must have, and the record a row for each digit.
    let launch = unsafe { Launch::new(&entry.image, blocks, arguments) };
    let none = layout.input(0);
    Work {
        layout,
        numbers: [exponent, none],
        indices: none,
        records: none,
        launches: vec![launch],
    }
}
