//! What the column sums start with.
//!
//! The high half of a product adds `0x466 << 52` to its column on top of its value, the low half
//! `(0x433 << 52) + 2^51`. A column that will receive a known number of both starts with the negative of
//! that, modulo 2^64, so that its sum is right when the last one has arrived. The low 51 bits are right at
//! any time.
//!
//! A low half may be negative, down to -2^50, and with it a sum. To shift without regard to signs, every
//! column starts `2n * 2^51` higher, for numbers of `n` limbs, and every column but the lowest `2n`
//! lower, which is what the column below carries into it in excess. A column receives at most `2n` low
//! halves.
//!
//! # Upper bound
//!
//! A product brings at most 2^52 (2^51 if neither factor was doubled) to a column with its high half and
//! 2^50 with its low half. A column receives at most `2n` of each in a multiplication, half of the first
//! `n` doubled in a squaring, and carries: less than `n * 2^54`. With `n <= 322` (16,384 bits) that is
//! below 2^63.

/// The pattern of a high half of value 0: 2^103 as a double.
const HIGH: u64 = 0x466 << 52;
/// The pattern of a low half of value 0: 1.5 * 2^52 as a double.
const LOW: u64 = (0x433 << 52) + (1 << 51);

/// The starting value of column `column` of `2 * limbs`, if the product of two numbers needs `products`
/// products in a column, and the reduction as many as any multiplication.
fn start(limbs: usize, column: usize, products: impl Fn(usize) -> usize) -> u64 {
    // The columns of both kinds of product: low halves here, high halves from the column below.
    let count = |column: usize| {
        if column + 1 < 2 * limbs {
            (products(column) + full(limbs, column)) as u64
        } else {
            0
        }
    };
    let below = column.checked_sub(1);
    let (low, high) = (count(column), below.map_or(0, count));
    let excess = 2 * limbs as u64;
    (excess << 51)
        .wrapping_sub(if below.is_some() { excess } else { 0 })
        .wrapping_sub(low.wrapping_mul(LOW))
        .wrapping_sub(high.wrapping_mul(HIGH))
}

/// Products in a column of a multiplication: pairs `i + j = column`.
fn full(limbs: usize, column: usize) -> usize {
    (column + 1).min(2 * limbs - 1 - column)
}

/// Products in a column of a squaring: pairs `i + j = column`, `i <= j`.
fn half(limbs: usize, column: usize) -> usize {
    full(limbs, column).div_ceil(2)
}

/// The starting value of a column of a multiplication and its reduction.
pub(super) fn multiplication(limbs: usize, column: usize) -> u64 {
    start(limbs, column, |column| full(limbs, column))
}

/// The starting value of a column of a squaring and its reduction.
pub(super) fn squaring(limbs: usize, column: usize) -> u64 {
    start(limbs, column, |column| half(limbs, column))
}
