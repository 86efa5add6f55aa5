//! The instructions in plain Rust, for tests on any machine and under valgrind.

use core::hint::black_box;
use core::marker::PhantomData;

use super::madd52::{Kernel, Limb, Limb4, Limb8, MAX_LANES, Madd52, RADIX_BITS};

/// As many lanes as `L` has; needs nothing of the processor. Its methods are not inlined: unrolled, they would take minutes
/// to compile.
#[derive(Clone, Copy)]
pub(in crate::backend) struct Portable<L> {
    saves_products: bool,
    lanes: PhantomData<L>,
}

/// As AVX-512 has them.
pub(super) const EIGHT: Portable<Limb8> = Portable {
    saves_products: false,
    lanes: PhantomData,
};

/// The same, on processors with one multiply-add a cycle.
pub(super) const EIGHT_SAVING: Portable<Limb8> = Portable {
    saves_products: true,
    ..EIGHT
};

/// As AVX-IFMA has them.
pub(super) const FOUR: Portable<Limb4> = Portable {
    saves_products: false,
    lanes: PhantomData,
};

const MASK: u64 = (1 << RADIX_BITS) - 1;

fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK) * u128::from(b & MASK)
}

/// Each lane by its number.
fn from_fn<L: Limb>(f: impl Fn(usize) -> u64) -> L {
    let mut vector = L::ZERO;
    for (i, lane) in vector.lanes_mut().iter_mut().enumerate() {
        *lane = f(i);
    }
    vector
}

/// Each lane by its number and its value, in its place: with little optimisation all else is copied once more.
fn change<L: Limb>(mut vector: L, f: impl Fn(usize, u64) -> u64) -> L {
    for (i, lane) in vector.lanes_mut().iter_mut().enumerate() {
        *lane = f(i, *lane);
    }
    vector
}

/// Each lane by its value.
fn map<L: Limb>(a: L, f: impl Fn(u64) -> u64) -> L {
    change(a, |_, lane| f(lane))
}

impl<L: Limb> Madd52 for Portable<L> {
    const MAX_BLOCK: usize = if L::LANES == 8 { 20 } else { 10 };
    const MERGES_INTO_ZERO: bool = L::LANES != 8;
    const CAN_SAVE_PRODUCTS: bool = L::LANES == 8;

    type Limb = L;
    type Vector = L;
    /// All ones in the lanes that are chosen.
    type Mask = L;

    fn saves_products(self) -> bool {
        self.saves_products
    }

    fn zero(self) -> L {
        L::ZERO
    }

    #[inline(never)]
    fn load(self, limb: &L) -> L {
        *limb
    }

    #[inline(never)]
    fn store(self, limb: &mut L, vector: L) {
        *limb = vector;
    }

    #[inline(never)]
    fn madd_lo(self, sum: L, a: L, b: L) -> L {
        let (a, b) = (a.lanes(), b.lanes());
        change(sum, |i, sum| sum + (product(a[i], b[i]) as u64 & MASK))
    }

    #[inline(never)]
    fn madd_hi(self, sum: L, a: L, b: L) -> L {
        let (a, b) = (a.lanes(), b.lanes());
        change(sum, |i, sum| {
            sum + (product(a[i], b[i]) >> RADIX_BITS) as u64
        })
    }

    #[inline(never)]
    fn add(self, a: L, b: L) -> L {
        change(a, |i, a| a + b.lanes()[i])
    }

    #[inline(never)]
    fn carry(self, a: L) -> L {
        map(a, |lane| lane >> RADIX_BITS)
    }

    #[inline(never)]
    fn carry_of_cleared(self, a: L) -> L {
        map(a, |lane| (lane + MASK) >> RADIX_BITS)
    }

    #[inline(never)]
    fn low(self, a: L) -> L {
        map(a, |lane| lane & MASK)
    }

    fn widen(self, bytes: [u8; MAX_LANES]) -> L {
        from_fn(|i| u64::from(bytes[i]))
    }

    #[inline(never)]
    fn equal(self, a: L, b: u64) -> L {
        map(a, |lane| black_box((((lane ^ b) as i64 - 1) >> 63) as u64))
    }

    /// With zeros only where that is allowed, as the processor does it.
    #[inline(never)]
    fn merge(self, old: L, mask: L, new: &L) -> L {
        let kept = u64::from(Self::MERGES_INTO_ZERO).wrapping_neg();
        let (mask, new) = (mask.lanes(), new.lanes());
        change(old, |i, old| old & (!mask[i] | kept) | new[i] & mask[i])
    }

    fn reload<T>(self, reference: &T) -> &T {
        black_box(reference)
    }

    #[inline(never)]
    fn run<K: Kernel<L>, const B: usize>(self, kernel: &mut K) {
        kernel.run::<Self, B>(self);
    }
}
