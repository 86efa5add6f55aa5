//! The instructions in plain Rust, for tests on any machine and under valgrind.

use core::array::from_fn;
use core::hint::black_box;

use crate::fma::fma51::{Fma51, HIGH, Kernel, LOW, Limb, MASK, RADIX_BITS, TWO_52};

/// Requires no processor features.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Fma51 for Portable {
    type Floats = [f64; 4];
    type Sums = [u64; 4];

    fn load(self, limb: &Limb) -> [f64; 4] {
        limb.0.map(f64::from_bits)
    }

    fn store(self, limb: &mut Limb, floats: [f64; 4]) {
        limb.0 = floats.map(f64::to_bits);
    }

    fn load_sums(self, limb: &Limb) -> [u64; 4] {
        limb.0
    }

    fn store_sums(self, limb: &mut Limb, sums: [u64; 4]) {
        limb.0 = sums;
    }

    fn splat(self, value: u64) -> [u64; 4] {
        [value; 4]
    }

    #[inline(never)]
    fn product(self, a: [f64; 4], b: [f64; 4]) -> ([u64; 4], [u64; 4]) {
        let high: [f64; 4] = from_fn(|i| a[i].mul_add(b[i], HIGH));
        let low = from_fn(|i| a[i].mul_add(b[i], LOW - high[i]).to_bits());
        (high.map(f64::to_bits), low)
    }

    fn double(self, a: [f64; 4]) -> [f64; 4] {
        a.map(|lane| 2.0 * lane)
    }

    fn add(self, a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }

    fn carry(self, a: [u64; 4]) -> [u64; 4] {
        a.map(|lane| lane >> RADIX_BITS)
    }

    fn limb(self, a: [u64; 4]) -> [f64; 4] {
        a.map(|lane| f64::from_bits(lane & MASK | TWO_52.to_bits()) - TWO_52)
    }

    fn pick(self, old: [u64; 4], new: &Limb, digits: [u64; 4], entry: u64) -> [u64; 4] {
        from_fn(|i| {
            // All ones where the digit is the entry.
            let mask = black_box((((digits[i] ^ entry) as i64 - 1) >> 63) as u64);
            old[i] | new.0[i] & mask
        })
    }

    fn run<K: Kernel>(self, kernel: K) {
        kernel.run(self);
    }
}
