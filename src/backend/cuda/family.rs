//! Kernels by family: their properties, the chips that run them, their times, and the choice among
//! them. All choices follow from public numbers.

pub(crate) mod dpf;
pub(crate) mod int;
pub(crate) mod rns;

use alloc::collections::BTreeSet;
use alloc::ffi::CString;
use alloc::vec::Vec;
use core::fmt;
use core::ptr;
use core::time::Duration;

use batch_modexp_core::window::Window;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::runtime::probe::{BlockTimes, DeviceInfo, KernelKey};

/// A family of kernels with one kind of arithmetic. `entry` is always one of the family's own.
///
/// Parameters and records of exponentiations are the same in all families.
pub(crate) trait Family: Sync {
    /// Whether a device has the instructions of a kernel.
    fn has_instructions(&self, _entry: &Entry, _device: &DeviceInfo) -> bool {
        true
    }

    /// The clocks that a multiprocessor should take, relative to an H200.
    fn slowdown(&self, _device: &DeviceInfo) -> f64 {
        1.0
    }

    /// The time of each block in nanoseconds on an H200, when as many share a multiprocessor as on
    /// the device.
    fn shared_ns(&self, entry: &Entry, _device: &DeviceInfo) -> u64 {
        entry.times.shared_ns
    }

    /// The time for exponents of `exponent_bits` bits, in a unit of the family.
    fn relative_time(&self, exponent_bits: u32) -> f64 {
        f64::from(exponent_bits.max(1))
    }

    /// The cost of an exponentiation in multiplications, including table look-ups. The default is
    /// that of families in words: `dpf` and `int`.
    fn cost(&self, window: Window, exponent_bits: u32) -> f64 {
        /// The approximate cost of reading one entry of the window table. It grows with the table.
        /// This value gives the fastest windows of `benches/cuda-h200.csv`.
        const SCAN_COST: f64 = 0.018;
        let digits = window.digit_count(exponent_bits) as f64;
        let table = window.table_len() as f64;
        let squarings = digits * f64::from(window.bits());
        squarings + digits * (1.0 + table * SCAN_COST) + table
    }

    /// The widest window for exponents of `exponent_bits` bits.
    fn widest_window(&self, _exponent_bits: u32) -> u32 {
        Window::MAX_BITS
    }

    /// The fastest window for exponents of `exponent_bits` bits.
    fn best_window(&self, exponent_bits: u32) -> Window {
        let windows = Window::MIN_BITS..=self.widest_window(exponent_bits);
        let cost = |window: &Window| self.cost(*window, exponent_bits);
        let windows = windows.filter_map(Window::new);
        let best = windows.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        best.expect("there are windows")
    }

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

/// The operation of a kernel. `kernels/README.md` has the definitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    /// One exponentiation for each instance.
    ModExp,
    /// The entries of a table for [`FixedExp`](Self::FixedExp): exponentiations, whose results are
    /// operands.
    FixedEntries,
    /// For each instance a product of one entry of each row of a table, which all share.
    FixedExp,
    /// Two exponentiations of one number, modulo two factors of n. Each counts as an instance.
    CrtHalves,
    /// Garner's recombination of the two powers.
    CrtRecombine,
    /// The power modulo n, from the result of the recombination.
    CrtJoin,
    /// The factor and the base for a number and a random one, modulo n: blinding.
    CrtBlind,
}

/// A kernel, with the properties that its family needs.
///
/// Callers see kernels that compute modular exponentiations of a class of widths.
pub struct Entry {
    pub(crate) family: &'static dyn Family,
    pub(crate) operation: Operation,
    /// The width of its numbers in bits.
    pub(crate) bits: u32,
    /// The limbs of a number over all of its lanes: words, or moduli in a base.
    pub(crate) limbs: usize,
    /// The least width of the Montgomery parameters, in bits. The kernel takes `2^(2 * r2_bits)`
    /// modulo the modulus, with `r2_bits` from here to `bits`.
    pub(crate) min_r2_bits: u32,
    /// Doubles of scratch memory for each thread and each entry of the window table; 0 without a
    /// table.
    pub(crate) scratch_doubles: usize,
    /// The times of a block on an H200, medians of `benches/cuda-h200.csv`; 0 for kernels that do
    /// not exponentiate.
    pub(crate) times: BlockTimes,
    pub(crate) key: KernelKey,
    /// The name of the function in its module.
    pub(crate) function: &'static str,
    /// The file of its module in `kernels/ptx`.
    pub(crate) module: &'static str,
    /// The text of its module.
    pub(crate) ptx: &'static CompressedPtx,
    /// Threads in a block.
    pub(crate) threads: u32,
    /// Instances that a block computes at a time.
    pub(crate) instances_per_block: usize,
    /// Dynamic shared memory of a block in bytes.
    pub(crate) shared_bytes: u32,
}

impl Entry {
    /// Its name in the PTX, such as `modexp_1024_t2`: 1024 bits, two lanes for each instance.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.function
    }

    /// The family that it belongs to, such as `dpf` or `int`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.key.family
    }

    /// The widest modulus that it takes, in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The number of instances that a block computes at a time.
    #[must_use]
    pub fn instances_per_block(&self) -> usize {
        self.instances_per_block
    }

    /// The estimated time for `count` exponentiations with exponents as long as the numbers. The
    /// choice of entry points follows it.
    ///
    /// It is measured for the devices of a backend that was [calibrated](super::Cuda::calibrate) at
    /// this width, and predicted otherwise. `None` if the entry point does not run on the device.
    #[must_use]
    pub fn forecast(&self, device: &DeviceInfo, count: usize) -> Option<Duration> {
        let seconds = || self.milliseconds(device, count, self.bits) * 1e-3;
        let runs = self.runs_on(device);
        runs.then(|| Duration::from_secs_f64(seconds()))
    }

    /// Whether the kernel runs on a device, which needs its instructions and its memory.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.shared_bytes <= device.shared_bytes_per_block
            && self.family.has_instructions(self, device)
    }

    /// The estimated time in milliseconds for `count` instances with exponents of `exponent_bits`
    /// bits on one device. Only for kernels that exponentiate.
    ///
    /// A multiprocessor computes its blocks in rounds. Their times are measured ones, or else those
    /// of an H200, scaled by the clock.
    pub(crate) fn milliseconds(
        &self,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64 {
        /// The clock of the H200 on which kernels were measured, in kHz.
        const REFERENCE_CLOCK_KHZ: f64 = 1_980_000.0;
        let family = self.family;
        let costs = device.costs.as_ref();
        let measured = costs.and_then(|costs| costs.kernels.get(&self.key));
        let (alone_ns, shared_ns, scale) = match measured {
            Some(times) => (times.alone_ns, times.shared_ns, 1.0),
            None => {
                let clock = f64::from(device.clock_khz.max(1)) / REFERENCE_CLOCK_KHZ;
                let scale = family.slowdown(device) / clock;
                (self.times.alone_ns, family.shared_ns(self, device), scale)
            }
        };
        let per_multiprocessor = count.div_ceil(device.multiprocessors().max(1) as usize);
        let blocks = per_multiprocessor.div_ceil(self.instances_per_block) as f64;
        let with_full_exponents = (alone_ns as f64).max(blocks * shared_ns as f64) * 1e-6 * scale;
        let relative = family.relative_time(exponent_bits) / family.relative_time(self.bits);
        with_full_exponents * relative
    }

    /// 64-bit words in a number.
    pub(crate) fn words(&self) -> usize {
        self.bits as usize / 64
    }

    /// 64-bit words in a result. Entries of a table are operands: the residues in both bases, two to
    /// a word.
    pub(crate) fn result_words(&self) -> usize {
        match self.operation {
            Operation::FixedEntries => self.limbs,
            _ => self.words(),
        }
    }

    /// The width of the Montgomery parameters for moduli of `bits` bits: that of the moduli, or of
    /// the class if they are too narrow.
    pub(crate) fn r2_bits(&self, bits: u32) -> u32 {
        if bits < self.min_r2_bits {
            self.bits
        } else {
            bits
        }
    }

    /// Whether the kernel takes Montgomery parameters of this width.
    pub(crate) fn takes_r2_bits(&self, r2_bits: u32) -> bool {
        (self.min_r2_bits..=self.bits).contains(&r2_bits)
    }

    /// Panics if this is a kernel for other operations, if the Montgomery parameters have another
    /// width, or if exponents are too long: the kernel would not end, or would give a wrong result.
    pub(crate) fn check(&self, operations: &[Operation], r2_bits: u32, exponent_bits: u32) {
        assert!(operations.contains(&self.operation), "another operation");
        assert!(self.takes_r2_bits(r2_bits), "another width of R^2");
        assert!(exponent_bits <= self.bits, "the exponents are too long");
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family(), self.name())
    }
}

/// The text of a module of `kernels/ptx`, deflated by the build script.
pub(crate) struct CompressedPtx {
    /// The length of the text.
    pub(crate) text_bytes: usize,
    /// A hash of the text, which differs between versions of the crate.
    pub(crate) fingerprint: u64,
    /// The text in the DEFLATE format (RFC 1951).
    pub(crate) deflated: &'static [u8],
}

impl CompressedPtx {
    /// The text.
    pub(crate) fn text(&self) -> CString {
        let text = decompress_to_vec_with_limit(self.deflated, self.text_bytes).ok();
        text.and_then(|text| CString::new(text).ok())
            .unwrap_or_else(|| unreachable!("the build script deflated a text"))
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

/// The entry points for exponentiations modulo numbers of `bits` bits: for each family those of the
/// narrowest class that holds them. None above [`Cuda::MAX_BITS`](super::Cuda::MAX_BITS).
pub fn serving(bits: u32) -> impl Iterator<Item = &'static Entry> {
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

/// The widths with kernels, in bits, ascending. Narrower moduli use those of the next width.
#[must_use]
pub fn widths() -> Vec<u32> {
    let widths: BTreeSet<_> = exponentiating().map(|entry| entry.bits).collect();
    widths.into_iter().collect()
}

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
    let plan = Plan::new(bits, exponent_bits, count, device, Tuning::default());
    plan.map(|plan| plan.entry)
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
        let asked = |entry: &&Entry| tuning.entry_point.is_some_and(|it| ptr::eq(it, *entry));
        // Computing wider Montgomery parameters costs the host more than such a kernel saves.
        let direct = |entry: &&Entry| entry.r2_bits(bits) == bits;
        let plan = Self::fastest(serving(bits).filter(asked), exponent_bits, count, device)
            .or_else(|| Self::fastest(serving(bits).filter(direct), exponent_bits, count, device))
            .or_else(|| Self::fastest(serving(bits), exponent_bits, count, device))?;
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
            .map(|entry| Self {
                entry,
                window: entry.family.best_window(exponent_bits),
                milliseconds: entry.milliseconds(device, count, exponent_bits),
            })
            .min_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds))
    }
}

#[cfg(test)]
mod tests;
