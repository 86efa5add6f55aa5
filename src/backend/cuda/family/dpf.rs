//! Modular exponentiation in double-precision floating point (DPF): `kernels/dpf`, `docs/dpf.md`.

#[cfg(feature = "rsa")]
mod crt;

use batch_modexp_core::window::Window;

use super::{Family, ModExpChunk, ModExpWork, modexp};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{Grid, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::ptx::CompressedPtx;

/// The DPF family. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct Dpf;

/// The approximate cost of reading one entry of the window table, in multiplications. It grows with
/// the table. This value gives the fastest windows of `benches/cuda-h200.csv`.
const SCAN_COST: f64 = 0.018;

/// The clock of the H200 in the measurements, in kHz.
const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;

/// [`DeviceInfo::single_to_double`] of the H200, and of all chips for data centers.
const REFERENCE_SINGLE_TO_DOUBLE: f64 = 2.0;

impl Family for Dpf {
    /// Any supported chip that allows a block the shared memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Chips for data centers have half as many double-precision units as single-precision ones.
    /// Others have 1/32 or fewer.
    fn is_fast_on(&self, device: &DeviceInfo) -> bool {
        device.single_to_double() <= 4
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
        let Some(times) = entry.times else {
            unreachable!("kernels that exponentiate have times");
        };
        let per_multiprocessor = count.div_ceil(device.multiprocessors().max(1) as usize);
        let blocks = per_multiprocessor.div_ceil(entry.image.instances_per_block);
        let on_reference = times.alone_ms.max(blocks as f64 * times.shared_ms);
        let clock = f64::from(device.clock_khz().max(1)) / REFERENCE_CLOCK_KHZ;
        let units = REFERENCE_SINGLE_TO_DOUBLE / f64::from(device.single_to_double().max(1));
        let squarings = f64::from(exponent_bits.max(1)) / f64::from(entry.bits);
        on_reference * squarings / (clock * units)
    }

    /// The window with the fewest multiplications, including the cost of table look-ups.
    fn best_window(&self, exponent_bits: u32) -> Window {
        let cost = |window: &Window| {
            let digits = window.digit_count(exponent_bits) as f64;
            let table = window.table_len() as f64;
            let squarings = digits * f64::from(window.bits());
            squarings + digits * (1.0 + table * SCAN_COST) + table
        };
        let windows = (Window::MIN_BITS..=Window::MAX_BITS).filter_map(Window::new);
        windows
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or_else(|| unreachable!("there are windows"))
    }

    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork {
        modexp::launch(entry, grid, chunk)
    }

    #[cfg(feature = "rsa")]
    fn crt(&self) -> Option<&dyn super::crt::CrtFamily> {
        Some(self)
    }
}

const FAMILY: &dyn Family = &Dpf;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/dpf/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/dpf.rs"));

#[cfg(test)]
mod tests;
