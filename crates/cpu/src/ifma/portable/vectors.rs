//! Vectors by number.
//!
//! The kernels are unrolled, for all tile sizes. With vectors of eight words in place of their
//! numbers, the compiler would spend a quarter of the work for all unit tests on copying them.

use core::cell::RefCell;

use alloc::vec;
use alloc::vec::Vec;

use crate::ifma::madd52::MAX_LANES;

std::thread_local! {
    /// All vectors that the running kernels have made; the first is zero.
    static VECTORS: RefCell<Vec<[u64; MAX_LANES]>> = RefCell::new(vec![[0; MAX_LANES]]);
}

/// The number of a vector of this thread. Lanes beyond those of the unit are ignored.
#[derive(Clone, Copy)]
pub(crate) struct Handle(u32);

impl Handle {
    /// Zero in every lane.
    pub(super) const ZERO: Self = Self(0);

    /// The value of each lane.
    pub(crate) fn lanes(self) -> [u64; MAX_LANES] {
        VECTORS.with_borrow(|vectors| vectors[self.0 as usize])
    }
}

/// Makes a vector from the number of each lane.
pub(crate) fn make(f: impl Fn(usize) -> u64) -> Handle {
    change(Handle::ZERO, |i, _| f(i))
}

/// Makes a vector from the number and the value of each lane.
pub(crate) fn change(vector: Handle, f: impl Fn(usize, u64) -> u64) -> Handle {
    VECTORS.with_borrow_mut(|vectors| {
        let mut lanes = vectors[vector.0 as usize];
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = f(i, *lane);
        }
        vectors.push(lanes);
        Handle(vectors.len() as u32 - 1)
    })
}

/// Runs a kernel, then frees the vectors that it made.
pub(crate) fn within(kernel: impl FnOnce()) {
    let count = || VECTORS.with_borrow(Vec::len);
    let before = count();
    kernel();
    VECTORS.with_borrow_mut(|vectors| vectors.truncate(before));
}
