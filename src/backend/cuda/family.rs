//! The interface of a kernel family: supported chips and costs. All families that the crate ships.
//! Launches and their operands in memory.

#[cfg(feature = "rsa")]
pub(crate) mod crt;
pub(crate) mod dpf;
pub(crate) mod entry;
pub(crate) mod fixed;
pub(crate) mod int;
pub(crate) mod modexp;
pub(crate) mod rns;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::window::Window;

use self::entry::{Entry, Operation};
use super::runtime::launch::Launch;
use super::runtime::layout::{Layout, Part};
use super::runtime::probe::DeviceInfo;

/// A family of kernels with one kind of arithmetic. `entry` is always one of the family's own.
///
/// Parameters and records of exponentiations are the same in all families: see [`modexp`].
pub(crate) trait Family: fmt::Debug + Sync {
    /// Whether a kernel runs on a device, which needs its instructions and its memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool;

    /// The estimated time in milliseconds for `count` instances with exponents of `exponent_bits`
    /// bits on one device. Only for kernels that exponentiate.
    fn milliseconds(
        &self,
        entry: &Entry,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64;

    /// The fastest window for exponents of `exponent_bits` bits.
    fn best_window(&self, exponent_bits: u32) -> Window;

    /// The least number of powers in a window table. Other numbers share its memory.
    fn fewest_entries(&self) -> usize {
        8
    }

    /// Whether the output in place of a power marks a modulus that the family does not support. The
    /// host computes such an instance, which makes this answer public.
    fn is_refused(&self, _power: &[u64]) -> bool {
        false
    }
}

/// The table of each family that the crate ships.
static FAMILIES: [&[Entry]; 4] = [
    &dpf::ENTRIES,
    &int::ENTRIES,
    &rns::ENTRIES,
    &rns::mma::ENTRIES,
];

/// All kernels.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().copied().flatten()
}

/// All kernels that compute one exponentiation for each instance.
pub(crate) fn exponentiating() -> impl Iterator<Item = &'static Entry> {
    all().filter(|entry| entry.operation == Operation::ModExp)
}

/// The kernels for exponentiations of `bits` bits: for each family those of the narrowest class that
/// holds them.
pub(crate) fn serving(bits: u32) -> impl Iterator<Item = &'static Entry> {
    narrowest(Operation::ModExp, bits)
}

/// For each family the kernels of the narrowest class that holds numbers of `bits` bits.
pub(crate) fn narrowest(operation: Operation, bits: u32) -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().flat_map(move |entries| {
        let holds = move |entry: &&Entry| entry.operation == operation && entry.bits >= bits;
        let class = entries.iter().filter(holds).map(|entry| entry.bits).min();
        let is_of_class = move |entry: &&Entry| Some(entry.bits) == class;
        entries.iter().filter(holds).filter(is_of_class)
    })
}

/// The widths of the classes for exponentiations, ascending.
pub(crate) fn widths() -> Vec<u32> {
    let widths: BTreeSet<_> = exponentiating().map(|entry| entry.bits).collect();
    widths.into_iter().collect()
}

/// The widest modulus of any kernel, in bits.
pub(crate) const MAX_BITS: u32 = {
    let (mut widest, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let (entries, mut i) = (FAMILIES[family], 0);
        while i < entries.len() {
            if matches!(entries[i].operation, Operation::ModExp) && entries[i].bits > widest {
                widest = entries[i].bits;
            }
            i += 1;
        }
        family += 1;
    }
    widest
};

/// The clock of the H200 on which kernels were measured, in kHz.
const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;

/// The clock of a device, relative to that of the H200.
fn relative_clock(device: &DeviceInfo) -> f64 {
    f64::from(device.clock_khz().max(1)) / REFERENCE_CLOCK_KHZ
}

/// The window of up to `widest` bits with the least cost.
fn cheapest_window(widest: u32, cost: impl Fn(Window) -> f64) -> Window {
    let windows = (Window::MIN_BITS..=widest).filter_map(Window::new);
    windows
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
        .unwrap_or_else(|| unreachable!("there are windows"))
}

/// The cost of an exponentiation in multiplications, for families in words: `dpf` and `int`.
fn cost_in_words(window: Window, exponent_bits: u32) -> f64 {
    /// The approximate cost of reading one entry of the window table. It grows with the table. This
    /// value gives the fastest windows of `benches/cuda-h200.csv`.
    const SCAN_COST: f64 = 0.018;
    let digits = window.digit_count(exponent_bits) as f64;
    let table = window.table_len() as f64;
    let squarings = digits * f64::from(window.bits());
    squarings + digits * (1.0 + table * SCAN_COST) + table
}

/// A chunk of exponentiations. All fields are public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModExpChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// An upper bound for the number of moduli.
    pub(crate) moduli: usize,
    /// The length of the exponents in bits, at most the width of the kernel.
    pub(crate) exponent_bits: u32,
    /// The width of the Montgomery parameters in bits, as from [`Entry::r2_bits`].
    pub(crate) r2_bits: u32,
    pub(crate) window: Window,
}

/// The places of a chunk's operands, and its launches.
///
/// Numbers are little-endian 64-bit words, zero-extended to one width. Those of all instances are
/// consecutive. The input parts are in the order of the fields.
pub(crate) struct ModExpWork {
    pub(crate) layout: Layout,
    pub(crate) base: Part,
    pub(crate) exponent: Part,
    /// For each instance the 32-bit index of the record of its modulus.
    pub(crate) modulus_index: Part,
    /// Space for a record for each modulus. The first records are used.
    pub(crate) moduli: Part,
    pub(crate) power: Part,
    pub(crate) launches: Vec<Launch>,
}

#[cfg(test)]
mod tests;
