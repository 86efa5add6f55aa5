//! Modular exponentiation in double-precision floating point (DPF): `kernels/dpf`, `docs/dpf.md`.

use batch_modexp_core::window::Window;

use super::{Family, cheapest_window, cost_in_words, relative_clock};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{CompressedPtx, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;

/// The DPF family. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct Dpf;

/// [`DeviceInfo::single_to_double`] of the H200, and of all chips for data centers.
const REFERENCE_SINGLE_TO_DOUBLE: f64 = 2.0;

impl Family for Dpf {
    /// Any supported chip that allows a block the shared memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// The time for the rounds of blocks on a multiprocessor, scaled from an H200 by the clock and
    /// the number of double-precision units.
    fn milliseconds(
        &self,
        entry: &Entry,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64 {
        let (times, blocks) = (entry.block_times(), entry.blocks_each(device, count));
        let on_reference = times.alone_ms.max(blocks * times.shared_ms);
        let units = REFERENCE_SINGLE_TO_DOUBLE / f64::from(device.single_to_double().max(1));
        let squarings = f64::from(exponent_bits.max(1)) / f64::from(entry.bits);
        on_reference * squarings / (relative_clock(device) * units)
    }

    /// The window with the fewest multiplications, including the cost of table look-ups.
    fn best_window(&self, exponent_bits: u32) -> Window {
        cheapest_window(Window::MAX_BITS, |window| {
            cost_in_words(window, exponent_bits)
        })
    }
}

const FAMILY: &dyn Family = &Dpf;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/dpf/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/dpf.rs"));

#[cfg(test)]
mod tests;
