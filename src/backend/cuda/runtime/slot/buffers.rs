//! The buffers of a slot, on the host and on the device.

use alloc::sync::Arc;
use core::hint::black_box;
use core::mem;

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::super::buffer::{DeviceWords, PinnedWords};
use super::super::layout::{Addresses, Sizes};

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
    device_in: DeviceWords,
    device_out: DeviceWords,
    scratch: DeviceWords,
    intermediate: DeviceWords,
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
        match Self::new(context, sizes.map(usize::next_power_of_two)) {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Self::new(context, sizes),
            result => result,
        }
    }

    fn new(context: &Arc<CudaContext>, sizes: Sizes) -> Result<Self, DriverError> {
        Ok(Self {
            host_in: PinnedWords::zeroed(context, sizes.input)?,
            host_out: PinnedWords::zeroed(context, sizes.output)?,
            spare_out: Some(PinnedWords::zeroed(context, sizes.output)?),
            used_in: 0,
            used_out: 0,
            used_on_device: Sizes::default(),
            device_in: DeviceWords::zeroed(context, sizes.input)?,
            device_out: DeviceWords::zeroed(context, sizes.output)?,
            scratch: DeviceWords::zeroed(context, sizes.scratch)?,
            intermediate: DeviceWords::zeroed(context, sizes.intermediate)?,
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            input: self.device_in.len(),
            output: self.device_out.len(),
            scratch: self.scratch.len(),
            intermediate: self.intermediate.len(),
        }
    }

    /// The addresses on the device for a chunk of these sizes.
    pub(super) fn for_device(&mut self, sizes: Sizes) -> Addresses {
        self.used_on_device = self.used_on_device.max(sizes);
        Addresses {
            input: self.device_in.address(),
            output: self.device_out.address(),
            scratch: self.scratch.address(),
            intermediate: self.intermediate.address(),
        }
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
        let used = self.used_on_device;
        self.device_in.clear(used.input, stream)?;
        self.device_out.clear(used.output, stream)?;
        self.intermediate.clear(used.intermediate, stream)?;
        self.used_on_device = Sizes::default();
        Ok(())
    }

    /// Wipes all of the device's buffers. The device must not be working with them.
    pub(super) fn wipe_device(&mut self) -> Result<(), DriverError> {
        self.on_device()
            .into_iter()
            .try_for_each(DeviceWords::wipe)?;
        self.used_on_device = Sizes::default();
        Ok(())
    }

    fn on_device(&self) -> [&DeviceWords; 4] {
        [
            &self.device_in,
            &self.device_out,
            &self.scratch,
            &self.intermediate,
        ]
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
            && self.on_device().iter().all(|words| zeros(&words.read()))
    }

    /// Sets the last word of one buffer to `word`, and its other words to 0.
    pub(super) fn write_last(&mut self, buffer: usize, word: u64) {
        match buffer {
            0 => write_last(self.host_in.as_mut_slice(), word),
            1 => write_last(self.host_out.as_mut_slice(), word),
            2 => write_last(self.spare_out.as_mut().unwrap().as_mut_slice(), word),
            _ => {
                let device = self.on_device()[buffer - 3];
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
