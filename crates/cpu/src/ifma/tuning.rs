//! Differences between processor families. No other code asks for the family.

use core::arch::x86_64::{__cpuid, CpuidResult};
use std::sync::OnceLock;

/// The variant of exponentiation in eight lanes for a processor family. The same in all calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tuning {
    /// Whether the [squarings](super::tiles::Squarings) of a step are one function, for numbers of
    /// one tile with such a function.
    pub(super) fuses_squarings: bool,
    /// The smallest number of limbs with which entries [have halves](super::halves).
    pub(super) min_halved: Option<usize>,
}

impl Tuning {
    /// For a Zen 4, which starts one multiply-add a cycle. Multiply-adds are the bottleneck, so the
    /// fewest are the best.
    pub(super) const ZEN_4: Self = Self {
        fuses_squarings: true,
        min_halved: Some(20),
    };

    /// For Intel's processors. They start two multiply-adds a cycle, on the ports of all vector
    /// operations but plain loads and stores. The look-up of entries with halves is twice as long.
    pub(super) const INTEL: Self = Self {
        fuses_squarings: true,
        min_halved: None,
    };

    /// For a Zen 5, which starts two a cycle and has other ports for the rest, and for processors
    /// that were not measured.
    pub(super) const OTHER: Self = Self {
        fuses_squarings: false,
        min_halved: None,
    };

    /// For this processor.
    pub(super) fn detect() -> Self {
        /// Asked once: under a hypervisor each of these instructions exits to the host, which takes
        /// microseconds.
        static TUNING: OnceLock<Tuning> = OnceLock::new();
        *TUNING.get_or_init(|| {
            let [vendor, signature] = [0, 1].map(cpuid);
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
            let signature = signature.eax;
            let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
            match (name.as_flattened(), family) {
                // No other processor of family 19h has AVX-512.
                (b"AuthenticAMD", 0x19) => Self::ZEN_4,
                (b"GenuineIntel", _) => Self::INTEL,
                _ => Self::OTHER,
            }
        })
    }
}

/// The processor's answer for `leaf`. Rust before 1.94 calls the intrinsic unsafe.
#[allow(unsafe_code, unused_unsafe)]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, which reads and writes no memory.
    unsafe { __cpuid(leaf) }
}
