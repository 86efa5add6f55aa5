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

use super::lock;
use super::module::{Cache, Kernel};
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

pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    context: Arc<CudaContext>,
    loaded: Cache,
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
            loaded: Cache::default(),
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
        let multiprocessors = self.info.multiprocessors();
        let kernel = self.loaded.kernel(&self.context, multiprocessors, entry);
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
mod tests {
    use super::*;
    use core::time::Duration;
    use std::sync::mpsc::channel;
    use std::thread;

    impl Device {
        /// The number of compiled kernels.
        pub(crate) fn compiled(&self) -> usize {
            self.loaded.len()
        }

        /// Marks the device as lost.
        pub(crate) fn inject_loss(&self, name: &str) {
            let _ = self.lost.set(String::from(name));
        }

        /// Whether all buffers of all slots hold zeros only.
        pub(crate) fn is_wiped(&self) -> bool {
            let all = self.slots.acquire(SLOTS);
            let is_wiped = all.iter().all(Slot::is_wiped);
            self.slots.release(all);
            is_wiped
        }
    }

    /// Long enough for a thread to begin waiting. If it is too short, a fault may be missed, but
    /// none is reported falsely.
    const A_WHILE: Duration = Duration::from_millis(100);

    fn pool() -> Pool<usize> {
        Pool::new(Vec::from([1, 2, 3]), |&slot| slot)
    }

    #[test]
    fn the_largest_go_first() {
        let pool = pool();
        let (a, b) = (pool.acquire(1), pool.acquire(1));
        assert_eq!((&a[..], &b[..]), (&[3][..], &[2][..]));
        pool.release(a);
        pool.release(b);
        assert_eq!(pool.acquire(1), [3]);
        // The slot returns with a smaller size.
        pool.release(Vec::from([0]));
        assert_eq!(pool.acquire(2), [1, 2]);
    }

    #[test]
    fn nobody_gets_none_or_waits_for_more_than_there_are() {
        let pool = pool();
        let one = pool.acquire(0);
        assert_eq!(one.len(), 1);
        pool.release(one);
        assert_eq!(pool.acquire(9).len(), 3);
    }

    /// A call that waits for many slots is not overtaken by a smaller one.
    #[test]
    fn calls_are_served_in_the_order_in_which_they_come() {
        let pool = pool();
        let first = pool.acquire(1);
        let (done, order) = channel();
        thread::scope(|scope| {
            for (name, count) in [("all", 3), ("one", 1)] {
                let (pool, done) = (&pool, done.clone());
                scope.spawn(move || {
                    let slots = pool.acquire(count);
                    done.send(name).unwrap();
                    pool.release(slots);
                });
                thread::sleep(A_WHILE);
            }
            assert!(order.try_recv().is_err());
            pool.release(first);
            assert_eq!(order.recv(), Ok("all"));
            assert_eq!(order.recv(), Ok("one"));
        });
        assert_eq!(lock(&pool.state).free.len(), 3);
    }

    #[test]
    fn two_that_fit_are_served_at_once() {
        let pool = pool();
        let first = pool.acquire(3);
        thread::scope(|scope| {
            let both = [1, 2].map(|count| {
                let pool = &pool;
                let handle = scope.spawn(move || pool.acquire(count).len());
                thread::sleep(A_WHILE);
                handle
            });
            // The calls keep what they get: both find enough among the returned slots.
            pool.release(first);
            assert_eq!(both.map(|handle| handle.join().unwrap()), [1, 2]);
        });
    }
}
