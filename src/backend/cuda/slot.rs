//! One of a device's two sets of buffers with a stream: a chunk on its way through the device.
//!
//! The order on the stream is: inputs to the device, kernels, results to the host, device buffers cleared.
//! While a chunk is under way the slot is *busy*, and nothing reads, writes or frees its buffers.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::time::Duration;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};
use zeroize::Zeroize;

use super::buffer::{DeviceWords, PinnedWords};

pub(super) struct Slot {
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
    tables: DeviceWords,
    between: DeviceWords,
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

/// What a chunk needs, in words; public.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Sizes {
    pub(super) input: usize,
    pub(super) output: usize,
    /// Tables, which the kernels clear.
    pub(super) tables: usize,
    /// What one kernel leaves for the next.
    pub(super) between: usize,
}

/// Where the buffers of a chunk are on the device.
pub(super) struct Addresses {
    pub(super) input: CUdeviceptr,
    pub(super) output: CUdeviceptr,
    pub(super) tables: CUdeviceptr,
    pub(super) between: CUdeviceptr,
}

impl Addresses {
    /// The address of word `index` behind `start`.
    pub(super) fn word(start: CUdeviceptr, index: usize) -> CUdeviceptr {
        start + (index * size_of::<u64>()) as CUdeviceptr
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

    /// Lets `fill` write all inputs of a chunk, and sends it off: `launch` queues its kernels.
    ///
    /// `launch` may use the buffers up to the given sizes, on the stream that it is given alone.
    ///
    /// # Panics
    ///
    /// If the slot is in use.
    pub(super) fn submit(
        &mut self,
        sizes: Sizes,
        fill: impl FnOnce(&mut [u64]),
        launch: impl FnOnce(&Addresses, &CudaStream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        assert!(self.state == State::Clean, "the slot is in use");
        self.grow(sizes)?;
        let Some(buffers) = &mut self.buffers else {
            unreachable!("buffers were just made");
        };
        self.state = State::Filled { sizes };
        let addresses = buffers.addresses();
        let input = &mut buffers.host_in.as_mut_slice()[..sizes.input];
        fill(input);

        self.state = State::Busy { sizes };
        self.context.bind_to_thread()?;
        let stream = self.stream.cu_stream();
        // SAFETY: the buffers are at least as long as `sizes`, stay allocated and are not touched while
        // the slot is busy: `finish` and `abandon` wait for the stream first.
        unsafe { result::memcpy_htod_async(addresses.input, input, stream)? };
        self.kernel_start.record(&self.stream)?;
        launch(&addresses, &self.stream)?;
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
        clear(addresses.between, sizes.between)
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
            &buffers.tables,
            &buffers.between,
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
            &buffers.tables,
            &buffers.between,
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
            tables: DeviceWords::zeroed(context, sizes.tables)?,
            between: DeviceWords::zeroed(context, sizes.between)?,
        })
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            input: self.device_in.len(),
            output: self.device_out.len(),
            tables: self.tables.len(),
            between: self.between.len(),
        }
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            input: self.device_in.address(),
            output: self.device_out.address(),
            tables: self.tables.address(),
            between: self.between.address(),
        }
    }
}

impl Sizes {
    fn covers(self, other: Self) -> bool {
        self.max(other) == self
    }

    fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            tables: self.tables.max(other.tables),
            between: self.between.max(other.between),
        }
    }
}
