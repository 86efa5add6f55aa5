//! The interface of a kernel family: operands in memory, launches, supported chips, and costs.

#[cfg(feature = "rsa")]
pub(crate) mod crt;
pub(crate) mod dpf;
pub(crate) mod entry;
pub(crate) mod fixed;
pub(crate) mod int;
mod modexp;
pub(crate) mod rns;
pub(crate) mod rns_mma;

use alloc::vec::Vec;
use core::fmt;

use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use self::entry::Entry;
use super::runtime::launch::Launch;
use super::runtime::layout::{Layout, Part};
use super::runtime::module::Grid;
use super::runtime::probe::DeviceInfo;
use super::words::NonTemporal;

/// A family of kernels with one kind of arithmetic. `entry` is always one of the family's own.
///
/// A family makes its launches and guarantees that they are sound: see [`Launch::new`].
pub(crate) trait Family: fmt::Debug + Sync {
    /// Whether a kernel runs on a device, which needs its instructions and its memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool;

    /// Whether this family is faster on the device than a processor with many cores.
    fn is_fast_on(&self, device: &DeviceInfo) -> bool;

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

    /// Lays out a chunk of exponentiations in memory, and makes its launches.
    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork;

    /// Writes the whole record of a modulus. By default: the modulus, and `r2`, which is
    /// `2^(2 * r2_bits)` modulo the modulus.
    fn write_modulus<'w>(
        &self,
        entry: &Entry,
        modulus: &[Limb],
        r2: &[Limb],
        record: &'w mut [u64],
        stores: &mut NonTemporal<'w>,
    ) {
        let (first, second) = record.split_at_mut(entry.words());
        stores.copy_in(modulus, first);
        stores.copy_in(r2, second);
    }

    /// Whether the output in place of a power marks a modulus that the family does not support. The
    /// host computes such an instance, which makes this answer public.
    fn is_refused(&self, _power: &[u64]) -> bool {
        false
    }

    /// The operations on numbers modulo a product of two primes, if the family has them.
    #[cfg(feature = "rsa")]
    fn crt(&self) -> Option<&dyn crt::CrtFamily> {
        None
    }
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
