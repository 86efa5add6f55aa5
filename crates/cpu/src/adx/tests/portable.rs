//! The operations in plain Rust: the reference for tests.

use core::hint::black_box;

use crate::adx::montgomery::{TILE, Tile, Unit};
use crate::adx::word;

/// Requires no processor features.
#[derive(Clone, Copy)]
pub(super) struct Portable;

/// Words in a tile.
const WORDS: usize = TILE / 2;

impl Unit for Portable {
    fn multiply(self, product: &mut [Tile], a: &[Tile], b: &Tile) {
        product.as_flattened_mut().fill(0);
        self.multiply_add(product, a, b);
    }

    fn multiply_add(self, sum: &mut [Tile], a: &[Tile], b: &Tile) {
        let (mut sum_words, a) = (words(sum.as_flattened()), words(a.as_flattened()));
        for (i, b) in words(b).into_iter().enumerate() {
            add_row(&mut sum_words[i..], &a, b);
        }
        store(&sum_words, sum.as_flattened_mut());
    }

    fn square(self, product: &mut [Tile], a: &[Tile]) {
        product.as_flattened_mut().fill(0);
        self.square_add(product, a);
    }

    fn square_add(self, sum: &mut [Tile], a: &[Tile]) {
        let (mut sum_words, a) = (words(sum.as_flattened()), words(a.as_flattened()));
        for (i, word) in a[..WORDS].iter().enumerate() {
            add_row(&mut sum_words[2 * i + 1..], &a[i + 1..], *word);
        }
        store(&sum_words, sum.as_flattened_mut());
    }

    fn eliminate(self, sum: &mut [Tile], modulus: &[Tile], neg_inv: u128, carry: u64) -> u64 {
        let (mut sum_words, modulus) = (words(sum.as_flattened()), words(modulus.as_flattened()));
        let mut quotients = [0; WORDS];
        let mut out = 0;
        for (i, quotient) in quotients.iter_mut().enumerate() {
            *quotient = sum_words[i].wrapping_mul(neg_inv as u64);
            out += add_row(&mut sum_words[i..], &modulus, *quotient);
        }
        out += add(&mut sum_words[modulus.len()..], carry);
        sum_words[..WORDS].copy_from_slice(&quotients);
        store(&sum_words, sum.as_flattened_mut());
        out
    }

    fn double_and_add_squares(self, sum: &mut [Tile], a: &[Tile]) {
        let mut sum_words = words(sum.as_flattened());
        let mut carry = 0;
        for (pair, a) in sum_words.chunks_exact_mut(2).zip(words(a.as_flattened())) {
            let square = u128::from(a) * u128::from(a);
            for (word, half) in pair.iter_mut().zip([square as u64, (square >> 64) as u64]) {
                let total = 2 * u128::from(*word) + u128::from(half) + carry;
                *word = total as u64;
                carry = total >> 64;
            }
        }
        store(&sum_words, sum.as_flattened_mut());
    }

    fn subtract(self, out: &mut [Tile], a: &[Tile], b: &[Tile], take: u64) {
        let mut borrow = 0;
        let pairs = a.as_flattened().iter().zip(b.as_flattened());
        for (out, (a, b)) in out.as_flattened_mut().iter_mut().zip(pairs) {
            let difference = u64::from(*a)
                .wrapping_sub(take * u64::from(*b))
                .wrapping_sub(borrow);
            *out = difference as u32;
            borrow = difference >> 63;
        }
    }

    fn or_entry(self, out: &mut [u32], table: &[u32], digit: u8) {
        for (i, entry) in (0u32..).zip(table.chunks_exact(out.len())) {
            let difference = i ^ u32::from(digit);
            // All ones for the entry.
            let mask = black_box((difference.wrapping_sub(1) >> 31).wrapping_neg());
            for (out, entry) in out.iter_mut().zip(entry) {
                *out |= entry & mask;
            }
        }
    }
}

/// Adds `a * b` to `sum`. Returns the carry out.
fn add_row(sum: &mut [u64], a: &[u64], b: u64) -> u64 {
    let mut carry = 0;
    let (low, high) = sum.split_at_mut(a.len());
    for (sum, a) in low.iter_mut().zip(a) {
        let total = u128::from(*a) * u128::from(b) + u128::from(*sum) + u128::from(carry);
        *sum = total as u64;
        carry = (total >> 64) as u64;
    }
    add(high, carry)
}

/// Adds `value` to `sum`. Returns the carry out.
fn add(sum: &mut [u64], value: u64) -> u64 {
    let mut carry = value;
    for word in sum {
        let total = u128::from(*word) + u128::from(carry);
        *word = total as u64;
        carry = (total >> 64) as u64;
    }
    carry
}

fn words(limbs: &[u32]) -> alloc::vec::Vec<u64> {
    limbs.as_chunks().0.iter().map(|pair| word(*pair)).collect()
}

fn store(words: &[u64], limbs: &mut [u32]) {
    for (pair, value) in limbs.as_chunks_mut().0.iter_mut().zip(words) {
        *pair = [*value as u32, (*value >> 32) as u32];
    }
}
