//! The places of a chunk's words in the buffers of a slot.

use core::ops::Range;

use cudarc::driver::sys::CUdeviceptr;

/// The buffers of a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Buffer {
    Input,
    Output,
    Scratch,
    Intermediate,
}

/// A range of words in one of the buffers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

    /// Whether the host writes this part.
    pub(super) fn is_input(self) -> bool {
        self.buffer == Buffer::Input
    }

    #[cfg(all(test, feature = "rsa"))]
    pub(super) fn is_scratch(self) -> bool {
        self.buffer == Buffer::Scratch
    }
}

/// The buffer space of a chunk: consecutive parts. All of it is public.
#[derive(Default)]
pub(crate) struct Layout {
    sizes: Sizes,
}

impl Layout {
    /// Adds words that the host writes and kernels read.
    pub(crate) fn input(&mut self, words: usize) -> Part {
        Self::add(Buffer::Input, &mut self.sizes.input, words)
    }

    /// Adds words that kernels write and the host reads.
    pub(crate) fn output(&mut self, words: usize) -> Part {
        Self::add(Buffer::Output, &mut self.sizes.output, words)
    }

    /// Adds words that a kernel writes, reads and clears.
    pub(crate) fn scratch(&mut self, words: usize) -> Part {
        Self::add(Buffer::Scratch, &mut self.sizes.scratch, words)
    }

    /// Adds words that one kernel leaves for the next.
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
    pub(crate) fn intermediate(&mut self, words: usize) -> Part {
        Self::add(Buffer::Intermediate, &mut self.sizes.intermediate, words)
    }

    /// The buffer lengths that all parts together need.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn add(buffer: Buffer, size: &mut usize, len: usize) -> Part {
        /// The alignment of parts in words: 64 bytes.
        const ALIGNMENT: usize = 8;
        let start = size.next_multiple_of(ALIGNMENT);
        *size = start + len;
        Part { buffer, start, len }
    }
}

/// The words of some parts of one buffer.
///
/// # Panics
///
/// If parts overlap, or lie beyond the words.
pub(crate) fn places<const N: usize>(words: &mut [u64], parts: [Part; N]) -> [&mut [u64]; N] {
    let Ok(places) = words.get_disjoint_mut(parts.map(Part::range)) else {
        panic!("parts that overlap, or of another layout");
    };
    places
}

/// Lengths of the buffers in words; public.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes {
    pub(super) input: usize,
    pub(super) output: usize,
    /// Scratch memory, which kernels clear themselves.
    pub(super) scratch: usize,
    pub(super) intermediate: usize,
}

/// The addresses of a chunk's buffers on the device.
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
    /// Panics unless `part` is within these sizes.
    pub(super) fn check(self, part: Part) {
        let size = match part.buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
            Buffer::Intermediate => self.intermediate,
        };
        assert!(part.range().end <= size, "a part beyond its buffer");
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
}
