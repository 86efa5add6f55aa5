//! One of a device's sets of buffers with a stream: a chunk on its way through the device.
//!
//! The order is: inputs to the device, kernels, results to the host. Copies, clearing and short
//! launches are queued on a stream of the slot's with priority, so that they run beside or before the long launches of other
//! chunks, which may fill the device. Where a chunk is several launches, the long one is queued on a stream that the slot
//! may [share](Slot::share_chain) with others of its call: they would but share the device. A chunk of a single launch is on another stream of the
//! slot's, copies and all, and fills the gaps that another chunk's leaves: on its own, it waits for no event, and each call of the driver takes
//! some microseconds, in which a device that has nothing to do waits.
//! While a chunk is under way the slot is *busy*, and nothing reads, writes or frees its buffers.
//!
//! The results of a chunk can be read while the slot has the next one: there are two buffers for them on the host.
//!
//! Buffers keep what was in them while chunks follow one another, for each overwrites what the last one
//! left; when no more follow, they are wiped. Clearing those of the device between chunks would hold up the next one: it waits for room on the
//! multiprocessors, which the long launches of other chunks fill, and the inputs would wait for it.
#![allow(unsafe_code)]

#[cfg(all(test, feature = "rsa"))]
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

use super::launch::{Launch, Loaded, check_indices, check_parts};
use super::layout::{Layout, Sizes};
use super::records::HeldRecords;
use buffers::Buffers;
pub(super) use buffers::Results;
use device_inputs::DeviceInputs;
pub(crate) use outgoing::Outgoing;

mod buffers;
mod device_inputs;
mod outgoing;

pub(crate) struct Slot {
    context: Arc<CudaContext>,
    /// For copies, clearing and short launches.
    stream: Arc<CudaStream>,
    /// For chunks of a single launch.
    single: Arc<CudaStream>,
    /// For the long launches of other chunks: `single`, of this slot or of another one.
    chains: Arc<CudaStream>,
    /// The inputs are on the device, and nothing has been computed.
    kernel_start: CudaEvent,
    /// Where a chunk goes from short launches to long ones, and back.
    before_long: CudaEvent,
    after_long: CudaEvent,
    output_there: CudaEvent,
    /// So are the zeros of [`clear_device`](Self::clear_device).
    cleared: CudaEvent,
    /// One may sleep until then.
    kernel_end: CudaEvent,
    buffers: Option<Buffers>,
    /// What the launches of the chunk under way read, so that it stays allocated.
    records: Option<HeldRecords>,
    state: State,
    /// Clearing may be queued, which needs the buffers.
    is_clearing: bool,
    /// What tests do to the next chunk before each launch and after the last.
    #[cfg(all(test, feature = "rsa"))]
    strike: Option<Strike>,
}

#[cfg(all(test, feature = "rsa"))]
pub(crate) type Strike = Box<dyn Fn(&super::strike::Reach<'_>) + Send>;

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// No chunk is in it. Its buffers may hold what was in the last one.
    Clean,
    /// The inputs are being put into the host's buffer, and may be on their way to the device.
    Filled { sizes: Sizes },
    /// The device is at work.
    Busy { sizes: Sizes },
}

impl Slot {
    /// With streams of its own.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        // It has a time, too, unless one asks for none.
        let sleep = Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC);
        context.bind_to_thread()?;
        let (_, highest_priority) = result::stream::get_priority_range()?;
        let single = context.new_stream()?;
        Ok(Self {
            context: context.clone(),
            stream: context.new_stream_with_priority(highest_priority)?,
            chains: single.clone(),
            single,
            kernel_start: context.new_event(timed)?,
            before_long: context.new_event(None)?,
            after_long: context.new_event(None)?,
            output_there: context.new_event(None)?,
            cleared: context.new_event(None)?,
            kernel_end: context.new_event(sleep)?,
            buffers: None,
            records: None,
            state: State::Clean,
            is_clearing: false,
            #[cfg(all(test, feature = "rsa"))]
            strike: None,
        })
    }

    /// Lets the long launches of these slots' chunks follow one another, and wait for those of no other slot.
    pub(super) fn share_chain(slots: &mut [Self]) {
        let Some(first) = slots.first().map(|slot| slot.single.clone()) else {
            return;
        };
        slots
            .iter_mut()
            .for_each(|slot| slot.chains = first.clone());
    }

    /// Does something to the memory of the next chunk before each launch and after the last; for tests.
    #[cfg(all(test, feature = "rsa"))]
    pub(crate) fn strike(&mut self, strike: Strike) {
        self.strike = Some(strike);
    }

    /// Lets `fill` write all inputs of a chunk and send them, and sends the chunk off through `launches`, one after the other. If `fill`
    /// fails, no launch has seen what it wrote, and the slot is to be [abandoned](Self::abandon).
    ///
    /// # Panics
    ///
    /// If the slot is in use, if a part of the inputs was not sent, or if a launch asks for more than the layout has: a part beyond it, an index out
    /// of range, another device.
    pub(crate) fn submit<E: From<DriverError>>(
        &mut self,
        layout: &Layout,
        fill: impl FnOnce(Outgoing<'_>) -> Result<(), E>,
        launches: &[Launch],
        loaded: &Loaded,
    ) -> Result<(), E> {
        assert!(self.state == State::Clean, "the slot is in use");
        let sizes = layout.sizes();
        for kernel in &loaded.kernels {
            assert!(
                *kernel.context() == self.context,
                "a kernel of another device"
            );
        }
        for launch in launches {
            check_parts(launch.arguments(), sizes);
        }
        self.grow(sizes)?;
        let Some(buffers) = &mut self.buffers else {
            unreachable!("buffers were just made");
        };
        self.state = State::Filled { sizes };
        self.records = loaded.records.clone();
        let addresses = buffers.for_device(sizes);
        let input = buffers.inputs(sizes.input);
        self.context.bind_to_thread()?;
        let is_single = launches.len() == 1;
        let stream = if is_single {
            &self.single
        } else {
            &self.stream
        };
        // SAFETY: buffers on the device are as long as those on the host. Both stay allocated, and nobody but who has the `Outgoing` writes to
        // the inputs, while the slot is filled or busy: until `finish` has waited for the results, or `abandon` for all streams.
        let inputs = unsafe { DeviceInputs::new(addresses.input, stream) };
        fill(Outgoing::new(input, &inputs))?;
        let input = &input[..inputs.count_sent(sizes.input)];
        for launch in launches {
            check_indices(launch.arguments(), loaded, input);
        }

        self.state = State::Busy { sizes };
        #[cfg(all(test, feature = "rsa"))]
        let strike = self.strike.take();
        #[cfg(all(test, feature = "rsa"))]
        let struck = |step: usize| {
            let Some(strike) = &strike else { return };
            self.context.synchronize().unwrap();
            strike(&super::strike::Reach {
                step,
                launch: &launches[step.min(launches.len() - 1)],
                addresses: &addresses,
                loaded,
            });
            // Copies from memory that is not pinned may return before they are over (CUDA Driver API, "API synchronization behavior").
            self.context.synchronize().unwrap();
        };
        #[cfg(all(test, feature = "rsa"))]
        let mut steps = 0..;
        self.kernel_start.record(stream)?;
        let runs = launches.chunk_by(|a, b| a.is_short() == b.is_short());
        for (i, run) in runs.enumerate() {
            let is_apart = !is_single && !run[0].is_short();
            let kernels = if is_apart { &self.chains } else { stream };
            match (is_apart, i) {
                (false, _) => {}
                (true, 0) => kernels.wait(&self.kernel_start)?,
                (true, _) => {
                    self.before_long.record(stream)?;
                    kernels.wait(&self.before_long)?;
                }
            }
            for launch in run {
                #[cfg(all(test, feature = "rsa"))]
                steps.next().into_iter().for_each(struck);
                // SAFETY: the buffers are at least as long as `sizes`, stay allocated and are not touched while the slot is busy:
                // `finish` waits for the results first, and `abandon` for all streams. Every part is within the sizes, and every
                // index in range. The slot keeps the records, too, until then.
                unsafe { launch.queue(loaded, &addresses, kernels)? };
            }
            if is_apart {
                self.after_long.record(kernels)?;
                stream.wait(&self.after_long)?;
            }
        }
        #[cfg(all(test, feature = "rsa"))]
        struck(launches.len());
        self.kernel_end.record(stream)?;
        let output = buffers.outputs_mut(sizes.output);
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(output, addresses.output, stream.cu_stream())? };
        self.output_there.record(stream)?;
        if is_single {
            // Whatever is queued there next is for after the chunk.
            self.stream.wait(&self.output_there)?;
        }
        Ok(())
    }

    /// When no more chunks follow: has the device clear its buffers, if the slot is busy when the results are on the host.
    pub(super) fn clear_device(&mut self) -> Result<(), DriverError> {
        let Some(buffers) = &mut self.buffers else {
            return Ok(());
        };
        self.is_clearing = true;
        buffers.clear_device(&self.stream)?;
        // A chunk that follows all the same is for after that.
        self.cleared.record(&self.stream)?;
        self.single.wait(&self.cleared)
    }

    /// Wipes the host's inputs; if the slot is busy, when they are on the device, which goes on.
    pub(super) fn wipe_input(&mut self) -> Result<(), DriverError> {
        if let Some(buffers) = &mut self.buffers
            && buffers.has_inputs()
        {
            if let State::Busy { .. } = self.state {
                self.kernel_start.synchronize()?;
            }
            buffers.wipe_inputs();
        }
        Ok(())
    }

    /// Waits for the results of the chunk, and gives them away, with the time that the kernels took. The slot can have another chunk then, whose
    /// results are waited for when these have been [brought back](Self::bring_back).
    ///
    /// A thread that `sleeps` leaves its processor to others until the kernels have ended, and wakes somewhat later.
    ///
    /// # Panics
    ///
    /// If the slot is not busy, or somebody has results of it.
    pub(super) fn finish(&mut self, sleeps: bool) -> Result<(Results, Duration), DriverError> {
        let (State::Busy { sizes }, Some(buffers)) = (self.state, &mut self.buffers) else {
            panic!("the slot has nothing to finish");
        };
        if sleeps {
            // The copy takes no longer than waking up.
            self.kernel_end.synchronize()?;
        }
        self.output_there.synchronize()?;
        self.state = State::Clean;
        self.records = None;
        let milliseconds = self.kernel_start.elapsed_ms(&self.kernel_end)?;
        let kernel = Duration::from_secs_f64(f64::from(milliseconds) / 1e3);
        Ok((buffers.give_results(sizes.output), kernel))
    }

    /// Takes back the memory of results, which somebody has read.
    pub(super) fn bring_back(&mut self, results: Results) {
        if let Some(buffers) = &mut self.buffers {
            buffers.bring_back(results);
        }
    }

    /// When no more chunks follow: wipes all buffers, and waits until it is done.
    ///
    /// # Panics
    ///
    /// If the slot is in use, or somebody has results of it.
    pub(super) fn settle(&mut self) -> Result<(), DriverError> {
        assert!(self.state == State::Clean, "the slot is in use");
        self.clear_device()?;
        if let Some(buffers) = &mut self.buffers {
            assert!(buffers.are_complete(), "results were not brought back");
            buffers.wipe_inputs();
            buffers.wipe_outputs();
        }
        self.await_clearing()
    }

    /// Until then the buffers must stay.
    fn await_clearing(&mut self) -> Result<(), DriverError> {
        self.stream.synchronize()?;
        self.is_clearing = false;
        Ok(())
    }

    /// After an error or a panic: waits for the device, then wipes everything that chunks may have
    /// left. If the device does not answer any more, its buffers are given up with its context.
    pub(super) fn abandon(&mut self) {
        let is_settled = self.state == State::Clean
            && !self.is_clearing
            && !self.buffers.as_ref().is_some_and(Buffers::is_device_used);
        let streams = [&self.chains, &self.single, &self.stream];
        let answered =
            is_settled || streams.map(|stream| stream.synchronize().is_ok()) == [true; 3];
        self.records = None;
        self.is_clearing = false;
        let Some(buffers) = &mut self.buffers else {
            return;
        };
        buffers.wipe_inputs();
        buffers.wipe_outputs();
        let are_complete = buffers.are_complete();
        if is_settled && are_complete {
            return;
        }
        // What is not here has been wiped and freed.
        if !are_complete || !answered || buffers.wipe_device().is_err() {
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

    /// How many words its buffers have on the device.
    pub(super) fn words(&self) -> usize {
        self.buffers.as_ref().map_or(0, |buffers| {
            let sizes = buffers.sizes();
            sizes.input + sizes.output + sizes.scratch + sizes.intermediate
        })
    }

    /// Whether all buffers, on the host and on the device, hold zeros only; for tests.
    #[cfg(test)]
    pub(super) fn is_wiped(&self) -> bool {
        self.buffers.as_ref().is_none_or(Buffers::are_wiped)
    }

    /// Replaces the buffers unless they are large enough. The results of the last chunk stay with whoever has them.
    fn grow(&mut self, sizes: Sizes) -> Result<(), DriverError> {
        let have = self
            .buffers
            .as_ref()
            .map_or(Sizes::default(), Buffers::sizes);
        if !have.covers(sizes) {
            self.await_clearing()?;
            // The old ones first, so that both need not fit at once.
            self.buffers = None;
            self.buffers = Some(Buffers::with_room(&self.context, have.max(sizes))?);
        }
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.abandon();
    }
}

#[cfg(test)]
mod tests;
