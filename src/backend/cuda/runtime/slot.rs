//! The buffers and the stream for one chunk on a device.
//!
//! A chunk passes through three steps: inputs to the device, kernels, results to the host. While it
//! is under way, the slot is *busy*: nothing reads, writes or frees its buffers.
//!
//! Buffers keep their contents between consecutive chunks, because each chunk overwrites those of
//! the last one. They are wiped when no chunk follows. Clearing the device's buffers between chunks
//! would delay the next one.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::time::Duration;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

#[cfg(all(test, feature = "rsa"))]
use self::tests::injection::Injections;
#[cfg(all(test, feature = "rsa"))]
pub(crate) use self::tests::injection::{Injection, InjectionPoint};
use super::buffers::{Buffer, Buffers, DeviceWords, Sizes};
use super::launch::Work;

pub(crate) struct Slot {
    context: Arc<CudaContext>,
    /// The stream of this slot.
    own: Arc<CudaStream>,
    /// The stream of the call's chunks: its own, or that of another slot.
    stream: Arc<CudaStream>,
    /// The inputs are on the device, and no kernel has run.
    kernel_start: CudaEvent,
    output_there: CudaEvent,
    /// The kernels have ended. A thread may sleep until then.
    kernel_end: CudaEvent,
    buffers: Option<Buffers>,
    /// Keeps the words allocated that the launches under way read, and that stay on the device.
    resident: Option<Arc<DeviceWords>>,
    /// Whether a chunk is on the device. Otherwise the buffers may hold the contents of the last one.
    is_busy: bool,
    /// Changes that tests make to the next chunk, before each launch and after the last.
    #[cfg(all(test, feature = "rsa"))]
    injection: Option<Injection>,
}

impl Slot {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        // A blocking event also has a time, unless that is disabled.
        let sleep = Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC);
        context.bind_to_thread()?;
        let own = context.new_stream()?;
        Ok(Self {
            context: context.clone(),
            stream: own.clone(),
            own,
            kernel_start: context.new_event(timed)?,
            output_there: context.new_event(None)?,
            kernel_end: context.new_event(sleep)?,
            buffers: None,
            resident: None,
            is_busy: false,
            #[cfg(all(test, feature = "rsa"))]
            injection: None,
        })
    }

    /// Sets the streams of these slots for a call: each its own, or all the same one.
    ///
    /// Chunks in streams of their own fill the gaps of each other. But the launches of one chunk
    /// then take turns with those of another one, and both end late.
    ///
    /// # Panics
    ///
    /// If a slot is in use.
    pub(super) fn set_streams(slots: &mut [Self], is_shared: bool) {
        assert!(slots.iter().all(|slot| !slot.is_busy), "a slot is in use");
        for i in 0..slots.len() {
            let of = if is_shared { 0 } else { i };
            slots[i].stream = slots[of].own.clone();
        }
    }

    /// Sets changes to the memory of the next chunk, before each launch and after the last. For
    /// tests.
    #[cfg(all(test, feature = "rsa"))]
    pub(crate) fn inject(&mut self, injection: Injection) {
        self.injection = Some(injection);
    }

    /// Submits a chunk. `fill` writes the inputs. Then the launches run one after another.
    ///
    /// After an error or a panic the slot must be [abandoned](Self::abandon).
    ///
    /// # Panics
    ///
    /// If the slot is in use, an index is out of range, or a kernel or words that stay are on another
    /// device.
    pub(crate) fn submit(
        &mut self,
        work: &Work<'_>,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<(), DriverError> {
        assert!(!self.is_busy, "the slot is in use");
        let (sizes, launches) = (work.sizes, &work.launches);
        let mut resident = work.resident.iter();
        assert!(
            resident.all(|words| words.is_in(&self.context)),
            "words on another device"
        );
        let mut kernels = launches.iter().map(|launch| launch.kernel);
        assert!(
            kernels.all(|kernel| kernel.is_in(&self.context)),
            "a kernel of another device"
        );
        self.grow(sizes)?;
        let buffers = self.buffers.as_mut().expect("buffers were just made");
        let addresses = buffers.for_device(sizes);
        let input = buffers.inputs(sizes.of(Buffer::Input));
        fill(input);
        let input = &*input;
        work.check_indices(input);

        self.is_busy = true;
        self.resident.clone_from(&work.resident);
        self.context.bind_to_thread()?;
        let stream = &self.stream;
        // SAFETY: buffers on the device are as long as those on the host. Both stay allocated while
        // the slot is busy: until `finish` has waited for the results, or `abandon` for the
        // stream. Before that only `wipe_input` writes to the inputs, once they are copied.
        unsafe {
            let inputs = addresses[Buffer::Input as usize];
            result::memcpy_htod_async(inputs, input, stream.cu_stream())?;
        }
        #[cfg(all(test, feature = "rsa"))]
        let mut injections = Injections::new(self.injection.take(), work, &addresses, stream);
        self.kernel_start.record(stream)?;
        for launch in launches {
            #[cfg(all(test, feature = "rsa"))]
            injections.next();
            // SAFETY: the buffers are at least as long as `sizes`, stay allocated and are not
            // touched while the slot is busy: `finish` waits for the results first, and `abandon`
            // for the stream. Every part is within the sizes, and every index in range. The slot
            // also keeps `resident` until then. The context was bound above, and its device, which
            // this call borrows, keeps the modules.
            unsafe { work.queue(launch, &addresses, stream)? };
        }
        #[cfg(all(test, feature = "rsa"))]
        injections.next();
        self.kernel_end.record(stream)?;
        let output = buffers.outputs_mut(sizes.of(Buffer::Output));
        // SAFETY: as above.
        unsafe {
            let outputs = addresses[Buffer::Output as usize];
            result::memcpy_dtoh_async(output, outputs, stream.cu_stream())?;
        }
        self.output_there.record(stream)
    }

    /// Wipes the host's inputs. In a busy slot, waits first until they are on the device, which
    /// continues.
    pub(super) fn wipe_input(&mut self) -> Result<(), DriverError> {
        if let Some(buffers) = &mut self.buffers
            && buffers.has_inputs()
        {
            if self.is_busy {
                self.kernel_start.synchronize()?;
            }
            buffers.wipe_inputs();
        }
        Ok(())
    }

    /// Waits for the results of the chunk, and returns the running time of the kernels.
    ///
    /// A thread that `sleeps` leaves its processor to others until the kernels have ended, and
    /// wakes up slightly later.
    ///
    /// # Panics
    ///
    /// If the slot is not busy.
    pub(super) fn finish(&mut self, sleeps: bool) -> Result<Duration, DriverError> {
        assert!(self.is_busy, "the slot has nothing to finish");
        if sleeps {
            // The copy takes no longer than waking up.
            self.kernel_end.synchronize()?;
        }
        self.output_there.synchronize()?;
        self.is_busy = false;
        self.resident = None;
        let milliseconds = self.kernel_start.elapsed_ms(&self.kernel_end)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }

    /// Passes the results of the finished chunk to `take`, which reads and wipes them.
    ///
    /// # Panics
    ///
    /// If the slot is in use.
    pub(super) fn take_results(&mut self, take: impl FnOnce(&mut [u64])) {
        assert!(!self.is_busy, "the slot is in use");
        if let Some(buffers) = &mut self.buffers {
            buffers.take_outputs(take);
        }
    }

    /// Wipes all buffers and waits until that is done, when no chunk follows.
    ///
    /// # Panics
    ///
    /// If the slot is in use.
    pub(super) fn settle(&mut self) -> Result<(), DriverError> {
        assert!(!self.is_busy, "the slot is in use");
        match &mut self.buffers {
            Some(buffers) => {
                buffers.wipe_inputs();
                buffers.wipe_outputs();
                buffers.clear_device(&self.stream)
            }
            None => Ok(()),
        }
    }

    /// Cleans up after an error or a panic: waits for the device, then wipes everything that chunks
    /// may have left. If the device does not answer, its buffers are lost with its context.
    pub(super) fn abandon(&mut self) {
        let is_used = self.buffers.as_ref().is_some_and(Buffers::is_device_used);
        let is_settled = !self.is_busy && !is_used;
        let answered = is_settled || self.stream.synchronize().is_ok();
        self.is_busy = false;
        self.resident = None;
        if let Some(buffers) = &mut self.buffers {
            buffers.wipe_inputs();
            buffers.wipe_outputs();
            if !is_settled && (!answered || buffers.wipe_device().is_err()) {
                self.buffers = None;
            }
        }
    }

    /// Frees the buffers.
    ///
    /// # Panics
    ///
    /// If the slot is in use.
    pub(super) fn release(&mut self) {
        assert!(!self.is_busy, "the slot is in use");
        self.buffers = None;
    }

    /// The size of its buffers on the device in words.
    pub(super) fn words(&self) -> usize {
        let buffers = self.buffers.as_ref();
        buffers.map_or(0, |buffers| buffers.sizes().0.iter().sum())
    }

    /// Replaces the buffers unless they are large enough.
    fn grow(&mut self, sizes: Sizes) -> Result<(), DriverError> {
        let have = self
            .buffers
            .as_ref()
            .map_or(Sizes::default(), Buffers::sizes);
        if !have.covers(sizes) {
            // Free the old buffers first, so that both need not fit at once.
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
