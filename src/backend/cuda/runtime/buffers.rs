//! Pinned host memory and device memory, wiped before they are freed, and the buffers of a slot made
//! of them.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::hint::black_box;
use core::{array, mem, ptr, slice};

use cudarc::driver::sys::{CUdeviceptr, CUresult};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

/// Words in page-locked host memory, which a device can copy to and from asynchronously.
///
/// The owner must not read, write or drop the words while a copy is under way.
pub(super) struct PinnedWords {
    context: Arc<CudaContext>,
    words: *mut u64,
    len: usize,
}

// SAFETY: the memory is owned, and the driver allows any thread that has bound the context to free
// it.
unsafe impl Send for PinnedWords {}

impl PinnedWords {
    /// Makes `len` words, all 0.
    pub(super) fn zeroed(context: &Arc<CudaContext>, len: usize) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        let bytes = len.max(1) * size_of::<u64>();
        // Without the write-combined flag, because the host reads results from it. SAFETY: the
        // context is bound, and the memory is written below before it is read.
        let words: *mut u64 = unsafe { result::malloc_host(bytes, 0)? }.cast();
        // SAFETY: the driver returned `bytes` bytes, aligned to a page.
        unsafe { words.write_bytes(0, len) };
        Ok(Self {
            context: context.clone(),
            words,
            len,
        })
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: the words are owned, initialised, and no copy is under way.
        unsafe { slice::from_raw_parts_mut(self.words, self.len) }
    }

    /// Overwrites the first `len` words with 0. The compiler cannot remove the writes: the driver
    /// has the address of the memory, so others may read it.
    pub(super) fn wipe(&mut self, len: usize) {
        self.as_mut_slice()[..len].fill(0);
        black_box(self.words);
    }
}

impl Drop for PinnedWords {
    fn drop(&mut self) {
        self.wipe(self.len);
        // If the context is lost, the memory goes with the process. It is wiped in any case.
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: the memory comes from `malloc_host` and is not used after this.
            let _ = unsafe { result::free_host(self.words.cast()) };
        }
    }
}

/// Words in device memory.
///
/// The owner must not drop it while the device works with it.
pub(crate) struct DeviceWords {
    context: Arc<CudaContext>,
    pointer: CUdeviceptr,
    len: usize,
}

impl DeviceWords {
    /// Makes `len` words, all 0.
    pub(super) fn zeroed(context: &Arc<CudaContext>, len: usize) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the context is bound; the memory is cleared below.
        let pointer = unsafe { result::malloc_sync(len.max(1) * size_of::<u64>())? };
        let words = Self {
            context: context.clone(),
            pointer,
            len,
        };
        words.wipe()?;
        Ok(words)
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether kernels of this context can read the words.
    pub(super) fn is_in(&self, context: &CudaContext) -> bool {
        *self.context == *context
    }

    /// The address of the first word on the device; the driver aligns it to 256 bytes.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.pointer
    }

    /// Queues the overwriting of the first `len` words with 0 on `stream`. The words must stay
    /// allocated until then.
    ///
    /// # Panics
    ///
    /// If there are fewer words.
    pub(super) fn clear(&self, len: usize, stream: &CudaStream) -> Result<(), DriverError> {
        assert!(len <= self.len, "more words than there are");
        if len == 0 {
            return Ok(());
        }
        self.context.bind_to_thread()?;
        let bytes = len * size_of::<u64>();
        // SAFETY: the memory is owned, long enough, and stays allocated until the stream has done
        // this, as the caller promises.
        unsafe { result::memset_d8_async(self.pointer, 0, bytes, stream.cu_stream()) }
    }

    /// Overwrites all words with 0 and waits until that is done. The device must not be working
    /// with them.
    pub(super) fn wipe(&self) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: the memory is owned and `len` words long.
        unsafe { result::memset_d8_sync(self.pointer, 0, self.len * size_of::<u64>())? };
        // Clearing device memory does not wait for itself (CUDA Driver API, "API synchronization
        // behavior").
        settle(&self.context)
    }
}

/// Waits for copies and clearing that were queued without a stream. Does not wait for chunks of
/// other calls, because their streams are independent of the default stream
/// (`CU_STREAM_NON_BLOCKING`).
pub(super) fn settle(context: &CudaContext) -> Result<(), DriverError> {
    context.bind_to_thread()?;
    // SAFETY: the context is bound; null is its default stream, which always exists.
    unsafe { result::stream::synchronize(ptr::null_mut()) }
}

impl Drop for DeviceWords {
    fn drop(&mut self) {
        // If the context is lost, so is its memory.
        if self.wipe().is_ok() {
            // SAFETY: the memory comes from `malloc_sync` and is not used after this.
            let _ = unsafe { result::free_sync(self.pointer) };
        }
    }
}

/// The buffers of a slot on the device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Buffer {
    #[default]
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

/// Lengths of the buffers in words, in the order of [`Buffer`]; public.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes(pub(super) [usize; Buffer::COUNT]);

impl Sizes {
    /// The length of a buffer.
    pub(super) fn of(self, buffer: Buffer) -> usize {
        self.0[buffer as usize]
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.max(other) == self
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i].max(other.0[i])))
    }
}

/// The addresses of a chunk's buffers on the device, in the order of [`Buffer`].
pub(super) type Addresses = [CUdeviceptr; Buffer::COUNT];

/// The buffers of a slot. Between calls they hold only zeros.
pub(super) struct Buffers {
    host_in: PinnedWords,
    host_out: PinnedWords,
    /// Words at the start of `host_in` and of `host_out` that may be nonzero.
    used_in: usize,
    used_out: usize,
    /// Words at the start of the device's buffers that may be nonzero.
    used_on_device: Sizes,
    /// In the order of [`Buffer`].
    device: [DeviceWords; Buffer::COUNT],
}

impl Buffers {
    /// Allocates buffers of at least these sizes, rounded up to powers of two if memory allows.
    ///
    /// Allocating and freeing wait for the work of a device, 150 ms under many calls. A slot should
    /// therefore not replace its buffers for each chunk that is slightly larger than the one
    /// before.
    pub(super) fn with_room(context: &Arc<CudaContext>, sizes: Sizes) -> Result<Self, DriverError> {
        match Self::new(context, Sizes(sizes.0.map(usize::next_power_of_two))) {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Self::new(context, sizes),
            result => result,
        }
    }

    fn new(context: &Arc<CudaContext>, sizes: Sizes) -> Result<Self, DriverError> {
        let on_host = |buffer| PinnedWords::zeroed(context, sizes.of(buffer));
        let on_device = |buffer| DeviceWords::zeroed(context, sizes.of(buffer));
        Ok(Self {
            host_in: on_host(Buffer::Input)?,
            host_out: on_host(Buffer::Output)?,
            used_in: 0,
            used_out: 0,
            used_on_device: Sizes::default(),
            device: [
                on_device(Buffer::Input)?,
                on_device(Buffer::Output)?,
                on_device(Buffer::Scratch)?,
                on_device(Buffer::Intermediate)?,
            ],
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes(self.device.each_ref().map(DeviceWords::len))
    }

    /// The addresses on the device for a chunk of these sizes.
    pub(super) fn for_device(&mut self, sizes: Sizes) -> Addresses {
        self.used_on_device = self.used_on_device.max(sizes);
        self.device.each_ref().map(DeviceWords::address)
    }

    /// The first words of the host's inputs, for writing.
    pub(super) fn inputs(&mut self, len: usize) -> &mut [u64] {
        self.used_in = self.used_in.max(len);
        &mut self.host_in.as_mut_slice()[..len]
    }

    /// The first words of the host's outputs, for writing.
    pub(super) fn outputs_mut(&mut self, len: usize) -> &mut [u64] {
        self.used_out = self.used_out.max(len);
        &mut self.host_out.as_mut_slice()[..len]
    }

    /// Passes the used words of the host's outputs to `take`, which reads and wipes them.
    pub(super) fn take_outputs(&mut self, take: impl FnOnce(&mut [u64])) {
        let words = &mut self.host_out.as_mut_slice()[..self.used_out];
        take(words);
        // The compiler must assume that others read the words, so it cannot remove the wiping.
        black_box(&mut *words);
        debug_assert!(
            words.iter().all(|&word| word == 0),
            "results that were not wiped"
        );
        self.used_out = 0;
    }

    /// Whether there are inputs that have not been wiped.
    pub(super) fn has_inputs(&self) -> bool {
        self.used_in > 0
    }

    pub(super) fn wipe_inputs(&mut self) {
        self.host_in.wipe(mem::take(&mut self.used_in));
    }

    pub(super) fn wipe_outputs(&mut self) {
        self.host_out.wipe(mem::take(&mut self.used_out));
    }

    /// Whether chunks have used the device's buffers since the last clearing.
    pub(super) fn is_device_used(&self) -> bool {
        self.used_on_device != Sizes::default()
    }

    /// Overwrites with 0 the words that chunks have used, on `stream`, and waits for it. Kernels clear
    /// their own scratch space.
    pub(super) fn clear_device(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        for buffer in [Buffer::Input, Buffer::Output, Buffer::Intermediate] {
            self.device[buffer as usize].clear(self.used_on_device.of(buffer), stream)?;
        }
        stream.synchronize()?;
        self.used_on_device = Sizes::default();
        Ok(())
    }

    /// Wipes all of the device's buffers. The device must not be working with them.
    pub(super) fn wipe_device(&mut self) -> Result<(), DriverError> {
        self.device.iter().try_for_each(DeviceWords::wipe)?;
        self.used_on_device = Sizes::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
