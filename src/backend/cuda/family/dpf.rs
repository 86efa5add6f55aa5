//! Modular exponentiation in double-precision floating point (DPF): `kernels/dpf`, `docs/dpf.md`.
#![allow(unsafe_code)]

#[cfg(feature = "sign")]
mod crt;

use alloc::vec;
use core::ptr;

use crypto_bigint::Limb;

use super::{Family, ModExpChunk, ModExpWork};
use crate::backend::cuda::registry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::launch::{Argument, Launch};
use crate::backend::cuda::runtime::layout::Layout;
use crate::backend::cuda::runtime::module::{Grid, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::ptx::CompressedPtx;
use crate::backend::cuda::words::copy_in;
use crate::window::Window;

/// The family; its kernels' parameters are in `kernels/README.md`.
#[derive(Debug)]
pub(crate) struct Dpf;

/// What reading one entry of the window table costs, in multiplications: about, for it grows with the table.
/// With this the window is the one that was fastest in `benches/cuda-h200.csv`.
const SCAN_COST: f64 = 0.018;

/// The clock of the H200 on which the times were measured, in kHz.
const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;

/// Its [`DeviceInfo::single_to_double`], as that of all chips for data centers.
const REFERENCE_SINGLE_TO_DOUBLE: f64 = 2.0;

impl Family for Dpf {
    /// Any chip that the crate supports, if a block may have the shared memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    /// Chips for data centers have half as many units for doubles as for single precision, others 1/32 or less.
    fn is_fast_on(&self, device: &DeviceInfo) -> bool {
        device.single_to_double() <= 4
    }

    /// The rounds of blocks that a multiprocessor needs, by the times of the H200, the clock and the number of
    /// units for doubles.
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

    /// The window with the fewest multiplications, table look-ups counted by what they cost.
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
        let ModExpChunk {
            count,
            moduli,
            exponent_bits,
            r2_bits,
            window,
        } = *chunk;
        check_kernel(entry, Operation::ModExp, grid);
        check_count(count);
        check_r2_bits(entry, r2_bits);
        assert!(exponent_bits <= entry.bits, "the exponents are too long");
        let (numbers, blocks) = (count * entry.words(), grid.blocks(count));

        let mut layout = Layout::default();
        let base = layout.input(numbers);
        let exponent = layout.input(numbers);
        let records = layout.input(moduli * 2 * entry.words());
        let modulus_index = layout.input(count.div_ceil(2));
        let power = layout.output(numbers);
        let scratch = layout.scratch(scratch_words(entry, blocks, window));
        let arguments = vec![
            Argument::Words(power),
            Argument::Words(base),
            Argument::Words(exponent),
            Argument::Words(records),
            Argument::Indices {
                part: modulus_index,
                count,
                below: moduli,
            },
            Argument::Words(scratch),
            Argument::U32(count as u32),
            Argument::U32(exponent_bits),
            Argument::U32(r2_bits),
            Argument::U32(window.bits()),
        ];
        // SAFETY: these are the parameters of `modexp_BITS_tT`, checked above; every part has the length that
        // its buffer must have.
        let launch = unsafe { Launch::new(grid.image(), blocks, arguments) };
        ModExpWork {
            layout,
            base,
            exponent,
            moduli: records,
            modulus_index,
            power,
            launches: vec![launch],
        }
    }

    /// The modulus, then `r2`.
    fn write_modulus(&self, entry: &Entry, modulus: &[Limb], r2: &[Limb], record: &mut [u64]) {
        let (first, second) = record.split_at_mut(entry.words());
        copy_in(modulus, first);
        copy_in(r2, second);
    }

    #[cfg(feature = "sign")]
    fn crt(&self) -> Option<&dyn super::crt::CrtFamily> {
        Some(self)
    }
}

/// A table of `2^window` powers in limbs of one double, for the threads of all blocks. Other powers share its
/// place, so that there are never fewer than eight.
fn scratch_words(entry: &Entry, blocks: usize, window: Window) -> usize {
    let entries = window.table_len().max(8);
    blocks * entry.image.threads as usize * entry.scratch_doubles * entries
}

fn check_kernel(entry: &Entry, operation: Operation, grid: Grid) {
    assert!(
        entry.operation == operation && ptr::eq(&entry.image, grid.image()),
        "a kernel for another operation"
    );
}

fn check_count(count: usize) {
    assert!(
        (1..=1 << 30).contains(&count),
        "too many instances, or none"
    );
}

/// With narrower parameters a kernel would not end.
fn check_r2_bits(entry: &Entry, r2_bits: u32) {
    assert!(
        (entry.min_r2_bits..=entry.bits).contains(&r2_bits),
        "Montgomery parameters of the wrong width"
    );
}

const FAMILY: &dyn Family = &Dpf;

// The kernels' table and the name of their folder, which the build script makes from `kernels/dpf/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/dpf.rs"));

#[cfg(test)]
mod tests;
