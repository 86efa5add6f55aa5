//! Which entry point and which window a batch is computed with. All of it follows from public numbers.

use super::DeviceInfo;
use super::entry::{self, Entry};
use crate::window::Window;

/// Choices for [`Cuda::batch_mod_exp_tuned`](super::Cuda::batch_mod_exp_tuned); the default leaves all of
/// them to the backend.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tuning {
    /// The entry point; it must serve the width of the instances, and is ignored for others.
    pub entry_point: Option<EntryPoint>,
    /// The window.
    pub window: Option<Window>,
    /// Whether the whole batch goes into one launch, which does not overlap with the copies; a device's
    /// memory bounds its size.
    pub single_launch: bool,
}

/// A kernel that computes modular exponentiations of a class of widths.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint(&'static Entry);

impl EntryPoint {
    /// Its name in the PTX, such as `modexp_1024_t2`: 1024 bits, two lanes for each instance.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The widest modulus that it takes, in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.bits
    }

    /// The number of instances that a block computes at a time.
    #[must_use]
    pub fn instances_per_block(&self) -> usize {
        self.0.instances_per_block
    }
}

/// The entry points that serve moduli of `bits` bits; none above
/// [`Cuda::MAX_BITS`](super::Cuda::MAX_BITS).
pub fn entry_points(bits: u32) -> impl Iterator<Item = EntryPoint> {
    entry::serving(bits).map(EntryPoint)
}

/// What a batch is computed with.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) entry: &'static Entry,
    pub(super) window: Window,
    pub(super) single_launch: bool,
}

impl Plan {
    /// For `count` instances with moduli of `bits` bits on one device, or `None` if they are too wide.
    pub(super) fn new(
        bits: u32,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
        tuning: Tuning,
    ) -> Option<Self> {
        let asked = tuning.entry_point.map(|point| point.0.name);
        let entry = entry::serving(bits)
            .find(|entry| Some(entry.name) == asked)
            .or_else(|| best_entry(entry::serving(bits), count, device))?;
        Some(Self {
            entry,
            window: tuning.window.unwrap_or_else(|| best_window(exponent_bits)),
            single_launch: tuning.single_launch,
        })
    }
}

/// The entry point that computes `count` instances soonest, of those that the device has the memory for.
pub(super) fn best_entry(
    entries: impl Iterator<Item = &'static Entry>,
    count: usize,
    device: &DeviceInfo,
) -> Option<&'static Entry> {
    let per_multiprocessor = count.div_ceil(device.multiprocessors().max(1) as usize);
    let time = |entry: &Entry| {
        let blocks = per_multiprocessor.div_ceil(entry.instances_per_block);
        let times = entry.times.as_ref();
        times.map_or(f64::INFINITY, |times| {
            times.alone_ms.max(blocks as f64 * times.shared_ms)
        })
    };
    entries
        .filter(|entry| entry.shared_bytes <= device.shared_bytes_per_block())
        .min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// What reading one entry of the window table costs, in multiplications: about, for it grows with the table.
/// With this the window is the one that was fastest in `benches/cuda-h200.csv`.
const SCAN_COST: f64 = 0.018;

/// The window with the fewest multiplications, table look-ups counted by what they cost.
pub(super) fn best_window(exponent_bits: u32) -> Window {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_exponents_do_not_pay_for_a_table() {
        assert!(best_window(17).bits() <= 2);
    }

    /// The windows that were fastest on an H200.
    #[test]
    fn long_exponents_have_the_windows_that_were_measured() {
        for (exponent_bits, window) in [(1024, 4), (2048, 4), (4096, 5)] {
            assert_eq!(best_window(exponent_bits).bits(), window);
        }
    }

    fn plan(bits: u32, count: usize, device: &DeviceInfo, tuning: Tuning) -> Option<&'static str> {
        Plan::new(bits, bits, count, device, tuning).map(|plan| plan.entry.name)
    }

    #[test]
    fn small_batches_take_more_lanes_for_each_instance() {
        let device = DeviceInfo::imaginary(100, 227 << 10);
        let pairs = [
            (512, "modexp_512_t2", "modexp_512_t1"),
            (1024, "modexp_1024_t4", "modexp_1024_t1"),
            (2048, "modexp_2048_t8", "modexp_2048_t2"),
            (3072, "modexp_3072_t8", "modexp_3072_t4"),
        ];
        for (bits, small, large) in pairs {
            let plan = |count| plan(bits, count, &device, Tuning::default());
            assert_eq!(plan(1), Some(small));
            assert_eq!(plan(1_000_000), Some(large));
        }
    }

    #[test]
    fn chips_with_little_shared_memory_take_what_fits() {
        let device = DeviceInfo::imaginary(100, 64 << 10);
        for bits in [512, 768, 1024, 1536, 2048, 3072, 4096] {
            let name = plan(bits, 1_000_000, &device, Tuning::default());
            assert!(name.is_some(), "{bits}");
        }
    }

    #[test]
    fn a_tuned_entry_point_must_serve_the_width() {
        let device = DeviceInfo::imaginary(100, 227 << 10);
        let tuning = Tuning {
            entry_point: entry_points(4096).next(),
            ..Tuning::default()
        };
        let asked = entry_points(4096).next().map(|point| point.name());
        assert_eq!(plan(4000, 1, &device, tuning), asked);
        assert_eq!(plan(4000, 1_000_000, &device, tuning), asked);
        assert_eq!(plan(512, 1, &device, tuning), Some("modexp_512_t2"));
        assert_eq!(plan(4097, 1, &device, tuning), None);
    }
}
