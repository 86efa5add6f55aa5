//! Faults in memory that Rust's types protect, written through `/proc/self/mem`.

use alloc::vec::Vec;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use crypto_bigint::{Limb, Word};

/// Overwrites a number in memory. Later reads must go through a newly obtained pointer.
pub(super) fn overwrite(number: &[Limb], value: &[Limb]) {
    assert_eq!(number.len(), value.len());
    overwrite_at(number.as_ptr().addr(), value);
}

/// Overwrites a number at an address.
pub(super) fn overwrite_at(address: usize, value: &[Limb]) {
    let octets: Vec<u8> = value
        .iter()
        .flat_map(|limb| Word::to_ne_bytes(limb.0))
        .collect();
    let memory = OpenOptions::new().write(true).open("/proc/self/mem");
    memory
        .unwrap()
        .write_all_at(&octets, address as u64)
        .unwrap();
}
