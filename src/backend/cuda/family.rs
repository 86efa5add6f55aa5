//! What a family of kernels says of itself: how its operands lie in memory, how its kernels are launched, which
//! chips they run on, and what they cost.

#[cfg(feature = "rsa")]
pub(crate) mod crt;
pub(crate) mod dpf;
pub(crate) mod entry;
pub(crate) mod int;
mod modexp;
pub(crate) mod mul;
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

/// One way of doing the arithmetic. `entry` is always one of the family's own.
///
/// A family makes its launches, and vouches for them: see [`Launch::new`].
pub(crate) trait Family: fmt::Debug + Sync {
    /// Whether a kernel runs on a device: whether the chip has its instructions and its memory.
    fn runs_on(&self, entry: &Entry, device: &DeviceInfo) -> bool;

    /// Whether the device is of a kind on which this family is faster than a processor with many cores.
    fn is_fast_on(&self, device: &DeviceInfo) -> bool;

    /// The time in milliseconds that a device should take for `count` instances with exponents of
    /// `exponent_bits` bits; only for kernels that exponentiate.
    fn milliseconds(
        &self,
        entry: &Entry,
        device: &DeviceInfo,
        count: usize,
        exponent_bits: u32,
    ) -> f64;

    /// The fastest window for exponents of `exponent_bits` bits.
    fn best_window(&self, exponent_bits: u32) -> Window;

    /// A window table has room for at least so many powers. Other numbers share its place.
    fn fewest_entries(&self) -> usize {
        8
    }

    /// Lays a chunk of exponentiations out in memory, and makes its launches.
    fn mod_exp(&self, entry: &Entry, grid: Grid, chunk: &ModExpChunk) -> ModExpWork;

    /// Writes the record of a modulus, all of it: unless a family does otherwise, the modulus and `r2`, which is `2^(2 * r2_bits)` modulo the
    /// modulus.
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

    /// Whether what a kernel wrote in place of a power says that its modulus is none for the family. Such an instance
    /// is computed on the host, which makes the answer public.
    fn is_refused(&self, _power: &[u64]) -> bool {
        false
    }

    /// The operations on numbers modulo a product of two primes, if the family has them.
    #[cfg(feature = "rsa")]
    fn crt(&self) -> Option<&dyn crt::CrtFamily> {
        None
    }
}

/// A chunk of exponentiations; all of it is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModExpChunk {
    /// The number of instances, at least 1.
    pub(crate) count: usize,
    /// The most moduli that there may be.
    pub(crate) moduli: usize,
    /// The length of the exponents, at most the width of the kernel.
    pub(crate) exponent_bits: u32,
    /// The width of the Montgomery parameters, as from [`Entry::r2_bits`].
    pub(crate) r2_bits: u32,
    pub(crate) window: Window,
}

/// Where the operands of a chunk lie, and what is launched. Numbers are little-endian 64-bit words, the numbers
/// of all instances one after the other, equally wide, with zeros above. The parts of the inputs are in this order.
pub(crate) struct ModExpWork {
    pub(crate) layout: Layout,
    pub(crate) base: Part,
    pub(crate) exponent: Part,
    /// For each instance the index of the record of its modulus, 32 bits.
    pub(crate) modulus_index: Part,
    /// Room for a record for each modulus, of which the first are used.
    pub(crate) moduli: Part,
    pub(crate) power: Part,
    pub(crate) launches: Vec<Launch>,
}
