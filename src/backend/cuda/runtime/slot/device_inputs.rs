//! The buffer on the device that the inputs of a chunk are sent to.
#![allow(unsafe_code)]

use core::cell::Cell;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DriverError, result};

use super::outgoing::Destination;

/// Where the inputs of a chunk go.
pub(super) struct DeviceInputs<'a> {
    address: CUdeviceptr,
    stream: &'a CudaStream,
    /// So many words have been sent.
    sent: Cell<usize>,
    /// The place after the last of them.
    end: Cell<usize>,
    left_out: Cell<usize>,
}

impl<'a> DeviceInputs<'a> {
    /// The buffer at `address`, on the device of `stream`, whose context is bound.
    ///
    /// # Safety
    ///
    /// The buffer has a place for each of the words that are copied. Both stay allocated, and nobody writes to words that have been copied, until
    /// the stream is done with them.
    pub(super) unsafe fn new(address: CUdeviceptr, stream: &'a CudaStream) -> Self {
        Self {
            address,
            stream,
            sent: Cell::new(0),
            end: Cell::new(0),
            left_out: Cell::new(0),
        }
    }

    /// How many of `len` words have been sent: the first ones.
    ///
    /// # Panics
    ///
    /// If others were neither sent nor left out, or not the last ones were left out.
    pub(super) fn count_sent(&self, len: usize) -> usize {
        let sent = self.sent.get();
        assert!(sent + self.left_out.get() == len, "inputs were not sent");
        assert!(
            sent == self.end.get(),
            "only the last inputs can be left out"
        );
        sent
    }
}

impl Destination for DeviceInputs<'_> {
    fn copy(&self, first: usize, words: &[u64]) -> Result<(), DriverError> {
        let address = self.address + (first * size_of::<u64>()) as CUdeviceptr;
        // SAFETY: whoever made this has promised that there is a place for the words, and that they and it stay as they are until the
        // stream is done with them; `Outgoing` has given the words away.
        unsafe { result::memcpy_htod_async(address, words, self.stream.cu_stream())? };
        self.sent.set(self.sent.get() + words.len());
        self.end.set(self.end.get().max(first + words.len()));
        Ok(())
    }

    fn leave_out(&self, len: usize) {
        self.left_out.set(self.left_out.get() + len);
    }
}
