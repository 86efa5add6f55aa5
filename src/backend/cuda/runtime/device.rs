//! One device: its kernels, its slots, its records, and what it has shown of itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::{CudaContext, DriverError};

use super::costs::Costs;
use super::error::{DeviceFault, name_of};
use super::module::{Cache, Image, Kernel, KernelKey, Module};
use super::probe::DeviceInfo;
use super::records::{HeldTable, RecordKind, RecordTable};
use super::shares::Worker;
use super::slot::Slot;
use crate::Error;

/// Four, two for each of the threads that drive the device: so one of its chunks waits on the device while another is
/// computed.
pub(super) const SLOTS: usize = 4;

/// Locked while a call uses a device. Its own lock, because owners of records outlive devices.
pub(super) type Calls = Arc<Mutex<()>>;

pub(crate) struct Device {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    loaded: Mutex<Cache<Arc<Module>, Arc<Kernel>>>,
    calls: Calls,
    slots: Mutex<[Slot; SLOTS]>,
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
            let slot = |kernels| Slot::new(&context, kernels);
            let (first, second) = (context.new_stream()?, context.new_stream()?);
            let slots: [Slot; SLOTS] =
                [slot(&first)?, slot(&first)?, slot(&second)?, slot(&second)?];
            let slots = Mutex::new(slots);
            Ok((context, slots))
        };
        let (context, slots) = open().map_err(|error: DriverError| Error::Cuda {
            device: info.ordinal(),
            fault: error.into(),
        })?;
        Ok(Self {
            info: info.clone(),
            context,
            loaded: Mutex::default(),
            calls: Calls::default(),
            slots,
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
    #[cfg(all(test, feature = "sign"))]
    pub(crate) fn compiled(&self) -> usize {
        lock(&self.loaded).len()
    }

    /// The slots, for one call at a time.
    pub(crate) fn slots(&self) -> InUse<'_> {
        let call = lock(&self.calls);
        InUse {
            device: self,
            slots: lock(&self.slots),
            _call: call,
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
            Ok(()) => error.into(),
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
        lock(&self.slots).iter().all(Slot::is_wiped)
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

/// The slots while a call uses them. Whichever way the call ends, they are clean afterwards.
pub(crate) struct InUse<'a> {
    device: &'a Device,
    slots: MutexGuard<'a, [Slot; SLOTS]>,
    /// Given back last, when the slots are clean.
    _call: MutexGuard<'a, ()>,
}

impl InUse<'_> {
    /// The device that they belong to.
    pub(crate) fn device(&self) -> &Device {
        self.device
    }

    /// The records of one kind that stay on the device.
    #[cfg_attr(not(feature = "sign"), allow(dead_code))]
    pub(crate) fn table(&self, kind: RecordKind) -> HeldTable<'_> {
        let mut records = lock(&self.device.records);
        let new = || {
            Arc::new(RecordTable::new(
                &self.device.context,
                &self.device.calls,
                kind,
            ))
        };
        let table = records.entry(kind).or_insert_with(new).clone();
        HeldTable::new(table, self)
    }

    pub(super) fn slots(&mut self) -> &mut [Slot; SLOTS] {
        &mut self.slots
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.slots.iter_mut().for_each(Slot::abandon);
    }
}

/// A lock whose holder has panicked is as good as any: slots are clean, and kernels are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
