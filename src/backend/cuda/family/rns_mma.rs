//! The arithmetic of [`Rns`] by the tensor cores of chips from sm_80 on: `kernels/rns_mma`, `docs/rns.md`.

use batch_modexp_core::window::Window;

use super::rns::Rns;
use super::{Family, ModExpChunk, ModExpWork};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{Grid, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::ptx::CompressedPtx;

/// The family; its kernels' parameters are in `kernels/README.md`.
#[derive(Debug)]
pub(crate) struct RnsMma;

/// The first chips with `mma.sync` of bytes.
const MIN_COMPUTE_CAPABILITY: (i32, i32) = (8, 0);

impl Family for RnsMma {
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        device.compute_capability() >= MIN_COMPUTE_CAPABILITY
            && entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Nobody has measured chips on which no other family is fast; whoever has one asks for it.
    fn is_fast_on(&self, _: &DeviceInfo) -> bool {
        false
    }

    /// As for [`Rns`], and by the products that a multiprocessor does in a clock, where those are what takes longest.
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

    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork {
        Rns.mod_exp(entry, grid, chunk)
    }

    fn is_refused(&self, power: &[u64]) -> bool {
        Rns.is_refused(power)
    }
}

/// How much more clocks than on an H200 a multiprocessor should take: predicted from the rates that NVIDIA publishes for
/// bytes, not measured.
fn slowdown(device: &DeviceInfo) -> f64 {
    match device.compute_capability() {
        // 2,048 multiply-adds a clock: the loads of the matrices take as long.
        (8, 0) | (9, _) | (10, _) => 1.0,
        // 1,024: twice as long.
        _ => 2.0,
    }
}

const FAMILY: &dyn Family = &RnsMma;

// The kernels' table and the name of their folder, which the build script makes from `kernels/rns_mma/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/rns_mma.rs"));

#[cfg(test)]
mod tests;
