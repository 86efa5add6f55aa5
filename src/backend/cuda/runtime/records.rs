//! Records that stay on a device: tables of them, and the handles of their owners.
#![allow(unsafe_code)]

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem;
use std::process;
use std::sync::{Mutex, PoisonError, RwLock};

use batch_modexp_core::Error;
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, DriverError, result};
use zeroize::Zeroize;

use super::buffers::{DeviceWords, PinnedWords, settle};
use super::lock;
use super::probe::fault_of;

/// The lock of a device's calls. A call holds it for reading; those who must wait for all calls
/// take it for writing. It is separate from the device, because owners of records outlive devices.
pub(super) type Calls = Arc<RwLock<()>>;

/// The identity of a table on a device.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct RecordKind {
    /// The family whose kernels read the records.
    pub(crate) family: &'static str,
    /// The width of the class in bits.
    pub(crate) bits: u32,
    /// The length of a record in 64-bit words.
    pub(crate) words: usize,
}

impl RecordKind {
    /// The address of a record in a table.
    fn address(self, table: &DeviceWords, index: u32) -> CUdeviceptr {
        let offset = index as usize * self.words * size_of::<u64>();
        table.address() + offset as CUdeviceptr
    }
}

/// The length of a new table, in words, unless one record is longer. Longer tables are freed when
/// the last record is released.
const FIRST_WORDS: usize = 1 << 15;

/// The records of one kind on one device.
pub(crate) struct RecordTable {
    /// The device's number.
    ordinal: usize,
    /// Read-locked by every call that may use records.
    calls: Calls,
    /// The process that has the device: see [`Devices`](super::pipeline::Devices).
    process: u32,
    kind: RecordKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` once the table is closed: owners of records must not keep the context alive.
    context: Option<Arc<CudaContext>>,
    records: Option<Arc<DeviceWords>>,
    /// Shorter tables from which the records have moved, while calls still use them.
    before: Vec<Weak<DeviceWords>>,
    /// Pinned memory, through which records are copied to the device.
    staging: Option<PinnedWords>,
    free: Vec<u32>,
}

/// The records of one owner, on any number of devices.
///
/// The owner of a secret that devices keep holds a residence beside it. Dropping it wipes the
/// records on the devices.
#[derive(Default)]
pub(crate) struct Residence {
    records: Mutex<Vec<ResidentRecord>>,
    /// Held while records are evicted: another eviction must not end before they are wiped.
    evicting: Mutex<()>,
}

/// A record in a table.
struct ResidentRecord {
    table: Arc<RecordTable>,
    index: u32,
    /// Whether the owner has given it up. Calls do not use it.
    is_evicted: bool,
    is_wiped: bool,
}

impl ResidentRecord {
    /// Wipes the record as soon as no call that may use it is under way. In a forked child this is
    /// an error.
    fn evict(&mut self) -> Result<(), Error> {
        self.is_evicted = true;
        if self.table.is_left() {
            return Err(Error::Forked);
        }
        let no_call = self.table.calls.write();
        let _no_call = no_call.unwrap_or_else(PoisonError::into_inner);
        let wiped = self.table.release(self.index);
        self.is_wiped = wiped.is_ok();
        wiped.map_err(|error| Error::Cuda {
            device: self.table.ordinal,
            fault: fault_of(error),
        })
    }
}

/// Wipes the record. Calls under way do not use it, because they would borrow the owner.
impl Drop for ResidentRecord {
    fn drop(&mut self) {
        if !self.is_wiped {
            // If the device is lost, its contents are too.
            let _ = self.table.release(self.index);
        }
    }
}

/// A table of a device, in use by a call there.
pub(crate) struct TableInUse<'a> {
    pub(super) table: Arc<RecordTable>,
    pub(super) call: PhantomData<&'a ()>,
}

impl TableInUse<'_> {
    /// The index of the owner's record in this table. If there is none, a record is added, and
    /// `write` writes all its words.
    pub(crate) fn index_of(
        &self,
        owner: &Residence,
        write: impl FnOnce(&mut [u64]),
    ) -> Result<u32, DriverError> {
        let mut records = lock(&owner.records);
        let is_here = |record: &&ResidentRecord| {
            Arc::ptr_eq(&record.table, &self.table) && !record.is_evicted
        };
        if let Some(record) = records.iter().find(is_here) {
            return Ok(record.index);
        }
        // Drop the records in tables of backends that are gone.
        records.retain(|record| lock(&record.table.state).context.is_some());
        let index = self.table.add(write)?;
        records.push(ResidentRecord {
            table: self.table.clone(),
            index,
            is_evicted: false,
            is_wiped: false,
        });
        Ok(index)
    }

    /// The records with all indices returned so far, for launches.
    pub(crate) fn hold(&self) -> HeldRecords {
        HeldRecords {
            kind: self.table.kind,
            records: lock(&self.table.state).records.clone(),
        }
    }
}

/// Records that stay at their addresses while this is held, even if the table moves to grow.
#[derive(Clone)]
pub(crate) struct HeldRecords {
    pub(crate) kind: RecordKind,
    records: Option<Arc<DeviceWords>>,
}

impl HeldRecords {
    /// The number of records that fit. Every index is below it.
    pub(super) fn len(&self) -> usize {
        self.records.as_ref().map_or(0, |records| records.len()) / self.kind.words
    }

    /// The address of a record on the device.
    pub(super) fn address_of(&self, index: u32) -> CUdeviceptr {
        let records = self.records.as_ref();
        records.map_or(0, |records| self.kind.address(records, index))
    }
}

impl Residence {
    /// Wipes the owner's records on all devices, after the calls under way there. A later call
    /// copies them again.
    ///
    /// All records are tried. The error is the first failure to wipe. Such a record is not used
    /// again, and the next eviction tries to wipe it.
    pub(crate) fn evict(&self) -> Result<(), Error> {
        let _evicting = lock(&self.evicting);
        // Take the records out first: a call under way holds the lock of its device, and then waits
        // for this one.
        let mut records = mem::take(&mut *lock(&self.records));
        let mut failed = None;
        records.retain_mut(|record| match record.evict() {
            Ok(()) => false,
            Err(error) => {
                failed.get_or_insert(error);
                true
            }
        });
        lock(&self.records).append(&mut records);
        failed.map_or(Ok(()), Err)
    }
}

impl RecordTable {
    pub(super) fn new(context: &Arc<CudaContext>, calls: &Calls, kind: RecordKind) -> Self {
        Self {
            ordinal: context.ordinal(),
            calls: calls.clone(),
            process: process::id(),
            kind,
            state: Mutex::new(State {
                context: Some(context.clone()),
                ..State::default()
            }),
        }
    }

    /// Whether this is a forked child.
    fn is_left(&self) -> bool {
        self.process != process::id()
    }

    /// Wipes all records, frees the memory and releases the context.
    pub(super) fn close(&self) {
        *lock(&self.state) = State::default();
    }

    fn add(&self, write: impl FnOnce(&mut [u64])) -> Result<u32, DriverError> {
        let mut state = lock(&self.state);
        let context = state.context.clone();
        let context = context.expect("a call keeps its device, which closes the table");
        if state.free.is_empty() {
            self.grow(&mut state, &context)?;
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
        context.bind_to_thread()?;
        let copy = |record: &[u64]| {
            // SAFETY: the record is within the table and no owner has it.
            unsafe { result::memcpy_htod_sync(self.kind.address(records, index), record)? };
            settle(&context)
        };
        let wipe = || {
            self.clear(records, index)?;
            settle(&context)
        };
        send(staging.as_mut_slice(), free, write, copy, wipe)
    }

    /// Moves the records to a table of twice the size. Launches may still read the old table, so it
    /// stays while their calls hold it, and is wiped then.
    fn grow(&self, state: &mut State, context: &Arc<CudaContext>) -> Result<(), DriverError> {
        let held = state.records.as_ref().map_or(0, |records| records.len()) / self.kind.words;
        let more = (2 * held).max((FIRST_WORDS / self.kind.words).clamp(1, 64));
        let larger = DeviceWords::zeroed(context, more * self.kind.words)?;
        if state.staging.is_none() {
            state.staging = Some(PinnedWords::zeroed(context, self.kind.words)?);
        }
        if let Some(records) = &state.records {
            let bytes = records.len() * size_of::<u64>();
            // SAFETY: both tables are owned and at least that long.
            unsafe { result::memcpy_dtod_sync(larger.address(), records.address(), bytes)? };
            settle(context)?;
            state.before.retain(|records| records.strong_count() > 0);
            state.before.push(Arc::downgrade(records));
        }
        state.records = Some(Arc::new(larger));
        state.free.extend((held as u32..more as u32).rev());
        Ok(())
    }

    /// Wipes a record, in all tables, that no call under way uses. If that fails, its place is not
    /// used again.
    fn release(&self, index: u32) -> Result<(), DriverError> {
        if self.is_left() {
            // The device belongs to the parent, which still has the record.
            return Ok(());
        }
        let mut state = lock(&self.state);
        let (Some(context), Some(records)) = (&state.context, &state.records) else {
            return Ok(());
        };
        let before = state.before.iter().filter_map(Weak::upgrade);
        let words = self.kind.words;
        let has_it = |table: &Arc<DeviceWords>| (index as usize + 1) * words <= table.len();
        context.bind_to_thread()?;
        for table in before.filter(has_it).chain([records.clone()]) {
            // No launch uses the record: its owner is dropped, or the device's calls are held back.
            self.clear(&table, index)?;
        }
        settle(context)?;
        let len = records.len();
        state.free.push(index);
        if len > FIRST_WORDS && state.free.len() == len / words {
            // Records of this kind may not be needed again.
            *state = State {
                context: state.context.take(),
                ..State::default()
            };
        }
        Ok(())
    }

    /// Queues the overwriting of a record with 0; [`settle`] waits for it. The context must be
    /// bound.
    ///
    /// # Panics
    ///
    /// If the table has no such record.
    fn clear(&self, table: &DeviceWords, index: u32) -> Result<(), DriverError> {
        let words = self.kind.words;
        assert!(
            (index as usize + 1) * words <= table.len(),
            "no such record"
        );
        // SAFETY: the record is within the table, which is owned.
        unsafe {
            result::memset_d8_sync(self.kind.address(table, index), 0, words * size_of::<u64>())
        }
    }
}

/// Has `write` write a record, copies it to the last free place, and returns its index. `staging`
/// is wiped in any case.
///
/// If copying fails, the device may still have the record. If it cannot be wiped, its place is not
/// used again.
fn send<E>(
    staging: &mut [u64],
    free: &mut Vec<u32>,
    write: impl FnOnce(&mut [u64]),
    copy: impl FnOnce(&[u64]) -> Result<(), E>,
    wipe: impl FnOnce() -> Result<(), E>,
) -> Result<u32, E> {
    let staged = Staged(staging);
    write(staged.0);
    let index = free.pop().expect("the table has just grown");
    let copied = copy(staged.0);
    drop(staged);
    match copied {
        Ok(()) => Ok(index),
        Err(error) => {
            if wipe().is_ok() {
                free.push(index);
            }
            Err(error)
        }
    }
}

/// Words that are wiped on drop.
struct Staged<'a>(&'a mut [u64]);

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests;
