//! The buffer on the device that receives the inputs of a chunk.
#![allow(unsafe_code)]

use core::cell::Cell;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DriverError, result};

use super::outgoing::Destination;

/// The destination of a chunk's inputs.
pub(super) struct DeviceInputs<'a> {
    address: CUdeviceptr,
    stream: &'a CudaStream,
    /// The number of words that have been sent.
    sent: Cell<usize>,
    /// The end of the last words that were sent.
    end: Cell<usize>,
    left_out: Cell<usize>,
}

impl<'a> DeviceInputs<'a> {
    /// The buffer at `address`, on the device of `stream`, whose context is bound.
    ///
    /// # Safety
    ///
    /// The buffer must have a place for each copied word. Both it and the copied words must stay
    /// allocated, and the words unchanged, until the stream has finished the copies.
    pub(super) unsafe fn new(address: CUdeviceptr, stream: &'a CudaStream) -> Self {
        Self {
            address,
            stream,
            sent: Cell::new(0),
            end: Cell::new(0),
            left_out: Cell::new(0),
        }
    }

    /// The number of words that have been sent, which are the first ones of `len`.
    ///
    /// # Panics
    ///
    /// If some words were neither sent nor left out, or if the words left out are not the last
    /// ones.
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
        // SAFETY: the maker of this value has promised that there is a place for the words, and
        // that both stay as they are until the stream has finished. `Outgoing` has given the words
        // away.
        unsafe { result::memcpy_htod_async(address, words, self.stream.cu_stream())? };
        self.sent.set(self.sent.get() + words.len());
        self.end.set(self.end.get().max(first + words.len()));
        Ok(())
    }

    fn leave_out(&self, len: usize) {
        self.left_out.set(self.left_out.get() + len);
    }
}
