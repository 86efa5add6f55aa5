//! Modular exponentiation in 32-bit integers: `kernels/int`, `docs/int.md`.

use batch_modexp_core::window::Window;

use super::{Family, cheapest_window, cost_in_words, relative_clock};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{CompressedPtx, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;

/// The family with 32-bit integers. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct Int;

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
        let (times, blocks) = (entry.block_times(), entry.blocks_each(device, count));
        let resident = device.shared_bytes_per_block() / entry.image.shared_bytes.max(1);
        let each_ms = match resident {
            0 | 1 => times.alone_ms,
            _ => times.shared_ms,
        };
        let on_reference = times.alone_ms.max(blocks * each_ms);
        let squarings = f64::from(exponent_bits.max(1)) / f64::from(entry.bits);
        on_reference * squarings / relative_clock(device)
    }

    /// The window with the fewest multiplications, including the cost of table look-ups.
    fn best_window(&self, exponent_bits: u32) -> Window {
        cheapest_window(widest_window(exponent_bits), |window| {
            cost_in_words(window, exponent_bits)
        })
    }
}

const FAMILY: &dyn Family = &Int;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/int/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/int.rs"));

#[cfg(test)]
mod tests;
