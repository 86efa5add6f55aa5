//! An allocator that searches every freed block, and counts allocations.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;
use std::sync::{Mutex, MutexGuard, RwLock};

use super::needles::Needle;

/// The system's allocator, with a search of blocks before they are freed.
pub struct Watching;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The number of allocations that `action` makes on the calling thread.
pub fn allocations_of(action: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    action();
    ALLOCATIONS.get() - before
}

static ARMED: AtomicBool = AtomicBool::new(false);
static NEEDLES: RwLock<Vec<Needle>> = RwLock::new(Vec::new());
/// One flag for each needle; there are never more.
static FOUND: [AtomicBool; 32] = [const { AtomicBool::new(false) }; 32];
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

// SAFETY: every call goes to the system's allocator with unchanged arguments. A freed block is only
// read before that, and reading allocates nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as required of the caller.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            // Cleared, because the search of a partly written block must not read uninitialised
            // memory, nor the previous content. SAFETY: the block has that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::SeqCst) {
            // SAFETY: the caller frees a block of this layout. It owns the block until the call
            // below, and `alloc` initialised it.
            look_into(unsafe { core::slice::from_raw_parts(block, layout.size()) });
        }
        // SAFETY: as required of the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

fn look_into(block: &[u8]) {
    if let Ok(needles) = NEEDLES.try_read() {
        for (needle, found) in needles.iter().zip(&FOUND) {
            if contains(block, &needle.bytes) {
                found.store(true, Ordering::SeqCst);
            }
        }
    }
}

/// Whether `needle` is in `block`, at a multiple of eight bytes.
pub fn contains(block: &[u8], needle: &[u8; 16]) -> bool {
    block
        .chunks_exact(8)
        .zip(block.chunks_exact(8).skip(1))
        .any(|(low, high)| low == &needle[..8] && high == &needle[8..])
}

/// The lock for the search. A test holds it while it prepares secrets, so that no other test frees
/// copies of the same secrets meanwhile.
pub struct Watch(#[expect(dead_code, reason = "held, not used")] MutexGuard<'static, ()>);

impl Watch {
    /// Waits until no other test holds the lock.
    pub fn begin() -> Self {
        Self(
            ONE_AT_A_TIME
                .lock()
                .unwrap_or_else(|error| error.into_inner()),
        )
    }

    /// Runs `action`, and returns the names of the needles in blocks that were freed meanwhile.
    pub fn found_in_freed_blocks(
        &self,
        needles: &[Needle],
        action: impl FnOnce(),
    ) -> Vec<&'static str> {
        *NEEDLES.write().unwrap() = needles.to_vec();
        FOUND
            .iter()
            .for_each(|found| found.store(false, Ordering::SeqCst));
        ARMED.store(true, Ordering::SeqCst);
        action();
        ARMED.store(false, Ordering::SeqCst);
        let found = needles
            .iter()
            .zip(&FOUND)
            .filter(|(_, found)| found.load(Ordering::SeqCst));
        found.map(|(needle, _)| needle.name).collect()
    }
}
