//! Kernels, and the work of a chunk: its words in the buffers of a slot, and the launches that
//! compute with them.
#![allow(unsafe_code)]

use alloc::ffi::CString;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use super::buffers::{Addresses, Buffer, DeviceWords, Sizes};
use crate::backend::cuda::family::Entry;

/// Dynamic shared memory that a block may have without asking, in bytes.
const SHARED_BYTES_WITHOUT_ASKING: u32 = 48 << 10;

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
    /// The address of the words that stay on the device.
    Resident,
    U32(u32),
    U64(u64),
}

impl Argument {
    /// Panics if this is an index of no record in `input`.
    fn check_indices(self, input: &[u64]) {
        if let Self::Indices {
            part,
            count,
            records,
            size,
        } = self
        {
            let Range { start, end } = records.range();
            let there = end.min(input.len()).saturating_sub(start);
            assert_below(&input[part.range()], count, there / size);
        }
    }
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
    /// Words that stay on the device.
    pub(super) resident: Option<Arc<DeviceWords>>,
    pub(super) launches: Vec<Launch<'a>>,
}

/// One launch of a kernel for a chunk.
pub(crate) struct Launch<'a> {
    pub(super) kernel: &'a Kernel,
    blocks: usize,
    arguments: Vec<Argument>,
}

impl<'a> Work<'a> {
    /// Work that reads words that stay on the device.
    pub(crate) fn with_resident(words: Arc<DeviceWords>) -> Self {
        Self {
            resident: Some(words),
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
        let size = &mut self.sizes.0[buffer as usize];
        let start = match len {
            0 => 0,
            _ => size.next_multiple_of(ALIGNMENT),
        };
        *size = (start + len).max(*size);
        Part { buffer, start, len }
    }

    /// Adds a launch for `count` instances, after the others.
    ///
    /// # Safety
    ///
    /// `arguments` must be the parameters of the kernel, in order and of the right sizes, and must
    /// make the kernel end. Through them, the kernel must use only the parts that they name, and
    /// the words that stay on the device. It may assume that all of these are aligned to 16 bytes.
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
        assert!((1..=1 << 30).contains(&count), "none, or too many");
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
                Argument::Indices {
                    part,
                    count,
                    records,
                    ..
                } => {
                    assert!(part.buffer == Buffer::Input, "indices are inputs");
                    assert!(count.div_ceil(2) <= part.len(), "indices beyond their part");
                    assert!(records.buffer == Buffer::Input, "records are inputs");
                    part
                }
                Argument::Resident | Argument::U32(_) | Argument::U64(_) => continue,
            };
            let size = self.sizes.of(part.buffer);
            assert!(part.range().end <= size, "a part beyond its buffer");
        }
    }

    /// Panics unless all indices, which are public, are those of records in `input`, the words that
    /// were sent.
    pub(in crate::backend::cuda) fn check_indices(&self, input: &[u64]) {
        let arguments = self.launches.iter().flat_map(|launch| &launch.arguments);
        arguments.for_each(|argument| argument.check_indices(input));
    }

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// The launch must be one of this work. The buffers at `addresses` must be on the device of the
    /// kernel, and as long as the parts require, with indices in range. That device's context must
    /// be current on this thread. The buffers, the words that stay on the device and the kernel's
    /// module must stay allocated, and the buffers unused by others, until the stream has passed the launch.
    pub(super) unsafe fn queue(
        &self,
        launch: &Launch<'_>,
        addresses: &Addresses,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        // All hosts of CUDA are little-endian: the first half of a value is its `u32`.
        let values = launch.arguments.iter().map(|argument| match *argument {
            Argument::Words(part) | Argument::Indices { part, .. } => part.address(addresses),
            Argument::Resident => {
                let words = self.resident.as_ref();
                words.expect("work with such words").address()
            }
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

/// PTX that the driver has compiled and loaded.
pub(super) struct Module {
    context: Arc<CudaContext>,
    module: CUmodule,
}

// SAFETY: the handle belongs to the context, which any thread may bind, and the driver's functions
// that take it may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; no method changes what the handle stands for.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module with the function of `entry`.
    pub(super) fn load(context: &Arc<CudaContext>, entry: &Entry) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        let text = entry.ptx.text();
        // SAFETY: the context is bound, and the text ends in a zero byte.
        let module = unsafe { result::module::load_data(text.as_ptr().cast())? };
        Ok(Self {
            context: context.clone(),
            module,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the module was loaded in this context. No launch of it is under way, because
            // every call waits for its own. In a lost context there is nothing to unload.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A kernel on a device.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) entry: &'static Entry,
    /// Blocks that the device computes at a time.
    resident_blocks: u32,
    /// The driver's handle.
    function: CUfunction,
    /// The module of the function. It stays loaded as long as its device is open.
    module: Weak<Module>,
}

// SAFETY: as for `Module`, to which the function belongs.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Gets the kernel of `entry` from its module, for a device of `multiprocessors`.
    pub(super) fn new(
        module: &Arc<Module>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Self, DriverError> {
        module.context.bind_to_thread()?;
        let name = CString::new(entry.function).unwrap_or_default();
        let (threads, shared_bytes) = (entry.threads as i32, entry.shared_bytes);
        // SAFETY: the context is bound and has the module, to which the function belongs.
        let (function, per_multiprocessor) = unsafe {
            let function = result::module::get_function(module.module, name)?;
            if shared_bytes > SHARED_BYTES_WITHOUT_ASKING {
                use CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SIZE;
                result::function::set_function_attribute(function, SIZE, shared_bytes as i32)?;
            }
            let size = shared_bytes as usize;
            let count =
                result::occupancy::max_active_block_per_multiprocessor(function, threads, size)?;
            (function, count)
        };
        Ok(Self {
            entry,
            resident_blocks: per_multiprocessor.max(1) as u32 * multiprocessors,
            function,
            module: Arc::downgrade(module),
        })
    }

    /// Whether the kernel can be launched in this context.
    pub(super) fn is_in(&self, context: &Arc<CudaContext>) -> bool {
        let module = self.module.upgrade();
        module.is_some_and(|module| module.context == *context)
    }

    /// Instances that the device computes at a time.
    pub(crate) fn resident_instances(&self) -> usize {
        self.resident_blocks as usize * self.entry.instances_per_block
    }

    /// The number of blocks for `count` instances. Blocks loop over instances beyond those that are
    /// resident, all for the same number of rounds.
    pub(crate) fn blocks(&self, count: usize) -> usize {
        let needed = count.div_ceil(self.entry.instances_per_block);
        let rounds = needed.div_ceil(self.resident_blocks as usize);
        needed.div_ceil(rounds.max(1))
    }

    /// Words of scratch memory for `count` instances, each with a table of `table_len` powers.
    pub(crate) fn scratch_words(&self, count: usize, table_len: usize) -> usize {
        let entry = self.entry;
        let entries = table_len.max(entry.family.fewest_entries());
        self.blocks(count) * entry.threads as usize * entry.scratch_doubles * entries
    }
}

#[cfg(test)]
mod tests;
