//! The starting values of column sums.
//!
//! The high half of a product adds `0x466 << 52` to its column on top of its value, the low half
//! `(0x433 << 52) + 2^51`. The number of both halves in each column is known. The column starts
//! with the negative of these constants, modulo 2^64, so that its final sum is right. The low 51
//! bits are right at any time.
//!
//! A low half may be negative, down to -2^50, and so may be a sum. To shift without regard to
//! signs, every column starts `2n * 2^51` higher, for numbers of `n` limbs. Every column but the
//! lowest starts `2n` lower, which is the excess that the column below carries into it. A column
//! receives at most `2n` low halves.
//!
//! # Upper bound
//!
//! A product adds at most 2^52 (2^51 if neither factor was doubled) to a column with its high half,
//! and 2^50 with its low half. A column receives at most `2n` of each in a multiplication, half of
//! the first `n` doubled in a squaring, and carries: less than `n * 2^54`. With `n <= 322` (16,384
//! bits) that is below 2^63.

use super::band::{BAND, rows_at_once};

/// The bit pattern of a high half of value 0: 2^103 as a double.
const HIGH: u64 = 0x466 << 52;
/// The bit pattern of a low half of value 0: 1.5 * 2^52 as a double.
const LOW: u64 = (0x433 << 52) + (1 << 51);

/// The starting value of a column of a multiplication and its reduction, `column < 2 * limbs`.
pub(super) fn multiplication(limbs: usize, column: usize) -> u64 {
    start(limbs, column, |column| {
        pairs(limbs, limbs, column) + reduction(limbs, column)
    })
}

/// The starting value of a column of a squaring and its reduction. A squaring computes only one of
/// two equal products.
pub(super) fn squaring(limbs: usize, column: usize) -> u64 {
    start(limbs, column, |column| {
        pairs(limbs, limbs, column).div_ceil(2) + reduction(limbs, column)
    })
}

/// The starting value of a column of a reduction by one band, `column < limbs + BAND`.
pub(super) fn one_band(limbs: usize, column: usize) -> u64 {
    start(limbs, column, |column| pairs(limbs, BAND, column))
}

/// The number of products of a whole reduction in a column.
fn reduction(limbs: usize, column: usize) -> usize {
    let at_once = rows_at_once(limbs);
    let above = |start: usize, rows: usize| {
        column
            .checked_sub(start)
            .map_or(0, |column| pairs(limbs, rows, column))
    };
    above(BAND, at_once) + above(at_once, limbs - at_once)
}

/// The number of products in a column of a multiplication of `a` limbs by `b`: pairs `i + j =
/// column`.
fn pairs(a: usize, b: usize, column: usize) -> usize {
    (column + 1)
        .min(a)
        .min(b)
        .min((a + b - 1).saturating_sub(column))
}

/// The starting value of a column with `products(column)` low halves and `products(column - 1)`
/// high ones.
fn start(limbs: usize, column: usize, products: impl Fn(usize) -> usize) -> u64 {
    let below = column.checked_sub(1);
    let (low, high) = (products(column) as u64, below.map_or(0, &products) as u64);
    let excess = 2 * limbs as u64;
    (excess << 51)
        .wrapping_sub(if below.is_some() { excess } else { 0 })
        .wrapping_sub(low.wrapping_mul(LOW))
        .wrapping_sub(high.wrapping_mul(HIGH))
}
