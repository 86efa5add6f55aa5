//! One of a device's two sets of buffers with a stream: a chunk on its way through the device.
//!
//! The order on the stream is: inputs to the device, kernels, results to the host, device buffers cleared.
//! While a chunk is under way the slot is *busy*, and nothing reads, writes or frees its buffers.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ops::Range;
use core::time::Duration;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};
use zeroize::Zeroize;

use super::buffer::{DeviceWords, PinnedWords};
use super::module::{Argument, Launch, Loaded};

pub(crate) struct Slot {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    kernel_start: CudaEvent,
    kernel_end: CudaEvent,
    buffers: Option<Buffers>,
    state: State,
}

/// They only grow, and hold nothing but zeros between calls.
struct Buffers {
    host_in: PinnedWords,
    host_out: PinnedWords,
    device_in: DeviceWords,
    device_out: DeviceWords,
    scratch: DeviceWords,
    intermediate: DeviceWords,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// All buffers are zero.
    Clean,
    /// The inputs are in, or being put into, the host's buffer.
    Filled { sizes: Sizes },
    /// The device is at work.
    Busy { sizes: Sizes },
}

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
    pub(crate) fn len(self) -> usize {
        self.len
    }
}

/// What a chunk needs of the buffers: parts laid out one after the other. All of it is public.
#[derive(Default)]
pub(crate) struct Layout(Sizes);

impl Layout {
    /// Words that the host writes and kernels read.
    pub(crate) fn input(&mut self, words: usize) -> Part {
        Self::add(Buffer::Input, &mut self.0.input, words)
    }

    /// Words that kernels write and the host reads.
    pub(crate) fn output(&mut self, words: usize) -> Part {
        Self::add(Buffer::Output, &mut self.0.output, words)
    }

    /// Words that a kernel writes, reads and clears.
    pub(crate) fn scratch(&mut self, words: usize) -> Part {
        Self::add(Buffer::Scratch, &mut self.0.scratch, words)
    }

    /// Words that one kernel leaves for the next.
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
    pub(crate) fn intermediate(&mut self, words: usize) -> Part {
        Self::add(Buffer::Intermediate, &mut self.0.intermediate, words)
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
struct Sizes {
    input: usize,
    output: usize,
    /// Kernels clear it themselves.
    scratch: usize,
    intermediate: usize,
}

/// Where the buffers of a chunk are on the device.
pub(super) struct Addresses {
    input: CUdeviceptr,
    output: CUdeviceptr,
    scratch: CUdeviceptr,
    intermediate: CUdeviceptr,
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

impl Slot {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        Ok(Self {
            context: context.clone(),
            stream: context.new_stream()?,
            kernel_start: context.new_event(timed)?,
            kernel_end: context.new_event(timed)?,
            buffers: None,
            state: State::Clean,
        })
    }

    /// Lets `fill` write all inputs of a chunk, and sends it off through `launches`, one after the other.
    ///
    /// # Panics
    ///
    /// If the slot is in use, or if a launch asks for more than the layout has: a part beyond it, an index out
    /// of range, another device.
    pub(crate) fn submit(
        &mut self,
        layout: &Layout,
        fill: impl FnOnce(&mut [u64]),
        launches: &[Launch],
        loaded: &Loaded,
    ) -> Result<(), DriverError> {
        assert!(self.state == State::Clean, "the slot is in use");
        let sizes = layout.0;
        for kernel in &loaded.kernels {
            assert!(
                *kernel.context() == self.context,
                "a kernel of another device"
            );
        }
        for launch in launches {
            sizes.check_parts(launch.arguments());
        }
        self.grow(sizes)?;
        let Some(buffers) = &mut self.buffers else {
            unreachable!("buffers were just made");
        };
        self.state = State::Filled { sizes };
        let addresses = buffers.addresses();
        let input = &mut buffers.host_in.as_mut_slice()[..sizes.input];
        fill(input);
        for launch in launches {
            check_indices(launch.arguments(), loaded, input);
        }

        self.state = State::Busy { sizes };
        self.context.bind_to_thread()?;
        let stream = self.stream.cu_stream();
        // SAFETY: the buffers are at least as long as `sizes`, stay allocated and are not touched while
        // the slot is busy: `finish` and `abandon` wait for the stream first.
        unsafe { result::memcpy_htod_async(addresses.input, input, stream)? };
        self.kernel_start.record(&self.stream)?;
        for launch in launches {
            // SAFETY: as above; every part is within the sizes, and every index in range. Records stay where
            // they are while the slots of their device are held.
            unsafe { launch.queue(loaded, &addresses, &self.stream)? };
        }
        self.kernel_end.record(&self.stream)?;
        let output = &mut buffers.host_out.as_mut_slice()[..sizes.output];
        let clear = |address: CUdeviceptr, words: usize| match words {
            0 => Ok(()),
            // SAFETY: as above.
            _ => unsafe { result::memset_d8_async(address, 0, words * size_of::<u64>(), stream) },
        };
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(output, addresses.output, stream)? };
        clear(addresses.input, sizes.input)?;
        clear(addresses.output, sizes.output)?;
        clear(addresses.intermediate, sizes.intermediate)
    }

    /// Waits for the chunk, lets `take` read the results, and wipes the host's buffers. Returns the time
    /// that the kernels took.
    ///
    /// # Panics
    ///
    /// If the slot is not busy.
    pub(super) fn finish(&mut self, take: impl FnOnce(&[u64])) -> Result<Duration, DriverError> {
        let (State::Busy { sizes }, Some(buffers)) = (self.state, &mut self.buffers) else {
            panic!("the slot has nothing to finish");
        };
        self.stream.synchronize()?;
        take(&buffers.host_out.as_slice()[..sizes.output]);
        buffers.host_in.as_mut_slice()[..sizes.input].zeroize();
        buffers.host_out.as_mut_slice()[..sizes.output].zeroize();
        self.state = State::Clean;
        let milliseconds = self.kernel_start.elapsed_ms(&self.kernel_end)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }

    /// After an error or a panic: waits for the device, then wipes everything that the chunk may have
    /// left. If the device does not answer any more, its buffers are given up with its context.
    pub(super) fn abandon(&mut self) {
        let sizes = match self.state {
            State::Clean => return,
            State::Filled { sizes } | State::Busy { sizes } => sizes,
        };
        let answered = self.stream.synchronize().is_ok();
        let Some(buffers) = &mut self.buffers else {
            return;
        };
        buffers.host_in.as_mut_slice()[..sizes.input].zeroize();
        buffers.host_out.as_mut_slice()[..sizes.output].zeroize();
        let device = [
            &buffers.device_in,
            &buffers.device_out,
            &buffers.scratch,
            &buffers.intermediate,
        ];
        if !answered || device.iter().any(|words| words.wipe().is_err()) {
            self.buffers = None;
        }
        self.state = State::Clean;
    }

    /// Gives the buffers back.
    ///
    /// # Panics
    ///
    /// If the slot is in use.
    pub(super) fn release(&mut self) {
        assert!(self.state == State::Clean, "the slot is in use");
        self.buffers = None;
    }

    /// Whether all buffers, on the host and on the device, hold zeros only; for tests.
    #[cfg(test)]
    pub(super) fn is_wiped(&self) -> bool {
        let Some(buffers) = &self.buffers else {
            return true;
        };
        let zeros = |words: &[u64]| words.iter().all(|&word| word == 0);
        let device = [
            &buffers.device_in,
            &buffers.device_out,
            &buffers.scratch,
            &buffers.intermediate,
        ];
        zeros(buffers.host_in.as_slice())
            && zeros(buffers.host_out.as_slice())
            && device.iter().all(|words| zeros(&words.read()))
    }

    /// Replaces the buffers unless they are large enough.
    fn grow(&mut self, sizes: Sizes) -> Result<(), DriverError> {
        let have = self
            .buffers
            .as_ref()
            .map_or(Sizes::default(), Buffers::sizes);
        if have.covers(sizes) {
            return Ok(());
        }
        // The old ones first, so that both need not fit at once.
        self.buffers = None;
        self.buffers = Some(Buffers::new(&self.context, have.max(sizes))?);
        Ok(())
    }
}

/// Panics unless all indices among the arguments are in range. They are public.
fn check_indices(arguments: &[Argument], loaded: &Loaded, input: &[u64]) {
    for argument in arguments {
        match *argument {
            Argument::Indices { part, count, below } => {
                assert_below(&input[part.range()], count, below);
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

impl Drop for Slot {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Buffers {
    fn new(context: &Arc<CudaContext>, sizes: Sizes) -> Result<Self, DriverError> {
        Ok(Self {
            host_in: PinnedWords::zeroed(context, sizes.input)?,
            host_out: PinnedWords::zeroed(context, sizes.output)?,
            device_in: DeviceWords::zeroed(context, sizes.input)?,
            device_out: DeviceWords::zeroed(context, sizes.output)?,
            scratch: DeviceWords::zeroed(context, sizes.scratch)?,
            intermediate: DeviceWords::zeroed(context, sizes.intermediate)?,
        })
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            input: self.device_in.len(),
            output: self.device_out.len(),
            scratch: self.scratch.len(),
            intermediate: self.intermediate.len(),
        }
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            input: self.device_in.address(),
            output: self.device_out.address(),
            scratch: self.scratch.address(),
            intermediate: self.intermediate.address(),
        }
    }
}

impl Sizes {
    /// Panics unless all parts among the arguments are within these sizes.
    fn check_parts(self, arguments: &[Argument]) {
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
            let size = match part.buffer {
                Buffer::Input => self.input,
                Buffer::Output => self.output,
                Buffer::Scratch => self.scratch,
                Buffer::Intermediate => self.intermediate,
            };
            assert!(part.range().end <= size, "a part beyond its buffer");
        }
    }

    fn covers(self, other: Self) -> bool {
        self.max(other) == self
    }

    fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            scratch: self.scratch.max(other.scratch),
            intermediate: self.intermediate.max(other.intermediate),
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
        assert_eq!((layout.0.input, layout.0.output), (17, 3));
        assert_eq!((layout.0.scratch, layout.0.intermediate), (0, 0));
    }

    #[test]
    #[should_panic(expected = "a part beyond its buffer")]
    fn a_part_of_another_layout_is_refused() {
        let mut larger = Layout::default();
        let part = larger.output(100);
        let mut layout = Layout::default();
        layout.output(99);
        layout
            .0
            .check_parts(&[Argument::U32(7), Argument::Words(part)]);
    }

    #[test]
    #[should_panic(expected = "indices beyond their part")]
    fn more_indices_than_words_for_them_are_refused() {
        let mut layout = Layout::default();
        let (part, count, below) = (layout.input(2), 5, 1);
        layout
            .0
            .check_parts(&[Argument::Indices { part, count, below }]);
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
