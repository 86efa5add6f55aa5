//! The instructions across lanes in plain Rust, for tests on any machine and under valgrind.

use core::array::from_fn;
use core::hint::black_box;

use super::across::{Across, Pair, PairKernel};
use crate::backend::ifma::madd52::{Limb8, RADIX_BITS};
use crate::backend::ifma::portable::Portable;

/// As for `Madd52`: not inlined, since the kernels are unrolled.
impl Across for Portable<Limb8> {
    #[inline(never)]
    fn store_pairs(self, pairs: &mut [Pair; 4], Limb8(vector): Limb8) {
        *pairs = from_fn(|i| Pair([vector[2 * i], vector[2 * i + 1]]));
    }

    #[inline(never)]
    fn gather(self, pairs: [&Pair; 4]) -> Limb8 {
        Limb8(from_fn(|i| pairs[i / 2].0[i % 2]))
    }

    #[inline(never)]
    fn scatter(self, pairs: [&mut Pair; 4], Limb8(vector): Limb8) {
        for (i, pair) in pairs.into_iter().enumerate() {
            *pair = Pair([vector[2 * i], vector[2 * i + 1]]);
        }
    }

    #[inline(never)]
    fn spread(self, pair: &Pair) -> Limb8 {
        Limb8(from_fn(|i| pair.0[i % 2]))
    }

    #[inline(never)]
    fn spread_lowest(self, Limb8(a): Limb8) -> Limb8 {
        Limb8(from_fn(|i| a[i % 2]))
    }

    #[inline(never)]
    fn lowest(self, Limb8(a): Limb8) -> Limb8 {
        Limb8(from_fn(|i| if i < 2 { a[i] } else { 0 }))
    }

    #[inline(never)]
    fn down(self, Limb8(a): Limb8) -> Limb8 {
        Limb8(from_fn(|i| a.get(i + 2).copied().unwrap_or(0)))
    }

    #[inline(never)]
    fn up(self, Limb8(a): Limb8) -> Limb8 {
        Limb8(from_fn(|i| if i < 2 { 0 } else { a[i - 2] }))
    }

    #[inline(never)]
    fn mask_of(self, Limb8(bit): Limb8) -> Limb8 {
        Limb8(bit.map(|bit| black_box(bit.wrapping_neg()) >> (64 - RADIX_BITS)))
    }

    #[inline(never)]
    fn and(self, Limb8(a): Limb8, Limb8(b): Limb8) -> Limb8 {
        Limb8(from_fn(|i| a[i] & b[i]))
    }

    #[inline(never)]
    fn pick_pairs(
        self,
        Limb8(old): Limb8,
        new: &[Pair; 4],
        Limb8(digits): Limb8,
        entry: u64,
    ) -> Limb8 {
        Limb8(from_fn(|i| {
            // All ones where the digit is the entry.
            let mask = black_box((((digits[i] ^ entry) as i64 - 1) >> 63) as u64);
            old[i] & !mask | new[i / 2].0[i % 2] & mask
        }))
    }

    #[inline(never)]
    fn run_pairs<K: PairKernel, const J: usize>(self, kernel: K) {
        kernel.run::<Self, J>(self);
    }
}
