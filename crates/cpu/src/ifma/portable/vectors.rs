//! Vectors by their numbers.
//!
//! The kernels are unrolled, for all sizes of blocks. With vectors of eight words in place of their numbers, a quarter of what
//! the compiler did for all unit tests was to copy them.

use core::cell::RefCell;

use alloc::vec;
use alloc::vec::Vec;

use crate::ifma::madd52::MAX_LANES;

std::thread_local! {
    /// All vectors that the kernels under way have made; first a zero.
    static VECTORS: RefCell<Vec<[u64; MAX_LANES]>> = RefCell::new(vec![[0; MAX_LANES]]);
}

/// A vector of this thread. Lanes beyond those of the unit count for nothing.
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

/// Each lane by its number.
pub(crate) fn make(f: impl Fn(usize) -> u64) -> Handle {
    change(Handle::ZERO, |i, _| f(i))
}

/// Each lane by its number and its value.
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

/// Runs a kernel, and then forgets the vectors that it made.
pub(crate) fn within(kernel: impl FnOnce()) {
    let count = || VECTORS.with_borrow(Vec::len);
    let before = count();
    kernel();
    VECTORS.with_borrow_mut(|vectors| vectors.truncate(before));
}
