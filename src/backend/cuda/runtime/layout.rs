//! The places of a chunk's words in the buffers of a slot.

use core::array;
use core::ops::Range;

use cudarc::driver::sys::CUdeviceptr;

/// The buffers of a slot on the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Buffer {
    Input,
    Output,
    /// Memory that kernels clear themselves.
    Scratch,
    Intermediate,
}

impl Buffer {
    /// The number of buffers.
    pub(super) const COUNT: usize = 4;
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

/// The buffer space of a chunk: consecutive parts, of which empty ones take nothing. All of it is
/// public.
#[derive(Default)]
pub(crate) struct Layout {
    /// The buffer lengths that all parts together need.
    pub(super) sizes: Sizes,
}

impl Layout {
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
}

/// The words of some parts of one buffer.
///
/// # Panics
///
/// If parts overlap, or lie beyond the words.
pub(crate) fn places<const N: usize>(words: &mut [u64], parts: [Part; N]) -> [&mut [u64]; N] {
    let places = words.get_disjoint_mut(parts.map(Part::range));
    places.expect("parts that do not overlap, of the layout of the words")
}

/// Lengths of the buffers in words, in the order of [`Buffer`]; public.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes(pub(super) [usize; Buffer::COUNT]);

/// The addresses of a chunk's buffers on the device, in the order of [`Buffer`].
pub(super) struct Addresses(pub(super) [CUdeviceptr; Buffer::COUNT]);

impl Addresses {
    /// The address of a buffer.
    pub(super) fn of_buffer(&self, buffer: Buffer) -> CUdeviceptr {
        self.0[buffer as usize]
    }

    /// The address of the first word of `part`.
    pub(super) fn of(&self, part: Part) -> CUdeviceptr {
        self.of_buffer(part.buffer) + (part.start * size_of::<u64>()) as CUdeviceptr
    }
}

impl Sizes {
    /// The length of a buffer.
    pub(super) fn of(self, buffer: Buffer) -> usize {
        self.0[buffer as usize]
    }

    /// Panics unless `part` is within these sizes.
    pub(super) fn check(self, part: Part) {
        let size = self.of(part.buffer);
        assert!(part.range().end <= size, "a part beyond its buffer");
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.max(other) == self
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i].max(other.0[i])))
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
        assert_eq!(layout.sizes, Sizes([17, 3, 0, 0]));
    }
}
