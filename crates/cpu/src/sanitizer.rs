//! The control of `.ci/run asan` and `.ci/run miri`: an error that AddressSanitizer and Miri must
//! find, in the same kind of code as that in which they must find nothing.

use alloc::vec;
use core::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128};
use core::hint::black_box;

/// Reads a vector that begins inside a buffer and ends beyond it.
#[test]
#[ignore = "out of bounds; `.ci/run asan` and `miri` run it under what ends it"]
#[allow(unsafe_code)]
fn reads_out_of_bounds() {
    let buffer = black_box(vec![7u64; 3]);
    let mut read = [0u64; 2];
    // SAFETY: none, on purpose. Of the 16 octets that are read, 8 are beyond the buffer, still
    // within the memory that the allocator keeps for it. The write is in bounds.
    unsafe {
        let vector = _mm_loadu_si128(buffer.as_ptr().add(2).cast());
        _mm_storeu_si128(read.as_mut_ptr().cast(), vector);
    }
    black_box(read);
}
