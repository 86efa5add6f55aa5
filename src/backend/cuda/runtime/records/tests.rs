//! Tests of adding, moving and removing records on a device. Most of them need a GPU.

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::thread;

use super::super::device::Device;
use super::super::probe;
use super::*;

const KIND: RecordKind = RecordKind {
    family: "test",
    bits: 704,
    words: 11,
};

impl HeldRecords {
    /// A table without records.
    pub(crate) fn none(kind: RecordKind) -> Self {
        Self {
            kind,
            records: None,
        }
    }
}

/// The first device, or a message about why there is none.
fn device() -> Option<Device> {
    let found = crate::need::available("cuda", probe::devices());
    found.map(|found| Device::open(&found[0]).unwrap())
}

#[test]
fn records_move_and_are_wiped() {
    let Some(device) = device() else { return };
    let call = device.call();
    let table = call.table(KIND);
    let state = || lock(&table.table.state);
    let read = || state().records.as_ref().unwrap().read();
    let owners: Vec<_> = (0..100).map(|_| Residence::default()).collect();
    for (i, owner) in (1..).zip(&owners) {
        let index = table.index_of(owner, |record| record.fill(i));
        let again = table.index_of(owner, |_| panic!("it is there"));
        assert_eq!(index, again);
        assert!((index.unwrap() as usize) < table.hold().len());
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

/// Evicting wipes the record and frees its place; the next use copies it again. For an owner
/// without records it does nothing.
#[test]
fn evicted_records_are_wiped_at_once() {
    let Some(device) = device() else { return };
    let [owner, other] = [(); 2].map(|()| Residence::default());
    owner.evict().unwrap();
    for _ in 0..2 {
        let call = device.call();
        let table = call.table(KIND);
        let index = table.index_of(&owner, |record| record.fill(1)).unwrap();
        let kept = table.index_of(&other, |record| record.fill(2)).unwrap();
        assert_ne!(index, kept);
        let table = table.table.clone();
        drop(call);
        owner.evict().unwrap();
        let state = lock(&table.state);
        let words = state.records.as_ref().unwrap().read();
        assert!(words[index as usize * 11..][..11].iter().all(|&w| w == 0));
        assert_eq!(words[kept as usize * 11..][..11], [2; 11]);
        assert!(state.free.contains(&index) && lock(&owner.records).is_empty());
    }
}

/// A call that has looked up the record keeps it until it ends.
#[test]
fn eviction_waits_for_calls_under_way() {
    let Some(device) = device() else { return };
    let owner = Residence::default();
    let call = device.call();
    let table = call.table(KIND);
    let index = table.index_of(&owner, |record| record.fill(1)).unwrap();
    let record = || {
        let state = lock(&table.table.state);
        state.records.as_ref().unwrap().read()[index as usize * 11..][..11].to_vec()
    };
    thread::scope(|scope| {
        let eviction = scope.spawn(|| owner.evict());
        thread::sleep(Duration::from_millis(200));
        assert!(!eviction.is_finished());
        assert_eq!(record(), [1; 11]);
        let table = table.table.clone();
        drop(call);
        eviction.join().unwrap().unwrap();
        let state = lock(&table.state);
        let words = state.records.as_ref().unwrap().read();
        assert!(words.iter().all(|&word| word == 0));
    });
}

/// A table moves while a call uses it. The call keeps the old table, including later wipes, for as
/// long as it lasts.
#[test]
fn tables_move_beside_calls() {
    let Some(device) = device() else { return };
    let first = device.call();
    let held_by_first = first.table(KIND);
    let [gone, kept] = [(); 2].map(|()| Residence::default());
    let [gone_at, kept_at] = [&gone, &kept].map(|owner| {
        let index = held_by_first.index_of(owner, |record| record.fill(1));
        index.unwrap() as usize
    });
    let before = held_by_first.hold();
    let second = device.call();
    let table = second.table(KIND);
    let others: Vec<_> = (0..100).map(|_| Residence::default()).collect();
    for owner in &others {
        table.index_of(owner, |record| record.fill(2)).unwrap();
    }
    let after = table.hold();
    assert!(before.len() < after.len() && before.address_of(0) != after.address_of(0));
    let record = |held: &HeldRecords, index: usize| {
        held.records.as_ref().unwrap().read()[index * 11..][..11].to_vec()
    };
    for held in [&before, &after] {
        assert_eq!(record(held, gone_at), [1; 11]);
    }
    drop(gone);
    for held in [&before, &after] {
        assert_eq!(record(held, gone_at), [0; 11]);
        assert_eq!(record(held, kept_at), [1; 11]);
    }
    let moved = Arc::downgrade(before.records.as_ref().unwrap());
    drop(before);
    assert!(moved.upgrade().is_none());
}

/// An owner may outlive the backend, and be used with the next one.
#[test]
fn closed_tables_are_forgotten() {
    let owner = Residence::default();
    for _ in 0..3 {
        let Some(device) = device() else { return };
        let call = device.call();
        let table = call.table(KIND);
        table.index_of(&owner, |record| record.fill(1)).unwrap();
        let table = table.table.clone();
        let context = lock(&table.state).context.as_ref().map(Arc::downgrade);
        drop(call);
        assert_eq!(lock(&owner.records).len(), 1);
        drop(device);
        assert!(lock(&table.state).records.is_none());
        assert!(context.unwrap().upgrade().is_none());
    }
}

/// A long table is freed with its last record, and made again for the next one.
#[test]
fn long_tables_are_freed() {
    let Some(device) = device() else { return };
    let call = device.call();
    let table = call.table(RecordKind {
        words: FIRST_WORDS + 1,
        ..KIND
    });
    for _ in 0..2 {
        let owners = [(); 3].map(|()| Residence::default());
        for owner in &owners {
            table.index_of(owner, |record| record.fill(1)).unwrap();
        }
        let held = table.hold();
        drop(owners);
        let words = held.records.as_ref().unwrap().read();
        assert!(words.iter().all(|&word| word == 0));
        let state = lock(&table.table.state);
        assert!(state.records.is_none() && state.staging.is_none() && state.free.is_empty());
    }
}

/// An owner with a record in a table without a device.
fn owner_of(table: RecordTable) -> Residence {
    let owner = Residence::default();
    lock(&owner.records).push(ResidentRecord {
        table: Arc::new(table),
        index: 0,
        is_evicted: false,
        is_wiped: false,
    });
    owner
}

/// A table as its device leaves it.
fn closed(calls: &Calls, process: u32) -> RecordTable {
    RecordTable {
        ordinal: 0,
        calls: calls.clone(),
        process,
        kind: KIND,
        state: Mutex::default(),
    }
}

/// A record that could not be wiped is not forgotten: the next eviction does not succeed either.
#[test]
fn failed_evictions_fail_again() {
    let calls = Calls::default();
    let owner = owner_of(closed(&calls, process::id() + 1));
    for _ in 0..2 {
        assert_eq!(owner.evict(), Err(Error::Forked));
        assert!(lock(&owner.records)[0].is_evicted);
    }
}

/// An eviction does not end while another one waits for calls.
#[test]
fn evictions_wait_for_each_other() {
    let calls = Calls::default();
    let owner = owner_of(closed(&calls, process::id()));
    let ended = AtomicUsize::new(0);
    let under_way = calls.read().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                owner.evict().unwrap();
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        thread::sleep(Duration::from_millis(100));
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        drop(under_way);
    });
    assert_eq!(ended.into_inner(), 2);
    assert!(lock(&owner.records).is_empty());
}

/// Sends a record to an imaginary device; `copied` and `wiped` are the driver's answers. Returns
/// the result of `send`, whether the place was wiped, and the free places.
fn send_with(
    copied: Result<(), &'static str>,
    wiped: Result<(), &'static str>,
) -> (Result<u32, &'static str>, bool, Vec<u32>) {
    let (mut staging, mut free, mut is_wiped) = ([0; 3], Vec::from([5, 9]), false);
    let copy = |record: &[u64]| {
        assert_eq!(record, [7; 3]);
        copied
    };
    let wipe = || {
        is_wiped = true;
        wiped
    };
    let sent = send(&mut staging, &mut free, |record| record.fill(7), copy, wipe);
    assert_eq!(staging, [0; 3]);
    (sent, is_wiped, free)
}

#[test]
fn a_record_that_was_not_sent_is_wiped_or_its_place_given_up() {
    let failed = Err("copy");
    assert_eq!(send_with(Ok(()), Ok(())), (Ok(9), false, Vec::from([5])));
    assert_eq!(
        send_with(failed, Ok(())),
        (Err("copy"), true, Vec::from([5, 9]))
    );
    assert_eq!(
        send_with(failed, Err("wipe")),
        (Err("copy"), true, Vec::from([5]))
    );
}

#[test]
fn a_panic_leaves_nothing_of_a_record_on_the_host() {
    let (mut staging, mut free) = ([0; 3], Vec::from([5]));
    let write = |record: &mut [u64]| {
        record.fill(7);
        panic!("a panic by intention");
    };
    let nothing = || Ok::<(), ()>(());
    let sent = catch_unwind(AssertUnwindSafe(|| {
        send(&mut staging, &mut free, write, |_| nothing(), nothing)
    }));
    assert!(sent.is_err());
    assert_eq!((staging, free), ([0; 3], Vec::from([5])));
}

/// The same on a device: the pinned buffer is wiped, and the next owner gets the place.
#[test]
fn a_panic_leaves_nothing_of_a_record_in_pinned_memory() {
    let Some(device) = device() else { return };
    let call = device.call();
    let table = call.table(KIND);
    let owner = Residence::default();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        table.index_of(&owner, |record| {
            record.fill(7);
            panic!("a panic by intention");
        })
    }));
    assert!(unwound.is_err());
    {
        let state = lock(&table.table.state);
        let staging = state.staging.as_ref().unwrap().as_slice();
        assert!(staging.iter().all(|&word| word == 0));
        let words = state.records.as_ref().unwrap().read();
        assert!(words.iter().all(|&word| word == 0));
    }
    table.index_of(&owner, |record| record.fill(1)).unwrap();
}
