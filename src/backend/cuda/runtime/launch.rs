//! The work of a chunk: its words in the buffers of a slot, and the launches that compute with them.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DriverError, result};

use super::buffers::{Addresses, Buffer, Sizes};
use super::module::Kernel;
use super::records::HeldRecords;

/// A range of words in one of the buffers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Part {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl Part {
    /// The range in its buffer.
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// The number of words.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The address of the first word on the device.
    pub(super) fn address(self, addresses: &Addresses) -> CUdeviceptr {
        addresses[self.buffer as usize] + (self.start * size_of::<u64>()) as CUdeviceptr
    }

    /// Whether the host writes this part.
    fn is_input(self) -> bool {
        self.buffer == Buffer::Input
    }
}

/// The words of some parts of one buffer.
///
/// # Panics
///
/// If parts overlap, or lie beyond the words.
pub(crate) fn places<const N: usize>(words: &mut [u64], parts: [Part; N]) -> [&mut [u64]; N] {
    let places = words.get_disjoint_mut(parts.map(Part::range));
    places.expect("parts that do not overlap, of the chunk of the words")
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Argument {
    /// The address of a part of the chunk's buffers.
    Words(Part),
    /// The address of an input part with `count` 32-bit indices, two in each word. Each is the
    /// index of one of the `records`, which are inputs too, of `size` words each. Before the
    /// launch, the indices are checked to be those of records that were sent.
    Indices {
        part: Part,
        count: usize,
        records: Part,
        size: usize,
    },
    /// The address of the first record of the chunk's table on the device.
    Records,
    /// The address of one record of that table.
    Record(u32),
    /// Like `Indices`, for records in that table.
    RecordIndices {
        part: Part,
        count: usize,
    },
    U32(u32),
    U64(u64),
}

/// The work of a chunk: the places of its operands, and its launches. Results take all of the output.
///
/// Places are consecutive parts of the buffers, of which empty ones take nothing. Numbers are
/// little-endian 64-bit words, zero-extended to one width. Those of all instances are consecutive.
/// All of it is public.
#[derive(Default)]
pub(crate) struct Work<'a> {
    /// The buffer lengths that all parts together need.
    pub(super) sizes: Sizes,
    /// Up to two numbers of each instance, such as the base and the exponent.
    pub(crate) numbers: [Part; 2],
    /// For each instance the 32-bit index of a record.
    pub(crate) indices: Part,
    /// Records that the chunk brings along.
    pub(crate) records: Part,
    /// Records that stay on the device.
    pub(super) resident: Option<&'a HeldRecords>,
    pub(super) launches: Vec<Launch<'a>>,
}

/// One launch of a kernel for a chunk.
pub(crate) struct Launch<'a> {
    pub(super) kernel: &'a Kernel,
    blocks: usize,
    arguments: Vec<Argument>,
}

impl<'a> Work<'a> {
    /// Work that reads records on the device.
    pub(crate) fn with_records(records: &'a HeldRecords) -> Self {
        Self {
            resident: Some(records),
            ..Self::default()
        }
    }

    /// Adds words that the host writes and kernels read.
    pub(crate) fn input(&mut self, words: usize) -> Part {
        self.add(Buffer::Input, words)
    }

    /// Adds words that kernels write and the host reads.
    pub(crate) fn output(&mut self, words: usize) -> Part {
        self.add(Buffer::Output, words)
    }

    /// Adds words that a kernel writes, reads and clears.
    pub(crate) fn scratch(&mut self, words: usize) -> Part {
        self.add(Buffer::Scratch, words)
    }

    /// Adds words that one kernel leaves for the next.
    pub(crate) fn intermediate(&mut self, words: usize) -> Part {
        self.add(Buffer::Intermediate, words)
    }

    fn add(&mut self, buffer: Buffer, len: usize) -> Part {
        /// The alignment of parts in words: 64 bytes.
        const ALIGNMENT: usize = 8;
        if len == 0 {
            return Part {
                buffer,
                start: 0,
                len,
            };
        }
        let size = &mut self.sizes.0[buffer as usize];
        let start = size.next_multiple_of(ALIGNMENT);
        *size = start + len;
        Part { buffer, start, len }
    }

    /// Adds a launch for `count` instances, after the others.
    ///
    /// # Safety
    ///
    /// `arguments` must be the parameters of the kernel, in order and of the right sizes, and must
    /// make the kernel end. Through them, the kernel must use only the parts that they name, and
    /// the records with the given indices. It may assume that all of these are aligned to 16 bytes.
    ///
    /// # Panics
    ///
    /// If there are too many instances, or none, or if a part is not one of this work.
    pub(crate) unsafe fn add_launch(
        &mut self,
        kernel: &'a Kernel,
        count: usize,
        arguments: Vec<Argument>,
    ) {
        assert!(
            (1..=1 << 30).contains(&count),
            "too many instances, or none"
        );
        self.check_parts(&arguments);
        self.launches.push(Launch {
            kernel,
            blocks: kernel.blocks(count),
            arguments,
        });
    }

    fn check_parts(&self, arguments: &[Argument]) {
        for argument in arguments {
            let part = match *argument {
                Argument::Words(part) => part,
                Argument::Indices { part, count, .. } | Argument::RecordIndices { part, count } => {
                    assert!(part.is_input(), "indices are inputs");
                    assert!(count.div_ceil(2) <= part.len(), "indices beyond their part");
                    part
                }
                Argument::Records | Argument::Record(_) | Argument::U32(_) | Argument::U64(_) => {
                    continue;
                }
            };
            if let Argument::Indices { records, .. } = argument {
                assert!(records.is_input(), "records are inputs");
            }
            let size = self.sizes.of(part.buffer);
            assert!(part.range().end <= size, "a part beyond its buffer");
        }
    }

    /// Panics unless all index arguments refer to existing records. Indices of input records must
    /// refer to records that were sent; they are read from `input`, the words that were sent.
    /// Indices are public.
    pub(in crate::backend::cuda) fn check_indices(&self, input: &[u64]) {
        let arguments = self.launches.iter().flat_map(|launch| &launch.arguments);
        arguments.for_each(|argument| self.check_index(argument, input));
    }

    fn check_index(&self, argument: &Argument, input: &[u64]) {
        match *argument {
            Argument::Indices {
                part,
                count,
                records,
                size,
            } => {
                let Range { start, end } = records.range();
                let there = end.min(input.len()).saturating_sub(start);
                assert_below(&input[part.range()], count, there / size);
            }
            Argument::RecordIndices { part, count } => {
                assert_below(&input[part.range()], count, self.resident().len());
            }
            Argument::Record(index) => {
                assert!((index as usize) < self.resident().len(), "no such record");
            }
            Argument::Words(_) | Argument::Records | Argument::U32(_) | Argument::U64(_) => {}
        }
    }

    pub(super) fn resident(&self) -> &HeldRecords {
        self.resident
            .expect("a launch with records has their table")
    }

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// The launch must be one of this work. The buffers at `addresses` must be on the device of the
    /// kernel, and as long as the parts require, with indices in range. That device's context must
    /// be current on this thread. The buffers, the table of records and the kernel's module must
    /// stay allocated, and the buffers unused by others, until the stream has passed the launch.
    pub(super) unsafe fn queue(
        &self,
        launch: &Launch<'_>,
        addresses: &Addresses,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        // All hosts of CUDA are little-endian: the first half of a value is its `u32`.
        let values = launch.arguments.iter().map(|argument| match *argument {
            Argument::Words(part)
            | Argument::Indices { part, .. }
            | Argument::RecordIndices { part, .. } => part.address(addresses),
            Argument::Records => self.resident().address_of(0),
            Argument::Record(index) => self.resident().address_of(index),
            Argument::U32(number) => u64::from(number),
            Argument::U64(number) => number,
        });
        let mut values: Vec<u64> = values.collect();
        let values = values.iter_mut();
        let mut pointers: Vec<_> = values.map(|value| ptr::from_mut(value).cast()).collect();
        let Launch { kernel, blocks, .. } = launch;
        // SAFETY: the driver copies the arguments before it returns, and does not write to them.
        // The maker of the launch guarantees what the kernel does with them, and the caller
        // guarantees the buffers.
        unsafe {
            result::launch_kernel(
                kernel.function,
                (*blocks as u32, 1, 1),
                (kernel.entry.threads, 1, 1),
                kernel.entry.shared_bytes,
                stream.cu_stream(),
                &mut pointers,
            )
        }
    }
}

impl Launch<'_> {
    /// Whether the launch goes before the queued launches of other chunks, because it takes little
    /// time and would otherwise wait for long launches.
    pub(super) fn is_short(&self) -> bool {
        self.kernel.entry.operation.is_short()
    }
}

/// Panics unless the first `count` of the indices in `words`, two in each, are less than `below`.
fn assert_below(words: &[u64], count: usize, below: usize) {
    let (pairs, rest) = words.split_at(count / 2);
    let mut largest = match rest.first() {
        Some(&word) if count % 2 == 1 => word as u32,
        _ => 0,
    };
    for &pair in pairs {
        largest = largest.max(pair as u32).max((pair >> 32) as u32);
    }
    assert!(
        count == 0 || (largest as usize) < below,
        "an index out of range"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    impl Part {
        /// Whether this is a kernel's own workspace.
        pub(in crate::backend::cuda) fn is_scratch(self) -> bool {
            self.buffer == Buffer::Scratch
        }
    }

    impl<'a> Work<'a> {
        pub(crate) fn launches(&self) -> &[Launch<'a>] {
            &self.launches
        }
    }

    impl Launch<'_> {
        pub(crate) fn arguments(&self) -> &[Argument] {
            &self.arguments
        }
    }

    #[test]
    fn parts_follow_each_other_aligned() {
        let mut work = Work::default();
        assert_eq!(work.input(9).range(), 0..9);
        assert_eq!(work.output(3).range(), 0..3);
        assert_eq!(work.input(1).range(), 16..17);
        assert_eq!(work.sizes, Sizes([17, 3, 0, 0]));
    }

    #[test]
    #[should_panic(expected = "a part beyond its buffer")]
    fn a_part_of_other_work_is_refused() {
        let part = Work::default().output(100);
        let mut work = Work::default();
        work.output(99);
        work.check_parts(&[Argument::U32(7), Argument::Words(part)]);
    }

    #[test]
    #[should_panic(expected = "indices beyond their part")]
    fn more_indices_than_words_for_them_are_refused() {
        let mut work = Work::default();
        let argument = Argument::Indices {
            part: work.input(2),
            count: 5,
            records: work.input(7),
            size: 7,
        };
        work.check_parts(&[argument]);
    }

    #[test]
    #[should_panic(expected = "records are inputs")]
    fn records_elsewhere_are_refused() {
        let mut work = Work::default();
        let argument = Argument::Indices {
            part: work.input(2),
            count: 3,
            records: work.output(7),
            size: 7,
        };
        work.check_parts(&[argument]);
    }

    /// There is space for four records of three words. Only some of these words were sent.
    #[test]
    fn indices_are_those_of_records_that_were_sent() {
        let mut work = Work::default();
        let argument = Argument::Indices {
            part: work.input(1),
            count: 2,
            records: work.input(12),
            size: 3,
        };
        let is_taken = |largest: u64, sent: usize| {
            let mut input = alloc::vec![0; 8 + sent];
            input[0] = largest << 32;
            let check = || work.check_index(&argument, &input);
            catch_unwind(AssertUnwindSafe(check)).is_ok()
        };
        assert!(is_taken(0, 3) && is_taken(1, 6) && is_taken(3, 12) && is_taken(3, 99));
        assert!(!is_taken(0, 2) && !is_taken(1, 5) && !is_taken(2, 6) && !is_taken(4, 99));
    }

    #[test]
    fn indices_up_to_the_bound_are_taken() {
        let words = [6 | 5 << 32, 3 | 99 << 32];
        let is_taken = |count, below| catch_unwind(|| assert_below(&words, count, below)).is_ok();
        assert!(is_taken(3, 7) && is_taken(4, 100) && is_taken(0, 0) && is_taken(1, 7));
        assert!(!is_taken(3, 6) && !is_taken(4, 99) && !is_taken(1, 6) && !is_taken(1, 0));
    }
}
