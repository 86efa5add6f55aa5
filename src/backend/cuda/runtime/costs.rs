//! What a device was found to take, in place of what is foreseen for chips like it.

use alloc::collections::BTreeMap;

use super::module::KernelKey;

/// The running times of one device; public, as all that they depend on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Costs {
    /// What a call takes besides its kernels, in nanoseconds: copies, launches, waiting; if any kernel
    /// was measured.
    pub(crate) call_ns: Option<u64>,
    /// By the keys of kernels that compute one exponentiation for each instance.
    pub(crate) kernels: BTreeMap<KernelKey, BlockCosts>,
}

/// What a block of a kernel takes with exponents as long as its numbers, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BlockCosts {
    /// A block that has the device to itself.
    pub(crate) alone_ns: u64,
    /// Each of the blocks of a multiprocessor, where as many share it as have room.
    pub(crate) shared_ns: u64,
}

impl Costs {
    /// The operation whose kernels are measured. Those for other operations on numbers of the same width, in as many lanes, do the
    /// same arithmetic, and take as long.
    pub(crate) const MEASURED: &str = "mod_exp";

    /// What a block of a kernel that exponentiates takes, if that was measured.
    pub(crate) fn of(&self, key: KernelKey) -> Option<BlockCosts> {
        let measured = KernelKey {
            operation: Self::MEASURED,
            ..key
        };
        self.kernels.get(&measured).copied()
    }
}
