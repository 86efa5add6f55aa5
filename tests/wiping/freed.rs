//! An allocator that looks into every block that is freed.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;
use std::sync::{Mutex, MutexGuard, RwLock};

use super::needles::Needle;

/// The system's allocator, with a look at what it gets back.
pub struct Watching;

static ARMED: AtomicBool = AtomicBool::new(false);
static NEEDLES: RwLock<Vec<Needle>> = RwLock::new(Vec::new());
/// One flag for each needle; there are never more.
static FOUND: [AtomicBool; 32] = [const { AtomicBool::new(false) }; 32];
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Freed blocks with needles in them that nobody has got since.
static STALE: Mutex<[Option<Stale>; 64]> = Mutex::new([None; 64]);

#[derive(Clone, Copy)]
struct Stale {
    address: usize,
    len: usize,
    name: &'static str,
}

// SAFETY: every call goes to the system's allocator with the arguments unchanged. A freed block is only
// read before that, and reading it allocates nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed, so that looking at a block whose owner wrote only a part of it reads no uninitialised
        // memory, nor what the block held before.
        // SAFETY: as required of the caller.
        let block = unsafe { System.alloc_zeroed(layout) };
        if ARMED.load(Ordering::SeqCst) {
            forget_stale(block.addr(), layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::SeqCst) {
            // SAFETY: the caller frees a block of this layout, which is its own until the call below, and
            // which `alloc` initialised.
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
                let stale = Stale {
                    address: block.as_ptr().addr(),
                    len: block.len(),
                    name: needle.name,
                };
                let mut blocks = STALE.lock().unwrap();
                // A full table is one that cannot pass.
                let free = blocks.iter().position(Option::is_none).unwrap_or(0);
                blocks[free] = Some(stale);
            }
        }
    }
}

/// The memory has been given out again, and overwritten.
fn forget_stale(address: usize, len: usize) {
    for block in STALE.lock().unwrap().iter_mut() {
        let inside = |stale: &mut Stale| {
            address <= stale.address && stale.address + stale.len <= address + len
        };
        block.take_if(inside);
    }
}

/// Whether `needle` lies anywhere in `block`, at a multiple of eight bytes.
pub fn contains(block: &[u8], needle: &[u8; 16]) -> bool {
    block
        .chunks_exact(8)
        .zip(block.chunks_exact(8).skip(1))
        .any(|(low, high)| low == &needle[..8] && high == &needle[8..])
}

/// The right to look. Whoever prepares secrets holds it, so that no other test frees its own copies of the
/// same secrets meanwhile.
pub struct Watch(#[expect(dead_code, reason = "held, not used")] MutexGuard<'static, ()>);

impl Watch {
    /// Waits until no other test holds it.
    pub fn begin() -> Self {
        Self(
            ONE_AT_A_TIME
                .lock()
                .unwrap_or_else(|error| error.into_inner()),
        )
    }

    /// Runs `action` and returns the names of the needles that were in blocks freed meanwhile.
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

    /// The same, but a block counts only if nobody has got its memory again, and so overwritten it, until `action`
    /// has ended.
    pub fn left_in_freed_blocks(
        &self,
        needles: &[Needle],
        action: impl FnOnce(),
    ) -> Vec<&'static str> {
        *STALE.lock().unwrap() = [None; 64];
        self.found_in_freed_blocks(needles, action);
        let blocks = *STALE.lock().unwrap();
        blocks.iter().flatten().map(|stale| stale.name).collect()
    }
}
