//! Pinned host memory and device memory, wiped before they are freed.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::hint::black_box;
use core::{ptr, slice};

use cudarc::driver::sys::CUdeviceptr;
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

    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[u64] {
        // SAFETY: the words are owned, initialised, and no copy is under way.
        unsafe { slice::from_raw_parts(self.words, self.len) }
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
pub(super) struct DeviceWords {
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
    pub(super) fn len(&self) -> usize {
        self.len
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

#[cfg(test)]
impl DeviceWords {
    /// A copy of all words.
    pub(super) fn read(&self) -> alloc::vec::Vec<u64> {
        let mut words = alloc::vec![0; self.len];
        self.context.bind_to_thread().unwrap();
        // SAFETY: the memory is owned and `len` words long.
        unsafe { result::memcpy_dtoh_sync(&mut words, self.pointer).unwrap() };
        words
    }

    /// Replaces all words.
    pub(super) fn write(&self, words: &[u64]) {
        assert_eq!(words.len(), self.len);
        self.context.bind_to_thread().unwrap();
        // SAFETY: the memory is owned and `len` words long.
        unsafe { result::memcpy_htod_sync(self.pointer, words).unwrap() };
    }
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
