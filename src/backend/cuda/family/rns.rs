//! Modular exponentiation in residue number systems on tensor cores (RNS): `kernels/rns` for
//! sm_90a, `kernels/rns_mma` for all chips since sm_80, `docs/rns.md`.

use batch_modexp_core::window::Window;

use super::{BlockTimes, CompressedPtx, DeviceInfo, Entry, Family, KernelKey, Operation};

/// An RNS family. `kernels/README.md` lists the parameters of its kernels.
pub(crate) struct Rns {
    /// Whether the kernels use `mma.sync` for bytes, which chips since sm_80 have. Otherwise they
    /// are code for sm_90a, which runs on no other chip.
    is_mma: bool,
}

/// CUDA 12.0, the first driver for PTX 8.0.
const MIN_CUDA_VERSION: i32 = 12_000;

/// CUDA 12.8, which compiles a kernel above 2048 bits in half a minute. CUDA 12.4 takes minutes.
const MIN_CUDA_VERSION_OF_WIDE: i32 = 12_080;

/// The cost of everything except the exponentiation, in multiplications: conversion to and from
/// residues, constants of the modulus, and clearing. From the times for exponents of 17 bits.
const SETUP_COST: f64 = 102.0;

/// The cost of a multiplication by an entry of the table, in multiplications. It is half of one
/// above a squaring, because the entry has residues in one base only.
const ENTRY_COST: f64 = 1.5;

/// The number of entries, and of digit rows, that a pass over the table multiplies.
const MATRIX_ENTRIES: usize = 32;
const DIGITS_OF_PASS: usize = 16;

/// The cost of a pass for each [`MATRIX_ENTRIES`] entries, in multiplications: the time of
/// exponentiations less that of a kernel without look-ups.
const PASS_COST: f64 = 6.4;

impl Family for Rns {
    fn has_instructions(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        if self.is_mma {
            return device.compute_capability() >= (8, 0);
        }
        let min_version = match entry.bits {
            ..=2048 => MIN_CUDA_VERSION,
            _ => MIN_CUDA_VERSION_OF_WIDE,
        };
        device.compute_capability() == (9, 0) && device.cuda_version >= min_version
    }

    /// By the rate of byte products. Predicted from NVIDIA's published rates, not measured.
    fn slowdown(&self, device: &DeviceInfo) -> f64 {
        match device.compute_capability() {
            // 2,048 multiply-adds for each clock: no slowdown, because loading the matrices takes
            // as long.
            (8, 0) | (9, _) | (10, _) => 1.0,
            // 1,024 multiply-adds for each clock.
            _ => 2.0,
        }
    }

    fn relative_time(&self, exponent_bits: u32) -> f64 {
        SETUP_COST + self.cost(self.best_window(exponent_bits), exponent_bits)
    }

    /// Without the setup.
    fn cost(&self, window: Window, exponent_bits: u32) -> f64 {
        let (digits, table) = (window.digit_count(exponent_bits), window.table_len());
        let passes = digits.div_ceil(DIGITS_OF_PASS) * table.div_ceil(MATRIX_ENTRIES);
        let squarings = digits * window.bits() as usize;
        (squarings + table) as f64 + digits as f64 * ENTRY_COST + passes as f64 * PASS_COST
    }

    fn fewest_entries(&self) -> usize {
        MATRIX_ENTRIES
    }

    /// Whether the words are all ones: the modulus is a multiple of a prime of base A.
    fn is_refused(&self, power: &[u64]) -> bool {
        power.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
    }
}

const FAMILY: &dyn Family = &Rns { is_mma: false };

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/rns/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/rns.rs"));

/// The kernels for chips since sm_80.
pub(crate) mod mma {
    use super::*;

    const FAMILY: &dyn Family = &Rns { is_mma: true };

    // The same from `kernels/rns_mma/shapes.csv`.
    include!(concat!(env!("OUT_DIR"), "/rns_mma.rs"));
}

#[cfg(test)]
mod tests;
