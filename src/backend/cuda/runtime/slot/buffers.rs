//! The buffers of a slot, on the host and on the device.

use alloc::sync::Arc;
use core::hint::black_box;
use core::mem;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::super::buffer::{DeviceWords, PinnedWords};
use super::super::layout::{Addresses, Buffer, Sizes};

/// The buffers of a slot. Between calls they hold only zeros.
pub(super) struct Buffers {
    host_in: PinnedWords,
    host_out: PinnedWords,
    /// A second buffer for results, used while those of the last chunk are lent out. `None` during
    /// that time.
    spare_out: Option<PinnedWords>,
    /// Words at the start of `host_in` and of `host_out` that may be nonzero.
    used_in: usize,
    used_out: usize,
    /// Words at the start of the device's buffers that may be nonzero, apart from queued clearing.
    used_on_device: Sizes,
    /// In the order of [`Buffer`].
    device: [DeviceWords; Buffer::COUNT],
}

/// The results of a chunk on the host, while the slot may take the next one. To be
/// [returned](Buffers::return_results).
#[must_use]
pub(in super::super) struct Results {
    words: PinnedWords,
    len: usize,
}

impl Results {
    /// Passes all results to `take`, which reads and wipes them.
    pub(in super::super) fn take(&mut self, take: impl FnOnce(&mut [u64])) {
        let words = &mut self.words.as_mut_slice()[..self.len];
        take(words);
        // The compiler must assume that others read the words, so it cannot remove the wiping.
        black_box(&mut *words);
        debug_assert!(
            words.iter().all(|&word| word == 0),
            "results that were not wiped"
        );
        self.len = 0;
    }
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
            spare_out: Some(on_host(Buffer::Output)?),
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
        Addresses(self.device.each_ref().map(DeviceWords::address))
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

    /// Lends out the host's outputs, of which `len` words are results.
    ///
    /// # Panics
    ///
    /// If the last results were not returned.
    pub(super) fn give_results(&mut self, len: usize) -> Results {
        let Some(spare) = self.spare_out.take() else {
            panic!("results were not returned");
        };
        self.used_out = 0;
        Results {
            words: mem::replace(&mut self.host_out, spare),
            len,
        }
    }

    /// Takes back results, and wipes them if that has not been done. If these buffers have replaced
    /// the ones that lent them, the results are freed.
    pub(super) fn return_results(&mut self, mut results: Results) {
        results.words.wipe(results.len);
        if !self.are_complete() {
            self.spare_out = Some(results.words);
        }
    }

    /// Whether no results are lent out.
    pub(super) fn are_complete(&self) -> bool {
        self.spare_out.is_some()
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

    /// Queues the clearing of the words that chunks have used, on `stream`. Kernels clear their own
    /// scratch space.
    pub(super) fn clear_device(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        for buffer in [Buffer::Input, Buffer::Output, Buffer::Intermediate] {
            self.device[buffer as usize].clear(self.used_on_device.of(buffer), stream)?;
        }
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
impl Buffers {
    /// The number of buffers.
    pub(super) const COUNT: usize = 7;

    /// Whether all buffers hold only zeros.
    pub(super) fn are_wiped(&self) -> bool {
        let zeros = |words: &[u64]| words.iter().all(|&word| word == 0);
        zeros(self.host_in.as_slice())
            && zeros(self.host_out.as_slice())
            && self.spare_out.iter().all(|words| zeros(words.as_slice()))
            && self.device.iter().all(|words| zeros(&words.read()))
    }

    /// Sets the last word of one buffer to `word`, and its other words to 0.
    pub(super) fn write_last(&mut self, buffer: usize, word: u64) {
        match buffer {
            0 => write_last(self.host_in.as_mut_slice(), word),
            1 => write_last(self.host_out.as_mut_slice(), word),
            2 => write_last(self.spare_out.as_mut().unwrap().as_mut_slice(), word),
            _ => {
                let device = &self.device[buffer - 3];
                let mut words = alloc::vec![0; device.len()];
                write_last(&mut words, word);
                device.write(&words);
            }
        }
    }
}

#[cfg(test)]
fn write_last(words: &mut [u64], word: u64) {
    words.fill(0);
    *words.last_mut().unwrap() = word;
}
