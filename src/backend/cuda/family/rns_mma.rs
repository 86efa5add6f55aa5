//! The arithmetic of [`Rns`] on the tensor cores of chips since sm_80: `kernels/rns_mma`,
//! `docs/rns.md`.

use batch_modexp_core::window::Window;

use super::Family;
use super::rns::Rns;
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{CompressedPtx, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;

/// The RNS family for chips since sm_80. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct RnsMma;

/// The first chips with `mma.sync` for bytes.
const MIN_COMPUTE_CAPABILITY: (i32, i32) = (8, 0);

impl Family for RnsMma {
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        device.compute_capability() >= MIN_COMPUTE_CAPABILITY
            && entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Always `false`: chips on which no other family is fast have not been measured. Callers can
    /// name the device.
    fn is_fast_on(&self, _: &DeviceInfo) -> bool {
        false
    }

    /// The time of [`Rns`], scaled by the chip's rate of byte products where that is the
    /// bottleneck.
    fn milliseconds(
        &self,
        entry: &Entry,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64 {
        slowdown(device) * Rns.milliseconds(entry, device, count, exponent_bits)
    }

    fn best_window(&self, exponent_bits: u32) -> Window {
        Rns.best_window(exponent_bits)
    }

    fn fewest_entries(&self) -> usize {
        Rns.fewest_entries()
    }

    fn is_refused(&self, power: &[u64]) -> bool {
        Rns.is_refused(power)
    }
}

/// The clocks that a multiprocessor should take, relative to an H200. Predicted from NVIDIA's
/// published rates for bytes, not measured.
fn slowdown(device: &DeviceInfo) -> f64 {
    match device.compute_capability() {
        // 2,048 multiply-adds for each clock: no slowdown, because loading the matrices takes as
        // long.
        (8, 0) | (9, _) | (10, _) => 1.0,
        // 1,024 multiply-adds for each clock.
        _ => 2.0,
    }
}

const FAMILY: &dyn Family = &RnsMma;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/rns_mma/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/rns_mma.rs"));

#[cfg(test)]
mod tests;
