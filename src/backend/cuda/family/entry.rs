//! Properties of kernels, common to all families.

use super::Family;
use crate::backend::cuda::runtime::module::Image;
use crate::backend::cuda::runtime::probe::DeviceInfo;

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
    #[cfg(feature = "rsa")]
    CrtHalves,
    /// Garner's recombination of the two powers.
    #[cfg(feature = "rsa")]
    CrtRecombine,
    /// The power modulo n, from the result of the recombination.
    #[cfg(feature = "rsa")]
    CrtJoin,
    /// The product of a number and a public power of another, modulo n, for blinding and
    /// unblinding.
    #[cfg(feature = "rsa")]
    CrtBlind,
}

/// A kernel with the properties that its family needs.
#[derive(Debug)]
pub(crate) struct Entry {
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
    /// The times of a block, for kernels that exponentiate through a window table.
    pub(crate) times: Option<BlockTimes>,
    pub(crate) image: Image,
}

/// Times of a block in milliseconds on an H200, with exponents as long as the numbers: medians of
/// `benches/cuda-h200.csv`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTimes {
    /// The time of a block that has a multiprocessor to itself.
    pub(crate) alone_ms: f64,
    /// The time for each block when many share a multiprocessor.
    pub(crate) shared_ms: f64,
}

impl Entry {
    /// Whether the kernel runs on a device.
    pub(crate) fn runs_on(&self, device: &DeviceInfo) -> bool {
        self.family.runs_on(self, device)
    }

    /// The blocks that a multiprocessor computes of `count` instances.
    pub(crate) fn blocks_each(&self, device: &DeviceInfo, count: usize) -> f64 {
        let per_multiprocessor = count.div_ceil(device.multiprocessors().max(1) as usize);
        per_multiprocessor.div_ceil(self.image.instances_per_block) as f64
    }

    /// The times of a block of a kernel that exponentiates.
    pub(crate) fn block_times(&self) -> BlockTimes {
        let Some(times) = self.times else {
            unreachable!("kernels that exponentiate have times");
        };
        times
    }

    /// 64-bit words in a number.
    pub(crate) fn words(&self) -> usize {
        self.bits as usize / 64
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
}
