//! Modular exponentiation in double-precision floating point (DPF): `kernels/dpf`, `docs/dpf.md`.

use super::{BlockTimes, CompressedPtx, DeviceInfo, Entry, Family, KernelKey, Operation};

/// The DPF family. `kernels/README.md` lists the parameters of its kernels.
pub(crate) struct Dpf;

impl Family for Dpf {
    /// By the number of double-precision units. The H200, like all chips for data centers, has half
    /// as many as for single precision.
    fn slowdown(&self, device: &DeviceInfo) -> f64 {
        f64::from(device.single_to_double().max(1)) / 2.0
    }
}

const FAMILY: &dyn Family = &Dpf;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/dpf/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/dpf.rs"));

#[cfg(test)]
mod tests;
