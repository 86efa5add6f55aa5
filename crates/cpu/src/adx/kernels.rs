//! Proof that the processor has the instructions, and the operations on tiles.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_cmpeq_epi32, _mm256_loadu_si256,
    _mm256_or_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::assembly::{
    double_and_add_squares, eliminate, multiply, multiply_add, square, square_add, subtract,
};
use super::montgomery::{Tile, Unit};
use super::{tiles, tiles_mut};

/// Proof that MULX, ADCX, ADOX and AVX2 can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token(());

impl Token {
    /// Asks the processor and the operating system.
    pub(crate) fn detect() -> Option<Self> {
        let usable = std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("adx")
            && std::is_x86_feature_detected!("avx2");
        usable.then_some(Self(()))
    }

    /// Valgrind has the instructions but does not report them; the processor need not have them.
    #[cfg(test)]
    pub(crate) fn under_valgrind() -> Self {
        assert!(crate::valgrind::is_under_valgrind());
        Self(())
    }
}

impl Unit for Token {
    fn multiply(self, product: &mut [Tile], a: &[Tile], b: &Tile) {
        assert!(!a.is_empty() && product.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `product` has one tile more than `a`, which
        // has at least one.
        unsafe { multiply(product.as_mut_ptr(), a.as_ptr(), b, a.len()) }
    }

    fn multiply_add(self, sum: &mut [Tile], a: &[Tile], b: &Tile) {
        assert!(!a.is_empty() && sum.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `sum` has one tile more than `a`, which has at
        // least one.
        unsafe { multiply_add(sum.as_mut_ptr(), a.as_ptr(), b, a.len()) }
    }

    fn square(self, product: &mut [Tile], a: &[Tile]) {
        assert!(!a.is_empty() && product.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `product` has one tile more than `a`, which
        // has at least one.
        unsafe { square(product.as_mut_ptr(), a.as_ptr(), a.len()) }
    }

    fn square_add(self, sum: &mut [Tile], a: &[Tile]) {
        assert!(!a.is_empty() && sum.len() == a.len() + 1);
        // SAFETY: the token proves the instructions; `sum` has one tile more than `a`, which has at
        // least one.
        unsafe { square_add(sum.as_mut_ptr(), a.as_ptr(), a.len()) }
    }

    fn eliminate(self, sum: &mut [Tile], modulus: &[Tile], neg_inv: u128, carry: u64) -> u64 {
        assert!(!modulus.is_empty() && sum.len() == modulus.len() + 1);
        let (sum, count) = (sum.as_mut_ptr(), modulus.len());
        let (low, high) = (neg_inv as u64, (neg_inv >> 64) as u64);
        // SAFETY: the token proves the instructions; `sum` has one tile more than the modulus,
        // which has at least one.
        unsafe { eliminate(sum, modulus.as_ptr(), count, low, high, carry) }
    }

    fn double_and_add_squares(self, sum: &mut [Tile], a: &[Tile]) {
        assert!(!a.is_empty() && sum.len() == 2 * a.len());
        // SAFETY: the token proves the instructions; `sum` is twice as long as `a`, which has at
        // least one tile.
        unsafe { double_and_add_squares(sum.as_mut_ptr(), a.as_ptr(), a.len()) }
    }

    fn subtract(self, out: &mut [Tile], a: &[Tile], b: &[Tile], take: u64) {
        assert!(!a.is_empty() && out.len() == a.len() && b.len() == a.len());
        // SAFETY: all three have the same length, at least one tile.
        unsafe { subtract(out.as_mut_ptr(), a.as_ptr(), take, b.as_ptr(), a.len()) }
    }

    fn or_entry(self, out: &mut [u32], table: &[u32], digit: u8) {
        // SAFETY: the token proves AVX2.
        unsafe { or_entry(out, table, digit) }
    }
}

/// Adds entry `digit` of `table` to `out`, two tiles at a time.
#[target_feature(enable = "avx2")]
fn or_entry(out: &mut [u32], table: &[u32], digit: u8) {
    let tiles = tiles(out).len();
    for first in (0..tiles - tiles % 2).step_by(2) {
        or_tiles::<2>(out, table, digit, first);
    }
    if tiles % 2 == 1 {
        or_tiles::<1>(out, table, digit, tiles - 1);
    }
}

/// Adds `COUNT` tiles of the entry from tile `first` on.
#[target_feature(enable = "avx2")]
fn or_tiles<const COUNT: usize>(out: &mut [u32], table: &[u32], digit: u8, first: usize) {
    let (entry_len, digit) = (out.len(), _mm256_set1_epi32(i32::from(digit)));
    let (one, mut entry) = (_mm256_set1_epi32(1), _mm256_setzero_si256());
    let mut chosen = [[_mm256_setzero_si256(); 2]; COUNT];
    for entry_tiles in table.chunks_exact(entry_len) {
        // All ones for the wanted entry.
        let mask = _mm256_cmpeq_epi32(entry, digit);
        let entry_tiles = &tiles(entry_tiles)[first..][..COUNT];
        for (tile, chosen) in entry_tiles.iter().zip(&mut chosen) {
            let tile: *const __m256i = tile.as_ptr().cast();
            for (half, chosen) in chosen.iter_mut().enumerate() {
                // SAFETY: a tile is two times 32 bytes.
                let half = unsafe { _mm256_loadu_si256(tile.add(half)) };
                *chosen = _mm256_or_si256(*chosen, _mm256_and_si256(half, mask));
            }
        }
        entry = _mm256_add_epi32(entry, one);
    }
    for (out, chosen) in tiles_mut(out)[first..].iter_mut().zip(chosen) {
        let out: *mut __m256i = out.as_mut_ptr().cast();
        for (half, chosen) in chosen.into_iter().enumerate() {
            // SAFETY: a tile is two times 32 bytes.
            unsafe {
                let out = out.add(half);
                _mm256_storeu_si256(out, _mm256_or_si256(_mm256_loadu_si256(out), chosen));
            }
        }
    }
}
