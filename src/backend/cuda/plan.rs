//! Chooses the family, kernel and window for a batch: for each device the kernel that should finish
//! first.
//!
//! The times are measured ones, or else the families' estimates. All choices follow from public
//! numbers.

use core::ptr;

use batch_modexp_core::window::Window;

use super::family::{self, Entry};
use super::runtime::probe::DeviceInfo;

/// Choices for [`Cuda::batch_mod_exp_tuned`](super::Cuda::batch_mod_exp_tuned). The default leaves
/// all of them to the backend.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tuning {
    /// The entry point. It must serve the width of the instances and run on the device; it is
    /// ignored for other instances.
    pub entry_point: Option<&'static Entry>,
    /// The window.
    pub window: Option<Window>,
    /// Whether the whole batch is a single launch, which does not overlap with the copies. The
    /// memory of a device limits its size.
    pub single_launch: bool,
}

/// The entry point for a device's share of `count` instances, with moduli of `bits` bits and
/// exponents of `exponent_bits` bits. `None` if the device has none.
#[must_use]
pub fn fastest_entry_point(
    device: &DeviceInfo,
    bits: u32,
    exponent_bits: u32,
    count: usize,
) -> Option<&'static Entry> {
    let tuning = Tuning::default();
    let plan = Plan::new(bits, exponent_bits, count, device, tuning)?;
    Some(plan.entry)
}

/// Whether a device is faster than a processor with many cores.
///
/// Chips for data centers have half as many double-precision units as single-precision ones. Others
/// have 1/32 or fewer. They have not been measured; callers can name them.
pub(crate) fn is_fast(device: &DeviceInfo) -> bool {
    device.single_to_double() <= 4
}

/// The kernel and window for exponentiations.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) entry: &'static Entry,
    pub(crate) window: Window,
    /// The estimated time.
    pub(crate) milliseconds: f64,
}

impl Plan {
    /// The plan for `count` instances with moduli of `bits` bits on one device. `None` if it has no
    /// kernel for them.
    pub(crate) fn new(
        bits: u32,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
        tuning: Tuning,
    ) -> Option<Self> {
        let serving = || family::serving(bits);
        let asked = tuning
            .entry_point
            .filter(|point| point.runs_on(device) && serving().any(|entry| ptr::eq(entry, *point)));
        // Computing wider Montgomery parameters costs the host more than such a kernel saves.
        let direct = serving().filter(|entry| entry.r2_bits(bits) == bits);
        let plan = asked
            .map(|entry| Self::with(entry, exponent_bits, count, device))
            .or_else(|| Self::fastest(direct, exponent_bits, count, device))
            .or_else(|| Self::fastest(serving(), exponent_bits, count, device))?;
        Some(Self {
            window: tuning.window.unwrap_or(plan.window),
            ..plan
        })
    }

    /// The kernel that should finish `count` instances first, among those that run on the device.
    pub(crate) fn fastest(
        entries: impl Iterator<Item = &'static Entry>,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
    ) -> Option<Self> {
        entries
            .filter(|entry| entry.runs_on(device))
            .map(|entry| Self::with(entry, exponent_bits, count, device))
            .min_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds))
    }

    fn with(entry: &'static Entry, exponent_bits: u32, count: usize, device: &DeviceInfo) -> Self {
        Self {
            entry,
            window: entry.family.best_window(exponent_bits),
            milliseconds: entry.milliseconds(device, count, exponent_bits),
        }
    }
}

#[cfg(test)]
mod tests;
