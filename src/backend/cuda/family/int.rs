//! Modular exponentiation in 32-bit integers: `kernels/int`, `docs/int.md`.

use super::{BlockTimes, CompressedPtx, DeviceInfo, Entry, Family, KernelKey, Operation};

/// The family with 32-bit integers. `kernels/README.md` lists the parameters of its kernels.
pub(crate) struct Int;

/// All chips since sm_70 multiply equally many 32-bit integers for each clock and multiprocessor
/// (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
impl Family for Int {
    /// Where only one block fits at a time, each takes as long as alone.
    fn shared_ns(&self, entry: &Entry, device: &DeviceInfo) -> u64 {
        match device.shared_bytes_per_block / entry.shared_bytes.max(1) {
            0 | 1 => entry.times.alone_ns,
            _ => entry.times.shared_ns,
        }
    }

    /// The widest window that hides the look-up behind squarings.
    ///
    /// With a wider one, the squarings before a look-up end before its reads do. For numbers in one
    /// lane, those of up to 2048 bits, that happens with 5 bits already.
    fn widest_window(&self, exponent_bits: u32) -> u32 {
        if exponent_bits <= 2048 { 4 } else { 5 }
    }
}

const FAMILY: &dyn Family = &Int;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/int/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/int.rs"));

#[cfg(test)]
mod tests;
