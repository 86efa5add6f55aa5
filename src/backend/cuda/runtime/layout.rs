//! Where the words of a chunk lie in a slot's buffers, and whether launches keep to them.

use core::ops::Range;

use cudarc::driver::sys::CUdeviceptr;

use super::launch::{Argument, Loaded};

/// The buffers of a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Buffer {
    Input,
    Output,
    Scratch,
    Intermediate,
}

/// Some words of one of the buffers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Part {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl Part {
    /// Where it lies in its buffer.
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// The number of words.
    #[cfg_attr(not(feature = "sign"), allow(dead_code))]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    #[cfg(all(test, feature = "sign"))]
    pub(super) fn is_scratch(self) -> bool {
        self.buffer == Buffer::Scratch
    }
}

/// What a chunk needs of the buffers: parts laid out one after the other. All of it is public.
#[derive(Default)]
pub(crate) struct Layout {
    sizes: Sizes,
}

impl Layout {
    /// Words that the host writes and kernels read.
    pub(crate) fn input(&mut self, words: usize) -> Part {
        Self::add(Buffer::Input, &mut self.sizes.input, words)
    }

    /// Words that kernels write and the host reads.
    pub(crate) fn output(&mut self, words: usize) -> Part {
        Self::add(Buffer::Output, &mut self.sizes.output, words)
    }

    /// Words that a kernel writes, reads and clears.
    pub(crate) fn scratch(&mut self, words: usize) -> Part {
        Self::add(Buffer::Scratch, &mut self.sizes.scratch, words)
    }

    /// Words that one kernel leaves for the next.
    #[cfg_attr(not(feature = "sign"), allow(dead_code))]
    pub(crate) fn intermediate(&mut self, words: usize) -> Part {
        Self::add(Buffer::Intermediate, &mut self.sizes.intermediate, words)
    }

    /// The lengths that all parts together need.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn add(buffer: Buffer, size: &mut usize, len: usize) -> Part {
        /// Parts are aligned to as many words: 64 bytes.
        const ALIGNMENT: usize = 8;
        let start = size.next_multiple_of(ALIGNMENT);
        *size = start + len;
        Part { buffer, start, len }
    }
}

/// Lengths of the buffers in words; public.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes {
    pub(super) input: usize,
    pub(super) output: usize,
    /// Kernels clear it themselves.
    pub(super) scratch: usize,
    pub(super) intermediate: usize,
}

/// Where the buffers of a chunk are on the device.
pub(super) struct Addresses {
    pub(super) input: CUdeviceptr,
    pub(super) output: CUdeviceptr,
    pub(super) scratch: CUdeviceptr,
    pub(super) intermediate: CUdeviceptr,
}

impl Addresses {
    /// The address of the first word of `part`.
    pub(super) fn of(&self, part: Part) -> CUdeviceptr {
        let start = match part.buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
            Buffer::Intermediate => self.intermediate,
        };
        start + (part.start * size_of::<u64>()) as CUdeviceptr
    }
}

impl Sizes {
    /// Panics unless all parts among the arguments are within these sizes.
    pub(super) fn check_parts(self, arguments: &[Argument]) {
        for argument in arguments {
            let part = match argument {
                Argument::Words(part) => part,
                Argument::Indices { part, count, .. } | Argument::RecordIndices { part, count } => {
                    assert!(part.buffer == Buffer::Input, "indices are inputs");
                    assert!(count.div_ceil(2) <= part.len, "indices beyond their part");
                    part
                }
                Argument::Records(_) | Argument::U32(_) | Argument::U64(_) => continue,
            };
            if let Argument::Indices { records, .. } = argument {
                assert!(records.buffer == Buffer::Input, "records are inputs");
            }
            let size = match part.buffer {
                Buffer::Input => self.input,
                Buffer::Output => self.output,
                Buffer::Scratch => self.scratch,
                Buffer::Intermediate => self.intermediate,
            };
            assert!(part.range().end <= size, "a part beyond its buffer");
        }
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.max(other) == self
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            scratch: self.scratch.max(other.scratch),
            intermediate: self.intermediate.max(other.intermediate),
        }
    }

    pub(super) fn map(self, f: impl Fn(usize) -> usize) -> Self {
        Self {
            input: f(self.input),
            output: f(self.output),
            scratch: f(self.scratch),
            intermediate: f(self.intermediate),
        }
    }
}

/// Panics unless all indices among the arguments are those of records that are there: for inputs, in `input`, which are those that were
/// sent. Indices are public.
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
                assert!(loaded.records().kind() == kind, "records of another kind");
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
    use super::*;

    #[test]
    fn parts_follow_each_other_aligned() {
        let mut layout = Layout::default();
        assert_eq!(layout.input(9).range(), 0..9);
        assert_eq!(layout.output(3).range(), 0..3);
        assert_eq!(layout.input(1).range(), 16..17);
        assert_eq!((layout.sizes.input, layout.sizes.output), (17, 3));
        assert_eq!((layout.sizes.scratch, layout.sizes.intermediate), (0, 0));
    }

    #[test]
    #[should_panic(expected = "a part beyond its buffer")]
    fn a_part_of_another_layout_is_refused() {
        let mut larger = Layout::default();
        let part = larger.output(100);
        let mut layout = Layout::default();
        layout.output(99);
        layout
            .sizes
            .check_parts(&[Argument::U32(7), Argument::Words(part)]);
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
        layout.sizes.check_parts(&[argument]);
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
        layout.sizes.check_parts(&[argument]);
    }

    /// There is room for four records of three words, and so many words of them were sent.
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
