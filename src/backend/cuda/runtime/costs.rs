//! Measured running times of a device, which replace the estimates for similar chips.

use alloc::collections::BTreeMap;

use super::module::KernelKey;

/// The running times of one device. Public, like everything that they depend on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Costs {
    /// Nanoseconds of a call beyond its kernels: copies, launches, waiting. `None` if no kernel was
    /// measured.
    pub(crate) call_ns: Option<u64>,
    /// Costs by kernel, for kernels that compute one exponentiation for each instance.
    pub(crate) kernels: BTreeMap<KernelKey, BlockCosts>,
}

/// The times of a block with exponents as long as its numbers, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BlockCosts {
    /// The time of a block that has the device to itself.
    pub(crate) alone_ns: u64,
    /// The time of each block when a multiprocessor is full of them.
    pub(crate) shared_ns: u64,
}

impl Costs {
    /// The operation whose kernels are measured. Kernels for other operations on numbers of equal
    /// width, in equally many lanes, do the same arithmetic and take as long.
    pub(crate) const MEASURED: &str = "mod_exp";

    /// The times of a block of a kernel that exponentiates, if they were measured.
    pub(crate) fn of(&self, key: KernelKey) -> Option<BlockCosts> {
        let measured = KernelKey {
            operation: Self::MEASURED,
            ..key
        };
        self.kernels.get(&measured).copied()
    }
}
