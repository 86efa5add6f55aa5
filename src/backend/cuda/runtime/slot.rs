//! One of a device's sets of buffers with a stream: a chunk on its way through the device.
//!
//! The order is: inputs to the device, kernels, results to the host, device buffers cleared. Copies and clearing are
//! queued on a stream of the slot's with priority, so that they run beside or before the kernels of other chunks, which
//! may fill the device for long. Where a chunk is several launches, they are queued on a stream that the slot shares with
//! the other of its half: the long ones of many chunks would keep the short ones of the first waiting. A single launch
//! has a stream of the slot's, and fills the gaps that another chunk's leaves.
//! While a chunk is under way the slot is *busy*, and nothing reads, writes or frees its buffers.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::time::Duration;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

use super::buffer::{DeviceWords, PinnedWords};
use super::launch::{Launch, Loaded};
use super::layout::{Addresses, Layout, Sizes, check_indices};

pub(crate) struct Slot {
    context: Arc<CudaContext>,
    /// For copies and clearing.
    stream: Arc<CudaStream>,
    /// For chunks of a single launch.
    single: Arc<CudaStream>,
    /// For chunks of several.
    chains: Arc<CudaStream>,
    input_there: CudaEvent,
    output_there: CudaEvent,
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
    /// All buffers are zero, or will be before anything else happens to them.
    Clean,
    /// The inputs are in, or being put into, the host's buffer.
    Filled { sizes: Sizes },
    /// The device is at work. Until `is_input_wiped`, the host's buffer holds the inputs.
    Busy { sizes: Sizes, is_input_wiped: bool },
}

impl Slot {
    /// With streams of its own, and `chains` for chunks of several launches.
    pub(super) fn new(
        context: &Arc<CudaContext>,
        chains: &Arc<CudaStream>,
    ) -> Result<Self, DriverError> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        context.bind_to_thread()?;
        let (_, highest_priority) = result::stream::get_priority_range()?;
        Ok(Self {
            context: context.clone(),
            stream: context.new_stream_with_priority(highest_priority)?,
            single: context.new_stream()?,
            chains: chains.clone(),
            input_there: context.new_event(None)?,
            output_there: context.new_event(None)?,
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
        let sizes = layout.sizes();
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

        self.state = State::Busy {
            sizes,
            is_input_wiped: false,
        };
        self.context.bind_to_thread()?;
        let stream = self.stream.cu_stream();
        // SAFETY: the buffers are at least as long as `sizes`, stay allocated and are not touched while
        // the slot is busy: `finish` waits for the results first, and `abandon` for all streams.
        unsafe { result::memcpy_htod_async(addresses.input, input, stream)? };
        self.input_there.record(&self.stream)?;
        let kernels = match launches {
            [_] => &self.single,
            _ => &self.chains,
        };
        kernels.wait(&self.input_there)?;
        self.kernel_start.record(kernels)?;
        for launch in launches {
            // SAFETY: as above; every part is within the sizes, and every index in range. Records stay where
            // they are while the slots of their device are held.
            unsafe { launch.queue(loaded, &addresses, kernels)? };
        }
        self.kernel_end.record(kernels)?;
        self.stream.wait(&self.kernel_end)?;
        let output = &mut buffers.host_out.as_mut_slice()[..sizes.output];
        let clear = |address: CUdeviceptr, words: usize| match words {
            0 => Ok(()),
            // SAFETY: as above.
            _ => unsafe { result::memset_d8_async(address, 0, words * size_of::<u64>(), stream) },
        };
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(output, addresses.output, stream)? };
        self.output_there.record(&self.stream)?;
        clear(addresses.input, sizes.input)?;
        clear(addresses.output, sizes.output)?;
        clear(addresses.intermediate, sizes.intermediate)
    }

    /// If the slot is busy: waits until the inputs are on the device, and wipes the host's copy, while the device
    /// goes on.
    pub(super) fn wipe_input(&mut self) -> Result<(), DriverError> {
        if let (
            State::Busy {
                sizes,
                is_input_wiped: false,
            },
            Some(buffers),
        ) = (self.state, &mut self.buffers)
        {
            self.input_there.synchronize()?;
            buffers.host_in.wipe(sizes.input);
            self.state = State::Busy {
                sizes,
                is_input_wiped: true,
            };
        }
        Ok(())
    }

    /// Waits for the results of the chunk, lets `take` read them, and wipes the host's buffers. Those on the device
    /// are cleared before the slot's next chunk; [`settle`](Self::settle) waits for it. Returns the time that the
    /// kernels took.
    ///
    /// # Panics
    ///
    /// If the slot is not busy.
    pub(super) fn finish(&mut self, take: impl FnOnce(&[u64])) -> Result<Duration, DriverError> {
        self.wipe_input()?;
        let (State::Busy { sizes, .. }, Some(buffers)) = (self.state, &mut self.buffers) else {
            panic!("the slot has nothing to finish");
        };
        self.output_there.synchronize()?;
        take(&buffers.host_out.as_slice()[..sizes.output]);
        buffers.host_out.wipe(sizes.output);
        self.state = State::Clean;
        let milliseconds = self.kernel_start.elapsed_ms(&self.kernel_end)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }

    /// Waits until the device's buffers are cleared.
    pub(super) fn settle(&self) -> Result<(), DriverError> {
        self.stream.synchronize()
    }

    /// After an error or a panic: waits for the device, then wipes everything that the chunk may have
    /// left. If the device does not answer any more, its buffers are given up with its context.
    pub(super) fn abandon(&mut self) {
        let sizes = match self.state {
            State::Clean => return,
            State::Filled { sizes } | State::Busy { sizes, .. } => sizes,
        };
        let streams = [&self.chains, &self.single, &self.stream];
        let answered = streams.map(|stream| stream.synchronize().is_ok()) == [true; 3];
        let Some(buffers) = &mut self.buffers else {
            return;
        };
        buffers.host_in.wipe(sizes.input);
        buffers.host_out.wipe(sizes.output);
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
