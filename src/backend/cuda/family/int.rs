//! Modular exponentiation in 32-bit integers: `kernels/int`, `docs/int.md`.

use batch_modexp_core::window::Window;

use super::{Family, ModExpChunk, ModExpWork, modexp};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{Grid, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::ptx::CompressedPtx;

/// The family; its kernels' parameters are in `kernels/README.md`.
#[derive(Debug)]
pub(crate) struct Int;

/// The clock of the H200 on which the times were measured, in kHz.
const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;

/// What reading an entry of the table costs, in multiplications.
const SCAN_COST: f64 = 0.018;

/// With wider ones the squarings before a look-up end before its reads do; of numbers in one lane, as those of up to 2048
/// bits are, they do so with 5 bits already.
fn widest_window(exponent_bits: u32) -> u32 {
    if exponent_bits <= 2048 { 4 } else { 5 }
}

impl Family for Int {
    /// Any chip that the crate supports, if a block may have the shared memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Nobody has measured chips on which no other family is fast; whoever has one asks for it.
    fn is_fast_on(&self, _: &DeviceInfo) -> bool {
        false
    }

    /// The rounds of blocks that a multiprocessor needs, by the times of the H200 and the clock: all chips from sm_70 on
    /// multiply as many 32-bit integers in a clock and multiprocessor (CUDA C++ Programming Guide, "Throughput of Native
    /// Arithmetic Instructions"). Where there is room for one block at a time, each takes what it takes alone.
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

    /// The window with the fewest multiplications, table look-ups counted by what they cost.
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

// The kernels' table and the name of their folder, which the build script makes from `kernels/int/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/int.rs"));

#[cfg(test)]
mod tests;
