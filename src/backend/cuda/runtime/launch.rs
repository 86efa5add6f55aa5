//! Launches of kernels: their arguments, checks against the buffers of a chunk, and the call of the
//! driver.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use cudarc::driver::{CudaStream, DriverError, result};

use super::layout::{Addresses, Part, Sizes};
use super::module::{Image, Kernel};
use super::records::{HeldRecords, RecordKind};

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
    /// The address of the first record of the share's table, which must be of this kind.
    Records(RecordKind),
    /// The address of one record of the share's table, which must be of this kind.
    Record {
        kind: RecordKind,
        index: u32,
    },
    /// Like `Indices`, for records in the share's table.
    RecordIndices {
        part: Part,
        count: usize,
    },
    U32(u32),
    U64(u64),
}

/// One launch of a kernel for a chunk.
#[derive(Debug)]
pub(crate) struct Launch {
    image: &'static Image,
    blocks: usize,
    arguments: Vec<Argument>,
    pub(super) is_short: bool,
}

impl Launch {
    /// Makes a launch of `blocks` blocks. Modules of `family` make them for their own kernels.
    ///
    /// # Safety
    ///
    /// `arguments` must be the parameters of the kernel, in order and of the right sizes, and must
    /// make the kernel end. Through them, the kernel must use only the parts that they name, and
    /// the records with the given indices. It may assume that all of these are aligned to 16 bytes.
    pub(crate) unsafe fn new(
        image: &'static Image,
        blocks: usize,
        arguments: Vec<Argument>,
    ) -> Self {
        Self {
            image,
            blocks,
            arguments,
            is_short: false,
        }
    }

    /// Marks the launch as short. It goes before the queued launches of other chunks, because it
    /// takes little time and would otherwise wait for long launches.
    pub(crate) fn short(self) -> Self {
        Self {
            is_short: true,
            ..self
        }
    }

    pub(crate) fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// Queues the launch.
    ///
    /// # Safety
    ///
    /// The buffers at `addresses` must be on the device of `loaded`, and as long as the parts among
    /// the arguments require, with indices in range. The buffers and the table of records must stay
    /// allocated and unused by others until the stream has passed the launch.
    ///
    /// # Panics
    ///
    /// If the kernel is not loaded.
    pub(super) unsafe fn queue(
        &self,
        loaded: &Loaded,
        addresses: &Addresses,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        let kernel = loaded.kernel(self.image);
        kernel.module.context.bind_to_thread()?;
        // All hosts of CUDA are little-endian: the first half of a value is its `u32`.
        let values = self.arguments.iter().map(|argument| match argument {
            Argument::Words(part)
            | Argument::Indices { part, .. }
            | Argument::RecordIndices { part, .. } => addresses.of(*part),
            Argument::Records(_) => loaded.records().address(),
            Argument::Record { index, .. } => loaded.records().address_of(*index),
            Argument::U32(number) => u64::from(*number),
            Argument::U64(number) => *number,
        });
        let mut values: Vec<u64> = values.collect();
        let values = values.iter_mut();
        let mut pointers: Vec<_> = values.map(|value| ptr::from_mut(value).cast()).collect();
        // SAFETY: the driver copies the arguments before it returns, and does not write to them.
        // The maker of the launch guarantees what the kernel does with them, and the caller
        // guarantees the buffers.
        unsafe {
            result::launch_kernel(
                kernel.function,
                (self.blocks as u32, 1, 1),
                (self.image.threads, 1, 1),
                self.image.shared_bytes,
                stream.cu_stream(),
                &mut pointers,
            )
        }
    }
}

/// The kernels of all launches of a share, and the table of their records, on one device.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) kernels: Vec<Arc<Kernel>>,
    pub(crate) records: Option<HeldRecords>,
}

impl Loaded {
    fn kernel(&self, image: &'static Image) -> &Kernel {
        let mut kernels = self.kernels.iter();
        let found = kernels.find(|kernel| ptr::eq(kernel.image, image));
        found.expect("the kernel of every launch is loaded")
    }

    pub(super) fn records(&self) -> &HeldRecords {
        let records = self.records.as_ref();
        records.expect("a launch with records has their table")
    }
}

/// Panics unless all parts among the arguments are within these sizes.
pub(super) fn check_parts(arguments: &[Argument], sizes: Sizes) {
    for argument in arguments {
        let part = match *argument {
            Argument::Words(part) => part,
            Argument::Indices { part, count, .. } | Argument::RecordIndices { part, count } => {
                assert!(part.is_input(), "indices are inputs");
                assert!(count.div_ceil(2) <= part.len(), "indices beyond their part");
                part
            }
            Argument::Records(_)
            | Argument::Record { .. }
            | Argument::U32(_)
            | Argument::U64(_) => continue,
        };
        if let Argument::Indices { records, .. } = argument {
            assert!(records.is_input(), "records are inputs");
        }
        sizes.check(part);
    }
}

/// Panics unless all index arguments refer to existing records. Indices of input records must refer
/// to records that were sent; they are read from `input`, the words that were sent. Indices are
/// public.
pub(in crate::backend::cuda) fn check_indices(
    arguments: &[Argument],
    loaded: &Loaded,
    input: &[u64],
) {
    for argument in arguments {
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
                assert_below(&input[part.range()], count, loaded.records().len());
            }
            Argument::Records(kind) => {
                assert!(loaded.records().kind == kind, "records of another kind");
            }
            Argument::Record { kind, index } => {
                assert!(loaded.records().kind == kind, "records of another kind");
                assert!((index as usize) < loaded.records().len(), "no such record");
            }
            Argument::Words(_) | Argument::U32(_) | Argument::U64(_) => {}
        }
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
    use super::super::layout::Layout;
    use super::*;

    #[test]
    #[should_panic(expected = "a part beyond its buffer")]
    fn a_part_of_another_layout_is_refused() {
        let mut larger = Layout::default();
        let part = larger.output(100);
        let mut layout = Layout::default();
        layout.output(99);
        let arguments = [Argument::U32(7), Argument::Words(part)];
        check_parts(&arguments, layout.sizes);
    }

    #[test]
    #[should_panic(expected = "indices beyond their part")]
    fn more_indices_than_words_for_them_are_refused() {
        let mut layout = Layout::default();
        let argument = Argument::Indices {
            part: layout.input(2),
            count: 5,
            records: layout.input(7),
            size: 7,
        };
        check_parts(&[argument], layout.sizes);
    }

    #[test]
    #[should_panic(expected = "records are inputs")]
    fn records_elsewhere_are_refused() {
        let mut layout = Layout::default();
        let argument = Argument::Indices {
            part: layout.input(2),
            count: 3,
            records: layout.output(7),
            size: 7,
        };
        check_parts(&[argument], layout.sizes);
    }

    /// There is space for four records of three words. Only some of these words were sent.
    #[test]
    fn indices_are_those_of_records_that_were_sent() {
        let mut layout = Layout::default();
        let argument = Argument::Indices {
            part: layout.input(1),
            count: 2,
            records: layout.input(12),
            size: 3,
        };
        let is_taken = |largest: u64, sent: usize| {
            let mut input = alloc::vec![0; 8 + sent];
            input[0] = largest << 32;
            let check = || check_indices(&[argument], &Loaded::default(), &input);
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(check)).is_ok()
        };
        assert!(is_taken(0, 3) && is_taken(1, 6) && is_taken(3, 12) && is_taken(3, 99));
        assert!(!is_taken(0, 2) && !is_taken(1, 5) && !is_taken(2, 6) && !is_taken(4, 99));
    }

    #[test]
    fn indices_up_to_the_bound_are_taken() {
        let words = [6 | 5 << 32, 3 | 99 << 32];
        let is_taken =
            |count, below| std::panic::catch_unwind(|| assert_below(&words, count, below)).is_ok();
        assert!(is_taken(3, 7) && is_taken(4, 100) && is_taken(0, 0) && is_taken(1, 7));
        assert!(!is_taken(3, 6) && !is_taken(4, 99) && !is_taken(1, 6) && !is_taken(1, 0));
    }
}
