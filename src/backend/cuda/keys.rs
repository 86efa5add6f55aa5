//! RSA keys that stay on a device: a table of records, and the places in it that keys hold.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, DriverError, result};
use zeroize::Zeroize;

use super::buffer::{DeviceWords, PinnedWords};

/// The records of keys of one class on one device.
pub(super) struct KeyTable {
    context: Arc<CudaContext>,
    record_words: usize,
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

/// The places that one key holds in the tables of devices. They are wiped when the key is dropped.
#[derive(Default)]
pub(crate) struct KeyPlaces(Mutex<Vec<Place>>);

struct Place {
    table: Arc<KeyTable>,
    number: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.release(self.number);
    }
}

impl KeyPlaces {
    /// The number of the key's record in `table`, which gets one if it has none yet; then `fill` writes it.
    ///
    /// No launch that uses the table may be under way, since the table may move.
    pub(super) fn number_in(
        &self,
        table: &Arc<KeyTable>,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<u32, DriverError> {
        let mut places = lock(&self.0);
        if let Some(place) = places.iter().find(|place| Arc::ptr_eq(&place.table, table)) {
            return Ok(place.number);
        }
        // Tables of backends that are gone.
        places.retain(|place| !lock(&place.table.state).closed);
        let number = table.add(fill)?;
        places.push(Place {
            table: table.clone(),
            number,
        });
        Ok(number)
    }
}

impl KeyTable {
    pub(super) fn new(context: &Arc<CudaContext>, record_words: usize) -> Self {
        Self {
            context: context.clone(),
            record_words,
            state: Mutex::default(),
        }
    }

    /// Where the records are on the device. Stays so until the next key is added.
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

    fn add(&self, fill: impl FnOnce(&mut [u64])) -> Result<u32, DriverError> {
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
        let (Some(records), Some(staging), Some(&number)) = (records, staging, free.last()) else {
            unreachable!("the table has just grown");
        };
        self.context.bind_to_thread()?;
        let record = staging.as_mut_slice();
        fill(record);
        let place = self.place(records, number);
        // SAFETY: the record's place is within the table and free; the copy is over when it returns.
        let copied = unsafe { result::memcpy_htod_sync(place, record) };
        let copied = copied.and_then(|()| self.context.synchronize());
        record.zeroize();
        copied?;
        free.pop();
        Ok(number)
    }

    /// Moves the records to a table of twice the size.
    fn grow(&self, state: &mut State) -> Result<(), DriverError> {
        const FEWEST: usize = 64;
        let held = state.records.as_ref().map_or(0, DeviceWords::len) / self.record_words;
        let more = (2 * held).max(FEWEST);
        let larger = DeviceWords::zeroed(&self.context, more * self.record_words)?;
        if state.staging.is_none() {
            state.staging = Some(PinnedWords::zeroed(&self.context, self.record_words)?);
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
    fn release(&self, number: u32) {
        let mut state = lock(&self.state);
        let Some(records) = &state.records else {
            return;
        };
        let bytes = self.record_words * size_of::<u64>();
        let wipe = || {
            self.context.bind_to_thread()?;
            // SAFETY: the record's place is within the table, and no call uses it, since every call
            // borrows the keys that it uses.
            unsafe { result::memset_d8_sync(self.place(records, number), 0, bytes)? };
            self.context.synchronize()
        };
        // A place that could not be wiped is not given to another key. If the device is lost, so is what
        // it held.
        let wiped: Result<(), DriverError> = wipe();
        if wiped.is_ok() {
            state.free.push(number);
        }
    }

    fn place(&self, records: &DeviceWords, number: u32) -> CUdeviceptr {
        let offset = number as usize * self.record_words * size_of::<u64>();
        records.address() + offset as CUdeviceptr
    }
}

/// Nothing here is left half done by a panic but a record that no key holds.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::Cuda;
    use super::*;

    #[test]
    fn records_move_and_are_wiped() {
        let Some(found) = crate::need::available("cuda", Cuda::probe()) else {
            return;
        };
        let context = CudaContext::new(found[0].ordinal()).unwrap();
        let table = Arc::new(KeyTable::new(&context, 11));
        let read = || lock(&table.state).records.as_ref().unwrap().read();
        let keys: Vec<_> = (0..100).map(|_| KeyPlaces::default()).collect();
        for (i, key) in (1..).zip(&keys) {
            let number = key.number_in(&table, |record| record.fill(i)).unwrap();
            assert_eq!(
                key.number_in(&table, |_| panic!("it is there")).unwrap(),
                number
            );
        }
        for (i, key) in (1..).zip(&keys) {
            let number = key.number_in(&table, |_| panic!("it is there")).unwrap() as usize;
            assert_eq!(read()[number * 11..][..11], [i; 11]);
        }
        drop(keys);
        assert!(read().iter().all(|&word| word == 0));
        assert!(
            lock(&table.state)
                .staging
                .as_ref()
                .unwrap()
                .as_slice()
                .iter()
                .all(|&w| w == 0)
        );
    }

    /// A key may outlive the backend and be used with the next one.
    #[test]
    fn closed_tables_are_forgotten() {
        let Some(found) = crate::need::available("cuda", Cuda::probe()) else {
            return;
        };
        let context = CudaContext::new(found[0].ordinal()).unwrap();
        let key = KeyPlaces::default();
        for _ in 0..3 {
            let table = Arc::new(KeyTable::new(&context, 11));
            key.number_in(&table, |record| record.fill(1)).unwrap();
            assert_eq!(lock(&key.0).len(), 1);
            table.close();
            assert_eq!(table.address(), 0);
        }
    }
}
