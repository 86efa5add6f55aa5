//! Differences between processor families. No other place asks which one this is.

use core::arch::x86_64::{__cpuid, CpuidResult};
use std::sync::OnceLock;

/// How a look-up beside squarings picks the entry of each lane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LookUp {
    /// By loads that merge into a register. They take a place of the multiply-adds on Intel's processors, and none on AMD's.
    Merges,
    /// By plain loads and masked stores, which take none on Intel's processors, as long as there is at most one in three cycles.
    /// AMD's processors take longer for them.
    Stores,
}

/// How exponentiation in eight lanes goes on a family of processors. The same in all calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tuning {
    pub(super) look_up: LookUp,
    /// Whether the [squarings](super::squarings) of a step are one function, where numbers have one block and there is such a function.
    /// With [`LookUp::Stores`] the multiplication belongs to it, too.
    pub(super) fuses_squarings: bool,
    /// The fewest limbs of numbers whose entries [have halves](super::halves).
    pub(super) min_halved: Option<usize>,
}

impl Tuning {
    /// For a Zen 4, which starts one multiply-add a cycle: everything else waits for these, so the fewest are the best.
    pub(super) const ZEN_4: Self = Self {
        look_up: LookUp::Merges,
        fuses_squarings: true,
        min_halved: Some(20),
    };

    /// For Intel's processors, which start two a cycle, on the ports that take all operations on vectors but loads and stores.
    pub(super) const INTEL: Self = Self {
        look_up: LookUp::Stores,
        fuses_squarings: true,
        min_halved: Some(15),
    };

    /// For a Zen 5, which starts two a cycle and has other ports for the rest, and for processors that were not measured.
    pub(super) const OTHER: Self = Self {
        look_up: LookUp::Merges,
        fuses_squarings: false,
        min_halved: None,
    };

    /// For this processor.
    pub(super) fn detect() -> Self {
        /// Asked once: to a hypervisor each of these instructions is a reason to step in, which takes microseconds.
        static TUNING: OnceLock<Tuning> = OnceLock::new();
        *TUNING.get_or_init(|| {
            let [vendor, signature] = [0, 1].map(cpuid);
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
            let signature = signature.eax;
            let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
            match (name.as_flattened(), family) {
                // Of family 19h nothing else has AVX-512.
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
