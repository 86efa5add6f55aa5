//! One device: its kernels, its slots, its records, and what it has shown of itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLockReadGuard};

use batch_modexp_core::{DeviceFault, Error};
use cudarc::driver::{CudaContext, DriverError};

use super::costs::Costs;
use super::driver::SecondDriver;
use super::error::{fault_of, name_of};
use super::module::{Cache, Image, Kernel, KernelKey, Module};
use super::pool::{Lent, Pool};
use super::probe::DeviceInfo;
use super::records::{Calls, RecordKind, RecordTable, TableInUse};
use super::shares::Worker;
use super::slot::Slot;

/// Slots that a call has at most: four, two for each of the threads that drive the device, so that one of its chunks waits on the
/// device while another is computed.
pub(super) const SLOTS_OF_CALL: usize = 4;

/// All of them: four large calls are under way at a time, or sixteen of one chunk each, so that the host's part of one call
/// passes while the device computes others. An H200 and its host have five to seven calls of two or three thousand signatures under way at nine
/// tenths of what they can do, and more at times (docs/performance-gpu.md, "At a steady rate").
const SLOTS: usize = 16;

pub(crate) struct Device {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    loaded: Mutex<Cache<Arc<Module>, Arc<Kernel>>>,
    calls: Calls,
    /// How many there are.
    under_way: AtomicUsize,
    slots: Pool<Slot>,
    second_driver: SecondDriver,
    records: Mutex<BTreeMap<RecordKind, Arc<RecordTable>>>,
    /// How much faster a kernel was than foretold, in the last large share that it computed.
    paces: Mutex<BTreeMap<KernelKey, f64>>,
    /// The error after which nothing works any more.
    lost: OnceLock<String>,
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
            loaded: Mutex::default(),
            calls: Calls::default(),
            under_way: AtomicUsize::new(0),
            slots,
            second_driver: SecondDriver::start(info.ordinal())?,
            records: Mutex::default(),
            paces: Mutex::default(),
            lost: OnceLock::new(),
        })
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The kernel of an image, compiled on first use.
    pub(crate) fn kernel(&self, image: &'static Image) -> Result<Arc<Kernel>, Error> {
        self.check_lost()?;
        let load = |image: &'static Image| Module::load(&self.context, image).map(Arc::new);
        let find = |module: &Arc<Module>, image: &'static Image| {
            Kernel::new(module, self.info.multiprocessors(), image).map(Arc::new)
        };
        let kernel = lock(&self.loaded).kernel(image, load, find);
        kernel.map_err(|error| self.fault(error))
    }

    /// How many kernels were compiled.
    #[cfg(all(test, feature = "rsa"))]
    pub(crate) fn compiled(&self) -> usize {
        lock(&self.loaded).len()
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

    /// How much faster a kernel is than foretold; 1 before it was measured.
    pub(crate) fn pace(&self, key: KernelKey) -> f64 {
        lock(&self.paces).get(&key).copied().unwrap_or(1.0)
    }

    pub(super) fn set_pace(&self, key: KernelKey, pace: f64) {
        lock(&self.paces).insert(key, pace);
    }

    /// Foretells by what was measured from now on; paces were those of other forecasts.
    pub(crate) fn set_costs(&mut self, costs: Arc<Costs>) {
        self.info.set_costs(costs);
        lock(&self.paces).clear();
    }

    /// The driver's name for the error after which nothing works on this device any more.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    pub(super) fn check_lost(&self) -> Result<(), Error> {
        match self.lost.get() {
            None => Ok(()),
            Some(name) => Err(self.error(DeviceFault::Lost { name: name.clone() })),
        }
    }

    /// What an error means for this device: whether it still answers shows when it is asked.
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

    /// Takes the device for lost, which it is not.
    #[cfg(test)]
    pub(crate) fn inject_loss(&self, name: &str) {
        let _ = self.lost.set(String::from(name));
    }

    /// Whether all buffers of all slots hold zeros only.
    #[cfg(test)]
    pub(crate) fn is_wiped(&self) -> bool {
        let all = self.slots.take(SLOTS).slots;
        let is_wiped = all.iter().all(Slot::is_wiped);
        self.slots.give_back(all);
        is_wiped
    }
}

impl Worker for &Device {
    type Error = Error;

    fn check(&self) -> Result<(), Error> {
        self.check_lost()
    }

    fn refused(&self) -> Error {
        Error::ThreadPool { threads: 1 }
    }
}

/// Owners of records may outlive the backend; what it keeps of them does not.
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

/// A call that is under way on a device. Whoever must wait for such calls does so until it is dropped.
pub(crate) struct Call<'a> {
    device: &'a Device,
    calls: usize,
    _under_way: RwLockReadGuard<'a, ()>,
}

impl<'a> Call<'a> {
    pub(crate) fn device(&self) -> &'a Device {
        self.device
    }

    /// How many calls were under way on the device when this one began, itself among them.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// The thread that drives the device beside the calling one.
    pub(super) fn second_driver(&self) -> &'a SecondDriver {
        &self.device.second_driver
    }

    /// The records of one kind that stay on the device.
    #[cfg_attr(not(feature = "rsa"), allow(dead_code))]
    pub(crate) fn table(&self, kind: RecordKind) -> TableInUse<'_> {
        let mut records = lock(&self.device.records);
        let new = || {
            Arc::new(RecordTable::new(
                &self.device.context,
                &self.device.calls,
                kind,
            ))
        };
        let table = records.entry(kind).or_insert_with(new).clone();
        TableInUse::new(table, self)
    }

    /// Slots for this many chunks at a time, and for no more than a call may have. Waits for calls that came before.
    pub(super) fn slots(&self, chunks: usize) -> SlotsInUse<'_> {
        SlotsInUse {
            device: self.device,
            lent: self.device.slots.take(chunks.min(SLOTS_OF_CALL)),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.device.under_way.fetch_sub(1, Relaxed);
    }
}

/// Slots while a call uses them. Whichever way it ends, they are clean afterwards.
pub(super) struct SlotsInUse<'a> {
    device: &'a Device,
    lent: Lent<Slot>,
}

impl SlotsInUse<'_> {
    pub(super) fn slots(&mut self) -> &mut [Slot] {
        &mut self.lent.slots
    }

    /// Whether no other call has had slots of the device meanwhile.
    pub(super) fn is_alone(&self) -> bool {
        self.device.slots.is_alone(&self.lent)
    }

    /// Gives back the buffers of these slots and of those that nobody uses.
    pub(super) fn release(&mut self) {
        self.lent.slots.iter_mut().for_each(Slot::release);
        self.device.slots.each_free(Slot::release);
    }
}

impl Drop for SlotsInUse<'_> {
    fn drop(&mut self) {
        let mut slots = core::mem::take(&mut self.lent.slots);
        slots.iter_mut().for_each(Slot::abandon);
        self.device.slots.give_back(slots);
    }
}

/// A lock whose holder has panicked is as good as any: slots are clean, and kernels are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
