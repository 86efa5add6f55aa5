//! Modular exponentiation in 32-bit integers: `kernels/int`, `docs/int.md`.

use batch_modexp_core::window::Window;

use super::{Family, ModExpChunk, ModExpWork, modexp};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{Grid, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::ptx::CompressedPtx;

/// The family with 32-bit integers. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct Int;

/// The clock of the H200 in the measurements, in kHz.
const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;

/// The cost of reading one entry of the window table, in multiplications.
const SCAN_COST: f64 = 0.018;

/// The widest window that hides the look-up behind squarings.
///
/// With a wider one, the squarings before a look-up end before its reads do. For numbers in one
/// lane, those of up to 2048 bits, that happens with 5 bits already.
fn widest_window(exponent_bits: u32) -> u32 {
    if exponent_bits <= 2048 { 4 } else { 5 }
}

impl Family for Int {
    /// Any supported chip that allows a block the shared memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Always `false`: chips on which no other family is fast have not been measured. Callers can
    /// name the device.
    fn is_fast_on(&self, _: &DeviceInfo) -> bool {
        false
    }

    /// The time for the rounds of blocks on a multiprocessor, scaled from an H200 by the clock.
    ///
    /// All chips since sm_70 multiply equally many 32-bit integers for each clock and
    /// multiprocessor (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
    /// Where only one block fits at a time, each takes as long as alone.
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
        let resident = device.shared_bytes_per_block() / entry.image.shared_bytes.max(1);
        let each_ms = match resident {
            0 | 1 => times.alone_ms,
            _ => times.shared_ms,
        };
        let on_reference = times.alone_ms.max(blocks as f64 * each_ms);
        let clock = f64::from(device.clock_khz().max(1)) / REFERENCE_CLOCK_KHZ;
        let squarings = f64::from(exponent_bits.max(1)) / f64::from(entry.bits);
        on_reference * squarings / clock
    }

    /// The window with the fewest multiplications, including the cost of table look-ups.
    fn best_window(&self, exponent_bits: u32) -> Window {
        let cost = |window: &Window| {
            let digits = window.digit_count(exponent_bits) as f64;
            let table = window.table_len() as f64;
            let squarings = digits * f64::from(window.bits());
            squarings + digits * (1.0 + table * SCAN_COST) + table
        };
        let widest = widest_window(exponent_bits);
        let windows = (Window::MIN_BITS..=widest).filter_map(Window::new);
        windows
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or_else(|| unreachable!("there are windows"))
    }

    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork {
        modexp::launch(entry, grid, chunk)
    }
}

const FAMILY: &dyn Family = &Int;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/int/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/int.rs"));

#[cfg(test)]
mod tests;
