//! Modular exponentiation in residue number systems on tensor cores (RNS): `kernels/rns`,
//! `docs/rns.md`.

use batch_modexp_core::window::Window;

use super::{Family, cheapest_window, relative_clock};
use crate::backend::cuda::family::entry::{BlockTimes, Entry, Operation};
use crate::backend::cuda::runtime::module::{CompressedPtx, Image, KernelKey};
use crate::backend::cuda::runtime::probe::DeviceInfo;

/// The RNS family. `kernels/README.md` lists the parameters of its kernels.
#[derive(Debug)]
pub(crate) struct Rns;

/// The only chips with the kernels' instructions: code for `sm_90a` runs on no other.
const COMPUTE_CAPABILITY: (i32, i32) = (9, 0);

/// CUDA 12.0, the first driver for PTX 8.0.
const MIN_CUDA_VERSION: i32 = 12_000;

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
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool {
        device.compute_capability() == COMPUTE_CAPABILITY
            && device.cuda_version() >= MIN_CUDA_VERSION
            && entry.image.shared_bytes <= device.shared_bytes_per_block()
    }

    fn is_fast_on(&self, device: &DeviceInfo) -> bool {
        device.compute_capability() == COMPUTE_CAPABILITY
    }

    /// The time for the rounds of blocks on a multiprocessor, scaled from an H200 by the clock.
    fn milliseconds(
        &self,
        entry: &Entry,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64 {
        let (times, blocks) = (entry.block_times(), entry.blocks_each(device, count));
        let on_reference = times.alone_ms.max(blocks * times.shared_ms);
        let whole = |bits| SETUP_COST + cost(self.best_window(bits), bits);
        on_reference * whole(exponent_bits) / whole(entry.bits) / relative_clock(device)
    }

    /// The window with the fewest multiplications, including the cost of table look-ups.
    fn best_window(&self, exponent_bits: u32) -> Window {
        cheapest_window(Window::MAX_BITS, |window| cost(window, exponent_bits))
    }

    fn fewest_entries(&self) -> usize {
        MATRIX_ENTRIES
    }

    /// Whether the words are all ones: the modulus is a multiple of a prime of base A.
    fn is_refused(&self, power: &[u64]) -> bool {
        power.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
    }
}

/// The cost of an exponentiation without the setup, in multiplications.
fn cost(window: Window, exponent_bits: u32) -> f64 {
    let digits = window.digit_count(exponent_bits);
    let passes = digits.div_ceil(DIGITS_OF_PASS) * window.table_len().div_ceil(MATRIX_ENTRIES);
    let squarings = digits * window.bits() as usize;
    (squarings + window.table_len()) as f64 + digits as f64 * ENTRY_COST + passes as f64 * PASS_COST
}

const FAMILY: &dyn Family = &Rns;

// The table of kernels and the name of their folder. The build script makes both from
// `kernels/rns/shapes.csv`.
include!(concat!(env!("OUT_DIR"), "/rns.rs"));

#[cfg(test)]
mod tests;
