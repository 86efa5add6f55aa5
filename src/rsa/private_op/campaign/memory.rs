//! Faults in memory that the types of Rust do not let anybody write: by the file of the process's own memory.

use alloc::vec::Vec;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use crypto_bigint::{Limb, Word};

/// Sets a number where it lies. Whoever reads it afterwards must get its address anew.
pub(super) fn overwrite(number: &[Limb], value: &[Limb]) {
    assert_eq!(number.len(), value.len());
    overwrite_at(number.as_ptr().addr(), value);
}

/// The same at an address.
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
