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
use super::device::InUse;
use super::process::Process;

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
}

impl Drop for ResidentRecord {
    fn drop(&mut self) {
        self.table.release(self.index);
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
        });
        Ok(index)
    }
}

impl RecordTable {
    pub(super) fn new(context: &Arc<CudaContext>, kind: RecordKind) -> Self {
        Self {
            context: context.clone(),
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

    /// Wipes a record.
    fn release(&self, index: u32) {
        if self.process.is_left() {
            // The device belongs to the parent, who still has the record.
            return;
        }
        let mut state = lock(&self.state);
        let Some(records) = &state.records else {
            return;
        };
        let bytes = self.kind.words * size_of::<u64>();
        let wipe = || {
            self.context.bind_to_thread()?;
            // SAFETY: the record is within the table. A launch that still used it would read zeros; there is
            // none, since every call borrows the owners of the records that it uses.
            unsafe { result::memset_d8_sync(self.address_of(records, index), 0, bytes)? };
            self.context.synchronize()
        };
        // A record that could not be wiped is not given to another owner. If the device is lost, so is what
        // it held.
        let wiped: Result<(), DriverError> = wipe();
        if wiped.is_ok() {
            state.free.push(index);
        }
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
