//! A device: its kernels, slots and records, and the pool that distributes its slots to calls.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, RwLockReadGuard};

use batch_modexp_core::{DeviceFault, Error};
use cudarc::driver::{CudaContext, DriverError};

use super::launch::{Kernel, Module};
use super::lock;
use super::probe::{DeviceInfo, fault_of, name_of};
use super::records::{Calls, RecordKind, RecordTable, TableInUse};
use super::slot::Slot;
use crate::backend::cuda::family::Entry;

/// The maximum number of slots of a call: two for each of the two threads that drive the device.
/// One chunk of a thread waits on the device while another is computed.
pub(super) const SLOTS_OF_CALL: usize = 4;

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
    calls: Calls,
    /// The number of calls under way.
    under_way: AtomicUsize,
    slots: Pool<Slot>,
    records: Mutex<BTreeMap<RecordKind, Arc<RecordTable>>>,
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
            calls: Calls::default(),
            under_way: AtomicUsize::new(0),
            slots,
            records: Mutex::default(),
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
        let under_way = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        Call {
            device: self,
            calls: self.under_way.fetch_add(1, Relaxed) + 1,
            _under_way: under_way,
        }
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

/// Closes the tables of records, because owners of records may outlive the backend.
impl Drop for Device {
    fn drop(&mut self) {
        lock(&self.records).values().for_each(|table| table.close());
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

/// A call under way on a device. Those who must wait for all calls wait until it is dropped.
pub(crate) struct Call<'a> {
    pub(crate) device: &'a Device,
    /// The number of calls under way on the device when this one began, including this one.
    pub(crate) calls: usize,
    _under_way: RwLockReadGuard<'a, ()>,
}

impl<'a> Call<'a> {
    /// The records of one kind that stay on the device.
    pub(crate) fn table(&self, kind: RecordKind) -> TableInUse<'_> {
        let Device { context, calls, .. } = self.device;
        let mut records = lock(&self.device.records);
        let new = || Arc::new(RecordTable::new(context, calls, kind));
        TableInUse {
            table: records.entry(kind).or_insert_with(new).clone(),
            call: PhantomData,
        }
    }

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
