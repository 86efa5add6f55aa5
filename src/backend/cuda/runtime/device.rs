//! Devices: their kernels and slots, and the pool that distributes slots to calls.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;
use std::process;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use batch_modexp_core::{DeviceFault, Error};
use cudarc::driver::{CudaContext, DriverError};

use super::buffers::DeviceWords;
use super::launch::{Kernel, Module};
use super::lock;
use super::probe::{DeviceInfo, fault_of, name_of};
use super::resident::Resident;
use super::slot::Slot;
use crate::backend::cuda::family::Entry;

/// The maximum number of slots of a call: two for each of the two threads that drive the device.
/// One chunk of a thread waits on the device while another is computed.
const SLOTS_OF_CALL: usize = 4;

/// Slots of a device, for four large calls or sixteen calls of one chunk. The host's part of a call
/// then overlaps with the device's part of others.
///
/// At nine tenths of the full load, an H200 has five to seven calls of two or three thousand
/// signatures under way, and at times more (docs/performance.md, "At a steady rate").
const SLOTS: usize = 16;

/// The cost of batches on the devices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// The time from the start of the first kernel to the end of the last one, by the device's
    /// clock, summed over all chunks. Chunks that overlap count in full each, and so do waits between
    /// the kernels of a chunk.
    pub kernel: Duration,
    /// The number of chunks. Those of private operations with CRT have three or four launches,
    /// others one.
    pub chunks: u32,
}

/// The devices of a backend.
#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<Device>,
    /// The process that opened the devices. A forked child has the memory of its parent, but neither
    /// its threads nor its CUDA contexts. Every driver call would fail or hang there, and pinned
    /// memory may be missing.
    process: u32,
}

impl Devices {
    pub(crate) fn open(infos: &[DeviceInfo]) -> Result<Self, Error> {
        Ok(Self {
            devices: infos.iter().map(Device::open).collect::<Result<_, _>>()?,
            process: process::id(),
        })
    }

    /// All devices, including lost ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter()
    }

    /// The devices that calls use: those that are not lost. If all are lost, all, so that calls for
    /// them return the loss.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Device> {
        let is_usable = |device: &Device| device.lost().is_none();
        let any = self.iter().any(is_usable);
        self.iter().filter(move |device| !any || is_usable(device))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.devices.iter_mut()
    }

    /// Whether this is a forked child.
    fn is_left(&self) -> bool {
        self.process != process::id()
    }

    /// An error if no device is usable.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_left() {
            return Err(Error::Forked);
        }
        if self.iter().all(|device| device.lost().is_some()) {
            self.iter().try_for_each(Device::check_lost)?;
        }
        Ok(())
    }

    /// The estimated time in milliseconds for a job of `count` instances on the devices in use.
    /// `None` if none has a kernel.
    pub(crate) fn forecast(
        &self,
        count: usize,
        forecast: impl Fn(&DeviceInfo, usize) -> Option<f64>,
    ) -> Option<f64> {
        let forecast = |device: &&Device, count| forecast(&device.info, count);
        together(&with_times(self.in_use(), count, forecast))
    }
}

/// Leaves the devices to the parent in a forked child: the driver must not be called there.
impl Drop for Devices {
    fn drop(&mut self) {
        if self.is_left() {
            mem::forget(mem::take(&mut self.devices));
        }
    }
}

/// The devices with a kernel, each with its estimated time for an equal part of `count` instances.
pub(super) fn with_times<D>(
    devices: impl Iterator<Item = D>,
    count: usize,
    forecast: impl Fn(&D, usize) -> Option<f64>,
) -> Vec<(D, f64)> {
    let able: Vec<_> = devices
        .filter(|device| forecast(device, 1).is_some())
        .collect();
    let part = count.div_ceil(able.len().max(1));
    let timed = able.into_iter().filter_map(|device| {
        let time = forecast(&device, part)?;
        Some((device, time))
    });
    timed.collect()
}

/// The time of devices that take these times for equal parts, and share the work by their speed.
fn together<D>(devices: &[(D, f64)]) -> Option<f64> {
    let speed: f64 = devices.iter().map(|(_, time)| 1.0 / time).sum();
    (!devices.is_empty()).then(|| devices.len() as f64 / speed)
}

/// A module, once it is loaded, and its kernels by function, once they are used.
#[derive(Default)]
struct Loaded {
    module: Option<Arc<Module>>,
    kernels: BTreeMap<&'static str, Kernel>,
}

impl Loaded {
    /// The kernel of `entry`, loaded on first use for a device of `multiprocessors`.
    fn kernel(
        &mut self,
        context: &Arc<CudaContext>,
        multiprocessors: u32,
        entry: &'static Entry,
    ) -> Result<Kernel, DriverError> {
        if let Some(kernel) = self.kernels.get(entry.function) {
            return Ok(kernel.clone());
        }
        let module = match &mut self.module {
            Some(module) => module,
            empty => empty.insert(Arc::new(Module::load(context, entry)?)),
        };
        let kernel = Kernel::new(module, multiprocessors, entry)?;
        self.kernels.insert(entry.function, kernel.clone());
        Ok(kernel)
    }
}

pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    context: Arc<CudaContext>,
    /// The kernels that are loaded, by the file of their module. Each module has a lock of its own:
    /// the driver compiles one for seconds, and meanwhile the others can be used.
    modules: Mutex<BTreeMap<&'static str, Arc<Mutex<Loaded>>>>,
    /// The number of calls under way.
    under_way: AtomicUsize,
    slots: Pool<Slot>,
    /// The error that made the device unusable.
    lost: OnceLock<String>,
    timing: Mutex<Timing>,
}

impl Device {
    pub(crate) fn open(info: &DeviceInfo) -> Result<Self, Error> {
        let open = || {
            let context = CudaContext::new(info.ordinal())?;
            let slots: Result<Vec<_>, _> = (0..SLOTS).map(|_| Slot::new(&context)).collect();
            Ok((context, Pool::new(slots?, Slot::words)))
        };
        let (context, slots) = open().map_err(|error: DriverError| Error::Cuda {
            device: info.ordinal(),
            fault: fault_of(error),
        })?;
        Ok(Self {
            info: info.clone(),
            context,
            modules: Mutex::default(),
            under_way: AtomicUsize::new(0),
            slots,
            lost: OnceLock::new(),
            timing: Mutex::default(),
        })
    }

    /// A kernel, compiled on first use.
    pub(crate) fn kernel(&self, entry: &'static Entry) -> Result<Kernel, Error> {
        self.check_lost()?;
        let loaded = lock(&self.modules).entry(entry.module).or_default().clone();
        let multiprocessors = self.info.multiprocessors();
        let kernel = lock(&loaded).kernel(&self.context, multiprocessors, entry);
        kernel.map_err(|error| self.fault(error))
    }

    /// Begins a call.
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            device: self,
            calls: self.under_way.fetch_add(1, Relaxed) + 1,
        }
    }

    /// The words on the device, which are copied there if this is their first use.
    pub(crate) fn resident(&self, words: &Resident) -> Result<Arc<DeviceWords>, Error> {
        let copy = words.on(&self.context);
        copy.map_err(|error| self.fault(error))
    }

    /// Counts a chunk and the time of its kernels.
    pub(super) fn add_timing(&self, kernel: Duration) {
        let mut timing = lock(&self.timing);
        timing.kernel = timing.kernel.saturating_add(kernel);
        timing.chunks = timing.chunks.saturating_add(1);
    }

    /// The cost of all chunks since the last call of this function.
    pub(crate) fn take_timing(&self) -> Timing {
        mem::take(&mut *lock(&self.timing))
    }

    /// The driver's name for the error that made this device unusable.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    pub(super) fn check_lost(&self) -> Result<(), Error> {
        match self.lost.get() {
            None => Ok(()),
            Some(name) => Err(self.error(DeviceFault::Lost { name: name.clone() })),
        }
    }

    /// Classifies an error by asking the device, which shows whether it still answers.
    pub(crate) fn fault(&self, error: DriverError) -> Error {
        let fault = match self.context.synchronize() {
            Ok(()) => fault_of(error),
            Err(_) => DeviceFault::Lost {
                name: self.lost.get_or_init(|| name_of(error)).clone(),
            },
        };
        self.error(fault)
    }

    fn error(&self, fault: DeviceFault) -> Error {
        Error::Cuda {
            device: self.info.ordinal(),
            fault,
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

/// A call under way on a device.
pub(crate) struct Call<'a> {
    pub(crate) device: &'a Device,
    /// The number of calls under way on the device when this one began, including this one.
    pub(crate) calls: usize,
}

impl Call<'_> {
    /// Takes `count` slots, at most [`SLOTS_OF_CALL`]. Waits for earlier calls.
    pub(super) fn slots(&self, count: usize) -> SlotsInUse<'_> {
        SlotsInUse {
            device: self.device,
            slots: self.device.slots.acquire(count.min(SLOTS_OF_CALL)),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.device.under_way.fetch_sub(1, Relaxed);
    }
}

/// Slots in use by a call. They are clean afterwards, also after an error or a panic.
pub(super) struct SlotsInUse<'a> {
    device: &'a Device,
    pub(super) slots: Vec<Slot>,
}

impl SlotsInUse<'_> {
    /// Frees the buffers of these slots and of all free slots.
    pub(super) fn release(&mut self) {
        self.slots.iter_mut().for_each(Slot::abandon);
        self.slots.iter_mut().for_each(Slot::release);
        self.device.slots.each_free(Slot::release);
    }
}

impl Drop for SlotsInUse<'_> {
    fn drop(&mut self) {
        let mut slots = mem::take(&mut self.slots);
        slots.iter_mut().for_each(Slot::abandon);
        self.device.slots.release(slots);
    }
}

/// A pool of slots, each free or leased to a call.
struct Pool<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    count: usize,
    size: fn(&S) -> usize,
}

struct State<S> {
    /// Free slots, sorted by size. The largest ones, at the end, are leased first. The others then
    /// need no buffers, or small ones, until that many calls are under way, and calls seldom have
    /// to wait for larger buffers.
    free: Vec<S>,
    /// The number of calls that have arrived. `served` counts those that got their slots, in FIFO
    /// order; otherwise a large call would starve while small ones arrive.
    arrived: u64,
    served: u64,
}

impl<S> Pool<S> {
    /// Makes a pool. `size` orders the slots; calls may change the size of theirs.
    fn new(slots: Vec<S>, size: fn(&S) -> usize) -> Self {
        Self {
            size,
            count: slots.len(),
            state: Mutex::new(State {
                free: slots,
                arrived: 0,
                served: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes `count` slots, clamped to at least one and at most all. Waits in FIFO order.
    fn acquire(&self, count: usize) -> Vec<S> {
        let count = count.clamp(1, self.count);
        let mut state = lock(&self.state);
        let turn = state.arrived;
        state.arrived += 1;
        while state.served != turn || state.free.len() < count {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        let left = state.free.len() - count;
        let slots = state.free.split_off(left);
        // The next call may also find enough slots.
        self.changed.notify_all();
        slots
    }

    /// Returns slots.
    fn release(&self, slots: Vec<S>) {
        let mut state = lock(&self.state);
        state.free.extend(slots);
        state.free.sort_by_key(self.size);
        drop(state);
        self.changed.notify_all();
    }

    /// Calls `f` for each free slot.
    fn each_free(&self, f: impl FnMut(&mut S)) {
        lock(&self.state).free.iter_mut().for_each(f);
    }
}

#[cfg(test)]
mod tests;
