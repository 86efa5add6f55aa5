//! Modular exponentiation in double-precision floating point (DPF): `kernels/dpf`, `docs/dpf.md`.
#![allow(unsafe_code)]

#[cfg(feature = "rsa")]
mod crt;

use alloc::sync::Arc;
use alloc::vec;
use core::ptr;

use crypto_bigint::Limb;

use super::{Family, ModExpChunk, ModExpWork};
use crate::backend::cuda::registry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{Argument, Image, Kernel, KernelKey, Launch};
use crate::backend::cuda::runtime::probe::DeviceInfo;
use crate::backend::cuda::runtime::slot::Layout;
use crate::backend::cuda::words::copy_in;
use crate::window::Window;

/// The family; its kernels' parameters are in `kernels/README.md`.
#[derive(Debug)]
pub(crate) struct Dpf;

const NAME: &str = "dpf";

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

    fn mod_exp(&self, entry: &Entry, kernel: &Arc<Kernel>, chunk: &ModExpChunk) -> ModExpWork {
        let ModExpChunk {
            count,
            moduli,
            exponent_bits,
            r2_bits,
            window,
        } = *chunk;
        check_kernel(entry, Operation::ModExp, kernel);
        check_count(count);
        check_r2_bits(entry, r2_bits);
        assert!(exponent_bits <= entry.bits, "the exponents are too long");
        let (numbers, blocks) = (count * entry.words(), kernel.blocks(count));

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
        let launch = unsafe { Launch::new(kernel, blocks, arguments) };
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

    #[cfg(feature = "rsa")]
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

fn check_kernel(entry: &Entry, operation: Operation, kernel: &Kernel) {
    assert!(
        entry.operation == operation && ptr::eq(&entry.image, kernel.image()),
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

/// One row of the table: operation, bits of the file and name of the function; bits of its numbers, lanes for
/// each instance, threads, scratch doubles, shared bytes, narrowest parameters, and times.
macro_rules! dpf {
    ($operation:ident, $file:literal, $file_bits:literal, $function:literal, $bits:literal, $lanes:literal,
     $threads:literal, $scratch_doubles:literal, $shared_bytes:literal, $min_r2_bits:literal, $times:expr) => {
        Entry {
            family: &Dpf,
            operation: Operation::$operation,
            bits: $bits,
            min_r2_bits: $min_r2_bits,
            scratch_doubles: $scratch_doubles,
            times: $times,
            image: Image {
                key: KernelKey {
                    family: NAME,
                    operation: stringify!($operation),
                    bits: $bits,
                    variant: concat!("t", $lanes),
                },
                function: concat!($file, "_", $file_bits, "_", $function),
                module: concat!("dpf_", $file, "_", $file_bits, ".ptx"),
                ptx: concat!(
                    include_str!(concat!(
                        "../../../../kernels/ptx/dpf_",
                        $file,
                        "_",
                        $file_bits,
                        ".ptx"
                    )),
                    "\0"
                ),
                threads: $threads,
                instances_per_block: $threads / $lanes,
                shared_bytes: $shared_bytes,
            },
        }
    };
}

const fn ms(alone_ms: f64, shared_ms: f64) -> Option<BlockTimes> {
    Some(BlockTimes {
        alone_ms,
        shared_ms,
    })
}

#[cfg(feature = "rsa")]
const COUNT: usize = 34;
#[cfg(not(feature = "rsa"))]
const COUNT: usize = 14;

#[rustfmt::skip]
pub(crate) static ENTRIES: [Entry; COUNT] = [
    dpf!(ModExp, "modexp", 512, "t2", 512, 2, 128, 6, 25_600, 261, ms(1.0, 0.594)),
    dpf!(ModExp, "modexp", 512, "t1", 512, 1, 512, 10, 122_880, 261, ms(2.72, 2.91)),
    dpf!(ModExp, "modexp", 768, "t4", 768, 4, 128, 4, 12_288, 417, ms(1.69, 0.991)),
    dpf!(ModExp, "modexp", 768, "t1", 768, 1, 384, 16, 138_240, 391, ms(6.04, 6.09)),
    dpf!(ModExp, "modexp", 1024, "t4", 1024, 4, 128, 6, 15_360, 521, ms(3.27, 1.993)),
    dpf!(ModExp, "modexp", 1024, "t1", 1024, 1, 256, 20, 122_880, 521, ms(9.06, 9.33)),
    dpf!(ModExp, "modexp", 1536, "t8", 1536, 8, 128, 4, 12_288, 833, ms(6.45, 3.781)),
    dpf!(ModExp, "modexp", 1536, "t1", 1536, 1, 256, 30, 184_320, 781, ms(29.7, 34.1)),
    dpf!(ModExp, "modexp", 2048, "t8", 2048, 8, 128, 6, 15_360, 1041, ms(12.72, 7.677)),
    dpf!(ModExp, "modexp", 2048, "t2", 2048, 2, 256, 20, 204_800, 1041, ms(38.9, 39.5)),
    dpf!(ModExp, "modexp", 3072, "t8", 3072, 8, 128, 8, 24_576, 1665, ms(31.1, 25.85)),
    dpf!(ModExp, "modexp", 3072, "t4", 3072, 4, 384, 16, 138_240, 1561, ms(108.4, 108.4)),
    dpf!(ModExp, "modexp", 4096, "t16", 4096, 16, 128, 6, 15_360, 2081, ms(48.9, 29.77)),
    dpf!(ModExp, "modexp", 4096, "t4", 4096, 4, 256, 20, 122_880, 2081, ms(164.0, 166.4)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 1024, "exp_t2", 512, 2, 128, 6, 25_600, 261, ms(1.0, 0.594)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 1024, "exp_t1", 512, 1, 512, 10, 122_880, 261, ms(2.72, 2.91)),
    #[cfg(feature = "rsa")]
    dpf!(CrtRecombine, "rsa", 1024, "garner", 512, 2, 128, 0, 25_600, 261, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtCheck, "rsa", 1024, "check", 1024, 1, 256, 0, 122_880, 521, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 1536, "exp_t4", 768, 4, 128, 4, 12_288, 417, ms(1.69, 0.991)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 1536, "exp_t1", 768, 1, 384, 16, 138_240, 391, ms(6.04, 6.09)),
    #[cfg(feature = "rsa")]
    dpf!(CrtRecombine, "rsa", 1536, "garner", 768, 4, 128, 0, 12_288, 417, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtCheck, "rsa", 1536, "check", 1536, 2, 256, 0, 153_600, 781, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 2048, "exp_t4", 1024, 4, 128, 6, 15_360, 521, ms(3.27, 1.993)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 2048, "exp_t1", 1024, 1, 256, 20, 122_880, 521, ms(9.06, 9.33)),
    #[cfg(feature = "rsa")]
    dpf!(CrtRecombine, "rsa", 2048, "garner", 1024, 4, 128, 0, 15_360, 521, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtCheck, "rsa", 2048, "check", 2048, 2, 256, 0, 204_800, 1041, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 3072, "exp_t8", 1536, 8, 128, 4, 12_288, 833, ms(6.45, 3.781)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 3072, "exp_t1", 1536, 1, 256, 30, 184_320, 781, ms(29.7, 34.1)),
    #[cfg(feature = "rsa")]
    dpf!(CrtRecombine, "rsa", 3072, "garner", 1536, 8, 128, 0, 12_288, 833, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtCheck, "rsa", 3072, "check", 3072, 4, 384, 0, 138_240, 1561, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 4096, "exp_t8", 2048, 8, 128, 6, 15_360, 1041, ms(12.72, 7.677)),
    #[cfg(feature = "rsa")]
    dpf!(CrtHalves, "rsa", 4096, "exp_t2", 2048, 2, 256, 20, 204_800, 1041, ms(38.9, 39.5)),
    #[cfg(feature = "rsa")]
    dpf!(CrtRecombine, "rsa", 4096, "garner", 2048, 8, 128, 0, 15_360, 1041, None),
    #[cfg(feature = "rsa")]
    dpf!(CrtCheck, "rsa", 4096, "check", 4096, 4, 256, 0, 122_880, 2081, None),
];

#[cfg(test)]
mod tests;
