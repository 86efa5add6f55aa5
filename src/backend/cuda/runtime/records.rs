//! Records that stay on a device: tables of them, and the handles through which their owners hold them.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, DriverError, result};
use zeroize::Zeroize;

use super::buffer::{DeviceWords, PinnedWords};
use super::device::{Calls, InUse};
use super::process::Process;
use crate::Error;

/// What tells one table of a device from the others.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct RecordKind {
    /// The family whose kernels read the records.
    pub(crate) family: &'static str,
    /// The width of the class in bits.
    pub(crate) bits: u32,
    /// The length of a record in 64-bit words.
    pub(crate) words: usize,
}

/// The records of one kind on one device.
pub(crate) struct RecordTable {
    context: Arc<CudaContext>,
    /// Held by every call that may use records.
    calls: Calls,
    process: Process,
    kind: RecordKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: Option<DeviceWords>,
    /// Through which records go to the device.
    staging: Option<PinnedWords>,
    free: Vec<u32>,
    closed: bool,
}

/// Where the records of one owner lie, on any number of devices; at first on none.
///
/// Whoever owns a secret that devices keep has one of these beside it. When it is dropped the records are
/// wiped on the devices.
#[derive(Default)]
pub(crate) struct Residence(Mutex<Vec<ResidentRecord>>);

/// A record in a table.
struct ResidentRecord {
    table: Arc<RecordTable>,
    index: u32,
    is_wiped: bool,
}

impl ResidentRecord {
    /// Wipes the record as soon as no call is under way that may use it. In a forked child it is an error.
    fn evict(mut self) -> Result<(), Error> {
        if self.table.process.is_left() {
            return Err(Error::Forked);
        }
        let _no_call = lock(&self.table.calls);
        let wiped = self.table.release(self.index);
        self.is_wiped = wiped.is_ok();
        wiped.map_err(|error| Error::Cuda {
            device: self.table.context.ordinal(),
            fault: error.into(),
        })
    }
}

/// No call is under way that uses the record: it would borrow the owner.
impl Drop for ResidentRecord {
    fn drop(&mut self) {
        if !self.is_wiped {
            // If the device is lost, so is what it held.
            let _ = self.table.release(self.index);
        }
    }
}

/// A table of a device whose slots are held. Every launch goes through the slots, so none is under way, and the
/// table may move to grow.
pub(crate) struct HeldTable<'a> {
    table: Arc<RecordTable>,
    _slots: PhantomData<&'a InUse<'a>>,
}

impl<'a> HeldTable<'a> {
    /// The table of one kind on the device that `slots` belong to.
    pub(super) fn new(table: Arc<RecordTable>, _slots: &'a InUse<'_>) -> Self {
        Self {
            table,
            _slots: PhantomData,
        }
    }

    /// The index of the record that `owner` has in this table. If it has none yet, it gets one, and `write`
    /// writes all its words.
    pub(crate) fn index_of(
        &self,
        owner: &Residence,
        write: impl FnOnce(&mut [u64]),
    ) -> Result<u32, DriverError> {
        owner.index_in(&self.table, write)
    }

    /// The table, for launches.
    pub(crate) fn into_table(self) -> Arc<RecordTable> {
        self.table
    }
}

impl Residence {
    /// Wipes the owner's records on all devices now, after the calls that are under way there. A call that comes
    /// later brings them back.
    ///
    /// All are tried; the error is that of the first that could not be wiped. Such a record is given to nobody else.
    #[cfg_attr(not(feature = "sign"), allow(dead_code))]
    pub(crate) fn evict(&self) -> Result<(), Error> {
        // Taken out first: a call under way holds its device, and then waits for this lock.
        let records = core::mem::take(&mut *lock(&self.0));
        let evicted = records.into_iter().map(ResidentRecord::evict);
        evicted.fold(Ok(()), Result::and)
    }

    fn index_in(
        &self,
        table: &Arc<RecordTable>,
        write: impl FnOnce(&mut [u64]),
    ) -> Result<u32, DriverError> {
        let mut records = lock(&self.0);
        if let Some(record) = records
            .iter()
            .find(|record| Arc::ptr_eq(&record.table, table))
        {
            return Ok(record.index);
        }
        // Tables of backends that are gone.
        records.retain(|record| !lock(&record.table.state).closed);
        let index = table.add(write)?;
        records.push(ResidentRecord {
            table: table.clone(),
            index,
            is_wiped: false,
        });
        Ok(index)
    }
}

impl RecordTable {
    pub(super) fn new(context: &Arc<CudaContext>, calls: &Calls, kind: RecordKind) -> Self {
        Self {
            context: context.clone(),
            calls: calls.clone(),
            process: Process::current(),
            kind,
            state: Mutex::default(),
        }
    }

    pub(super) fn kind(&self) -> RecordKind {
        self.kind
    }

    /// The number of records that there is room for: every index is below it.
    pub(super) fn len(&self) -> usize {
        let state = lock(&self.state);
        state.records.as_ref().map_or(0, DeviceWords::len) / self.kind.words
    }

    /// Where the records are on the device. Stays so until the next record is added.
    pub(super) fn address(&self) -> CUdeviceptr {
        lock(&self.state)
            .records
            .as_ref()
            .map_or(0, DeviceWords::address)
    }

    /// Wipes all records and gives the memory back.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        *state = State {
            closed: true,
            ..State::default()
        };
    }

    fn add(&self, write: impl FnOnce(&mut [u64])) -> Result<u32, DriverError> {
        let mut state = lock(&self.state);
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        let State {
            records,
            staging,
            free,
            ..
        } = &mut *state;
        let (Some(records), Some(staging), Some(&index)) = (records, staging, free.last()) else {
            unreachable!("the table has just grown");
        };
        self.context.bind_to_thread()?;
        let record = staging.as_mut_slice();
        write(record);
        let address = self.address_of(records, index);
        // SAFETY: the record is within the table and free; the copy is over when it returns.
        let copied = unsafe { result::memcpy_htod_sync(address, record) };
        let copied = copied.and_then(|()| self.context.synchronize());
        record.zeroize();
        copied?;
        free.pop();
        Ok(index)
    }

    /// Moves the records to a table of twice the size.
    fn grow(&self, state: &mut State) -> Result<(), DriverError> {
        const FEWEST: usize = 64;
        let held = state.records.as_ref().map_or(0, DeviceWords::len) / self.kind.words;
        let more = (2 * held).max(FEWEST);
        let larger = DeviceWords::zeroed(&self.context, more * self.kind.words)?;
        if state.staging.is_none() {
            state.staging = Some(PinnedWords::zeroed(&self.context, self.kind.words)?);
        }
        if let Some(records) = &state.records {
            let bytes = records.len() * size_of::<u64>();
            // SAFETY: both tables are owned and at least that long.
            unsafe { result::memcpy_dtod_sync(larger.address(), records.address(), bytes)? };
            self.context.synchronize()?;
        }
        state.records = Some(larger);
        state.free.extend((held as u32..more as u32).rev());
        Ok(())
    }

    /// Wipes a record that no call under way uses. One that could not be wiped is not given to another owner.
    fn release(&self, index: u32) -> Result<(), DriverError> {
        if self.process.is_left() {
            // The device belongs to the parent, who still has the record.
            return Ok(());
        }
        let mut state = lock(&self.state);
        let Some(records) = &state.records else {
            return Ok(());
        };
        let bytes = self.kind.words * size_of::<u64>();
        self.context.bind_to_thread()?;
        // SAFETY: the record is within the table. A launch that still used it would read zeros; there is none,
        // since its owner is dropped or the device's calls are held back.
        unsafe { result::memset_d8_sync(self.address_of(records, index), 0, bytes)? };
        self.context.synchronize()?;
        state.free.push(index);
        Ok(())
    }

    fn address_of(&self, records: &DeviceWords, index: u32) -> CUdeviceptr {
        let offset = index as usize * self.kind.words * size_of::<u64>();
        records.address() + offset as CUdeviceptr
    }
}

/// Nothing here is left half done by a panic but a record that no owner holds.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::device::Device;
    use super::super::probe;
    use super::*;

    const KIND: RecordKind = RecordKind {
        family: "test",
        bits: 704,
        words: 11,
    };

    /// The first device, or a word about why there is none.
    fn device() -> Option<Device> {
        let found = crate::need::available("cuda", probe::devices());
        found.map(|found| Device::open(&found[0]).unwrap())
    }

    #[test]
    fn records_move_and_are_wiped() {
        let Some(device) = device() else { return };
        let slots = device.slots();
        let table = slots.table(KIND);
        let state = || lock(&table.table.state);
        let read = || state().records.as_ref().unwrap().read();
        let owners: Vec<_> = (0..100).map(|_| Residence::default()).collect();
        for (i, owner) in (1..).zip(&owners) {
            let index = table.index_of(owner, |record| record.fill(i));
            let again = table.index_of(owner, |_| panic!("it is there"));
            assert_eq!(index, again);
            assert!((index.unwrap() as usize) < table.table.len());
        }
        for (i, owner) in (1..).zip(&owners) {
            let index = table.index_of(owner, |_| panic!("it is there"));
            assert_eq!(read()[index.unwrap() as usize * 11..][..11], [i; 11]);
        }
        drop(owners);
        assert!(read().iter().all(|&word| word == 0));
        let state = state();
        let staging = state.staging.as_ref().unwrap().as_slice();
        assert!(staging.iter().all(|&word| word == 0));
    }

    /// The record is wiped and free again, and comes back with the next use; an owner without records has
    /// nothing to do.
    #[test]
    fn evicted_records_are_wiped_at_once() {
        let Some(device) = device() else { return };
        let [owner, other] = [(); 2].map(|()| Residence::default());
        owner.evict().unwrap();
        for _ in 0..2 {
            let slots = device.slots();
            let table = slots.table(KIND);
            let index = table.index_of(&owner, |record| record.fill(1)).unwrap();
            let kept = table.index_of(&other, |record| record.fill(2)).unwrap();
            assert_ne!(index, kept);
            let table = table.into_table();
            drop(slots);
            owner.evict().unwrap();
            let state = lock(&table.state);
            let words = state.records.as_ref().unwrap().read();
            assert!(words[index as usize * 11..][..11].iter().all(|&w| w == 0));
            assert_eq!(words[kept as usize * 11..][..11], [2; 11]);
            assert!(state.free.contains(&index) && lock(&owner.0).is_empty());
        }
    }

    /// A call that has looked up the record keeps it until it ends.
    #[test]
    fn eviction_waits_for_calls_under_way() {
        let Some(device) = device() else { return };
        let owner = Residence::default();
        let slots = device.slots();
        let table = slots.table(KIND);
        let index = table.index_of(&owner, |record| record.fill(1)).unwrap();
        let record = || {
            let state = lock(&table.table.state);
            state.records.as_ref().unwrap().read()[index as usize * 11..][..11].to_vec()
        };
        std::thread::scope(|scope| {
            let eviction = scope.spawn(|| owner.evict());
            std::thread::sleep(core::time::Duration::from_millis(200));
            assert!(!eviction.is_finished());
            assert_eq!(record(), [1; 11]);
            let table = table.table.clone();
            drop(slots);
            eviction.join().unwrap().unwrap();
            let state = lock(&table.state);
            let words = state.records.as_ref().unwrap().read();
            assert!(words.iter().all(|&word| word == 0));
        });
    }

    /// An owner may outlive the backend and be used with the next one.
    #[test]
    fn closed_tables_are_forgotten() {
        let owner = Residence::default();
        for _ in 0..3 {
            let Some(device) = device() else { return };
            let slots = device.slots();
            let table = slots.table(KIND);
            table.index_of(&owner, |record| record.fill(1)).unwrap();
            let table = table.into_table();
            drop(slots);
            assert_eq!(lock(&owner.0).len(), 1);
            drop(device);
            assert_eq!((table.address(), table.len()), (0, 0));
        }
    }
}
