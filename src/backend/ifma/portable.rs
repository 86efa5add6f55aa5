//! The instructions in plain Rust, for tests on any machine and under valgrind.

use core::array::from_fn;
use core::hint::black_box;

use super::madd52::{Kernel, Limb, Madd52, RADIX_BITS};

/// Needs nothing of the processor. Its methods are not inlined: unrolled, they would take minutes to
/// compile.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const MASK: u64 = (1 << RADIX_BITS) - 1;

fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK) * u128::from(b & MASK)
}

impl Madd52 for Portable {
    type Vector = [u64; 8];
    /// All ones in the lanes that are chosen.
    type Mask = [u64; 8];

    fn zero(self) -> [u64; 8] {
        [0; 8]
    }

    #[inline(never)]
    fn load(self, limb: &Limb) -> [u64; 8] {
        limb.0
    }

    #[inline(never)]
    fn store(self, limb: &mut Limb, vector: [u64; 8]) {
        limb.0 = vector;
    }

    #[inline(never)]
    fn madd_lo(self, sum: [u64; 8], a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        from_fn(|i| sum[i] + (product(a[i], b[i]) as u64 & MASK))
    }

    #[inline(never)]
    fn madd_hi(self, sum: [u64; 8], a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        from_fn(|i| sum[i] + (product(a[i], b[i]) >> RADIX_BITS) as u64)
    }

    #[inline(never)]
    fn add(self, a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        from_fn(|i| a[i] + b[i])
    }

    #[inline(never)]
    fn carry(self, a: [u64; 8]) -> [u64; 8] {
        a.map(|lane| lane >> RADIX_BITS)
    }

    #[inline(never)]
    fn carry_of_cleared(self, a: [u64; 8]) -> [u64; 8] {
        a.map(|lane| (lane + MASK) >> RADIX_BITS)
    }

    #[inline(never)]
    fn low(self, a: [u64; 8]) -> [u64; 8] {
        a.map(|lane| lane & MASK)
    }

    fn widen(self, bytes: [u8; 8]) -> [u64; 8] {
        bytes.map(u64::from)
    }

    #[inline(never)]
    fn equal(self, a: [u64; 8], b: u64) -> [u64; 8] {
        a.map(|lane| black_box((((lane ^ b) as i64 - 1) >> 63) as u64))
    }

    #[inline(never)]
    fn merge(self, old: [u64; 8], mask: [u64; 8], new: &Limb) -> [u64; 8] {
        from_fn(|i| old[i] & !mask[i] | new.0[i] & mask[i])
    }

    fn reload<T>(self, reference: &T) -> &T {
        black_box(reference)
    }

    #[inline(never)]
    fn run<K: Kernel, const B: usize>(self, kernel: &mut K) {
        kernel.run::<Self, B>(self);
    }
}
