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

/// What no block that was given out since has covered of one.
#[derive(Clone, Copy)]
struct Stale {
    begin: usize,
    end: usize,
    name: &'static str,
}

/// What an allocator can keep between two blocks that follow one another: the rest of the first up to a multiple of
/// its unit, and its own word.
const BETWEEN: usize = 16;

// SAFETY: every call goes to the system's allocator with the arguments unchanged. A freed block is only
// read before that, and reading it allocates nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as required of the caller.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            // So that looking at a block whose owner wrote only a part of it reads no uninitialised memory, nor
            // what the block held before. Not by `alloc_zeroed`, which takes memory from elsewhere than `alloc`
            // in some allocators: glibc before 2.41 never gives out blocks of a thread's cache there.
            // SAFETY: the block has that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
            given_out(block, layout);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as required of the caller.
        let block = unsafe { System.alloc_zeroed(layout) };
        given_out(block, layout);
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
                let begin = block.as_ptr().addr();
                let stale = Stale {
                    begin,
                    end: begin + block.len(),
                    name: needle.name,
                };
                remember(&mut *STALE.lock().unwrap(), stale);
            }
        }
    }
}

/// A full table is one that cannot pass.
fn remember(blocks: &mut [Option<Stale>], stale: Stale) {
    let free = blocks.iter().position(Option::is_none).unwrap_or(0);
    blocks[free] = Some(stale);
}

/// The memory of `block` has a new owner, and has been overwritten.
fn given_out(block: *mut u8, layout: Layout) {
    if !ARMED.load(Ordering::SeqCst) {
        return;
    }
    let (begin, end) = (block.addr(), block.addr() + layout.size());
    let mut blocks = STALE.lock().unwrap();
    for i in 0..blocks.len() {
        let overlaps = |stale: &mut Stale| begin < stale.end && stale.begin < end;
        if let Some(stale) = blocks[i].take_if(overlaps) {
            let before = (stale.begin, begin.min(stale.end));
            let behind = (end.max(stale.begin), stale.end);
            for (begin, end) in [before, behind] {
                if end.saturating_sub(begin) > BETWEEN {
                    remember(
                        &mut *blocks,
                        Stale {
                            begin,
                            end,
                            ..stale
                        },
                    );
                }
            }
        }
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

    /// The same, but a block counts only as far as nobody has got its memory again, and so overwritten it, until
    /// `action` has ended.
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
