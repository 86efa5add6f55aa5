//! The instructions across lanes in plain Rust, for tests on any machine and under valgrind.

use core::array::from_fn;
use core::hint::black_box;

use super::across::{Across, Pair, PairKernel};
use crate::ifma::madd52::{Limb8, RADIX_BITS};
use crate::ifma::portable::{Handle, Portable, change, make, within};

/// Not inlined, as for `Madd52`, since the kernels are unrolled.
impl Across for Portable<Limb8> {
    #[inline(never)]
    fn store_pairs(self, pairs: &mut [Pair; 4], vector: Handle) {
        let vector = vector.lanes();
        *pairs = from_fn(|i| Pair([vector[2 * i], vector[2 * i + 1]]));
    }

    #[inline(never)]
    fn gather(self, pairs: [&Pair; 4]) -> Handle {
        make(|i| pairs[i / 2].0[i % 2])
    }

    #[inline(never)]
    fn scatter(self, pairs: [&mut Pair; 4], vector: Handle) {
        let vector = vector.lanes();
        for (i, pair) in pairs.into_iter().enumerate() {
            *pair = Pair([vector[2 * i], vector[2 * i + 1]]);
        }
    }

    #[inline(never)]
    fn spread(self, pair: &Pair) -> Handle {
        make(|i| pair.0[i % 2])
    }

    #[inline(never)]
    fn spread_lowest(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| a[i % 2])
    }

    #[inline(never)]
    fn lowest(self, a: Handle) -> Handle {
        change(a, |i, a| if i < 2 { a } else { 0 })
    }

    #[inline(never)]
    fn down(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| a.get(i + 2).copied().unwrap_or(0))
    }

    #[inline(never)]
    fn up(self, a: Handle) -> Handle {
        let a = a.lanes();
        make(|i| if i < 2 { 0 } else { a[i - 2] })
    }

    #[inline(never)]
    fn mask_of(self, bit: Handle) -> Handle {
        change(bit, |_, bit| {
            black_box(bit.wrapping_neg()) >> (64 - RADIX_BITS)
        })
    }

    #[inline(never)]
    fn and(self, a: Handle, b: Handle) -> Handle {
        let b = b.lanes();
        change(a, |i, a| a & b[i])
    }

    #[inline(never)]
    fn pick_pairs(self, old: Handle, new: &[Pair; 4], digits: Handle, entry: u64) -> Handle {
        let digits = digits.lanes();
        change(old, |i, old| {
            // All ones where the digit is the entry.
            let mask = black_box((((digits[i] ^ entry) as i64 - 1) >> 63) as u64);
            old & !mask | new[i / 2].0[i % 2] & mask
        })
    }

    #[inline(never)]
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K) {
        within(|| kernel.run::<Self, J>(self));
    }
}
