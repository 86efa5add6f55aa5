//! Which family, which kernel and which window a batch is computed with: for each device the one that should
//! be done first, by what was measured of it, or else by the families' forecasts. All of it follows from public numbers.

use alloc::vec::Vec;
use core::ptr;
use core::time::Duration;

use batch_modexp_core::window::Window;

#[cfg(feature = "rsa")]
use super::family::crt::CrtClass;
use super::family::entry::{Entry, Registry};
use super::registry::SHIPPED;
use super::runtime::pipeline::Forecast;
use super::runtime::probe::DeviceInfo;

/// Choices for [`Cuda::batch_mod_exp_tuned`](super::Cuda::batch_mod_exp_tuned); the default leaves all of
/// them to the backend.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tuning {
    /// The entry point; it must serve the width of the instances and run on the device, and is ignored for
    /// others.
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
        self.0.image.function
    }

    /// Its family, such as `dpf` or `int`: what it does its arithmetic with.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.0.image.key.family
    }

    /// The widest modulus that it takes, in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.bits
    }

    /// The number of instances that a block computes at a time.
    #[must_use]
    pub fn instances_per_block(&self) -> usize {
        self.0.image.instances_per_block
    }

    /// The time that a device should take for `count` exponentiations with exponents as long as the numbers, by which it is
    /// chosen or not: as measured, for the devices of a backend that was [calibrated](super::Cuda::calibrate) at its
    /// width, or else as predicted. `None` if it does not run there.
    #[must_use]
    pub fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Duration> {
        let forecast = || milliseconds(self.0, device, count, self.0.bits);
        self.0
            .runs_on(device)
            .then(|| Duration::from_secs_f64(forecast() * 1e-3))
    }

    pub(crate) const fn of(entry: &'static Entry) -> Self {
        Self(entry)
    }
}

impl PartialEq for EntryPoint {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for EntryPoint {}

/// The entry points that serve moduli of `bits` bits; none above
/// [`Cuda::MAX_BITS`](super::Cuda::MAX_BITS).
pub fn entry_points(bits: u32) -> impl Iterator<Item = EntryPoint> {
    SHIPPED.serving(bits).map(EntryPoint)
}

/// The entry point that a device's share of `count` instances goes to, with moduli of `bits` bits and exponents of
/// `exponent_bits` bits; `None` if the device has none for them.
#[must_use]
pub fn fastest_entry_point(
    device: &DeviceInfo,
    bits: u32,
    exponent_bits: u32,
    count: usize,
) -> Option<EntryPoint> {
    let tuning = Tuning::default();
    let plan = Plan::new(SHIPPED, bits, exponent_bits, count, device, tuning)?;
    Some(EntryPoint(plan.entry))
}

/// The widths in bits that there are kernels for, ascending. Narrower moduli take those of the next width.
#[must_use]
pub fn widths() -> Vec<u32> {
    SHIPPED.widths()
}

/// Whether a device is faster than a processor with many cores.
pub(crate) fn is_fast(device: &DeviceInfo) -> bool {
    let mut families = SHIPPED.families().filter_map(<[Entry]>::first);
    families.any(|entry| entry.family.is_fast_on(device))
}

/// What exponentiations are computed with.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) entry: &'static Entry,
    pub(crate) window: Window,
    pub(crate) forecast: Forecast,
}

impl Plan {
    /// For `count` instances with moduli of `bits` bits on one device, or `None` if it has no kernel for them.
    pub(crate) fn new(
        registry: Registry,
        bits: u32,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
        tuning: Tuning,
    ) -> Option<Self> {
        let asked = |entry: &&Entry| {
            let point = tuning.entry_point;
            point.is_some_and(|point| ptr::eq(point.0, *entry)) && entry.runs_on(device)
        };
        let plan = match registry.serving(bits).find(asked) {
            Some(entry) => Self::with(entry, exponent_bits, count, device),
            None => {
                let serving = || registry.serving(bits).filter(|entry| entry.runs_on(device));
                // A kernel that wants wider Montgomery parameters costs the host more than it saves.
                let direct = |entry: &&Entry| entry.r2_bits(bits) == bits;
                Self::fastest(serving().filter(direct), exponent_bits, count, device)
                    .or_else(|| Self::fastest(serving(), exponent_bits, count, device))?
            }
        };
        Some(Self {
            window: tuning.window.unwrap_or(plan.window),
            ..plan
        })
    }

    /// The kernel that computes `count` instances soonest, of those that run on the device.
    fn fastest(
        entries: impl Iterator<Item = &'static Entry>,
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
    ) -> Option<Self> {
        entries
            .filter(|entry| entry.runs_on(device))
            .map(|entry| Self::with(entry, exponent_bits, count, device))
            .min_by(|a, b| {
                let time = |plan: &Self| plan.forecast.milliseconds;
                time(a).total_cmp(&time(b))
            })
    }

    fn with(entry: &'static Entry, exponent_bits: u32, count: usize, device: &DeviceInfo) -> Self {
        let family = entry.family;
        Self {
            entry,
            window: family.best_window(exponent_bits),
            forecast: Forecast {
                key: entry.image.key,
                milliseconds: milliseconds(entry, device, count, exponent_bits),
            },
        }
    }
}

/// The time that a kernel should take for `count` instances: by the blocks that a multiprocessor was measured to take one after
/// the other, or else as its family foretells.
fn milliseconds(entry: &Entry, device: &DeviceInfo, count: usize, exponent_bits: u32) -> f64 {
    let foretold = |exponent_bits| {
        let family = entry.family;
        family.milliseconds(entry, device, count, exponent_bits)
    };
    let measured = device.costs().and_then(|costs| costs.of(entry.image.key));
    let Some(times) = measured else {
        return foretold(exponent_bits);
    };
    let per_multiprocessor = count.div_ceil(device.multiprocessors().max(1) as usize);
    let blocks = per_multiprocessor.div_ceil(entry.image.instances_per_block);
    let shared = blocks as f64 * times.shared_ns as f64;
    let whole = 1e-6 * shared.max(times.alone_ns as f64);
    // What part of it other exponents take is the families' to say.
    whole * foretold(exponent_bits) / foretold(entry.bits)
}

/// The kernels for exponentiations modulo numbers of `n_bits` bits with two factors of `prime_bits` bits: of each
/// family the narrowest that take both widths of Montgomery parameters.
#[cfg(feature = "rsa")]
pub(crate) fn crt_classes(registry: Registry, n_bits: u32, prime_bits: u32) -> Vec<CrtClass> {
    let narrowest = |entries| {
        let classes = CrtClass::of_family(entries, registry).into_iter();
        let taking = classes.filter_map(|class| class.taking(n_bits, prime_bits));
        taking.min_by_key(|class| class.bits)
    };
    registry.families().filter_map(narrowest).collect()
}

/// What exponentiations modulo products of two factors are computed with: the kernel for the halves, which take
/// nearly all of the time, decides.
#[cfg(feature = "rsa")]
pub(crate) struct CrtPlan<'a> {
    pub(crate) class: &'a CrtClass,
    pub(crate) halves: Plan,
}

#[cfg(feature = "rsa")]
impl<'a> CrtPlan<'a> {
    /// The fastest of `classes` for `count` instances on one device, or `None` if it can run none of them.
    pub(crate) fn new(
        classes: &'a [CrtClass],
        exponent_bits: u32,
        count: usize,
        device: &DeviceInfo,
    ) -> Option<Self> {
        let plan = |class: &'a CrtClass| {
            let entries = class.halves.iter().copied();
            let halves = Plan::fastest(entries, exponent_bits, 2 * count, device)?;
            Some(Self { class, halves })
        };
        classes
            .iter()
            .filter(|class| class.runs_on(device))
            .filter_map(plan)
            .min_by(|a, b| {
                let time = |plan: &Self| plan.halves.forecast.milliseconds;
                time(a).total_cmp(&time(b))
            })
    }
}

#[cfg(test)]
mod tests;
