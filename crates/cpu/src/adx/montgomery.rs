//! Montgomery multiplication, tile by tile.

use super::unit::{Tile, Unit};

/// An odd modulus.
#[derive(Clone, Copy)]
pub(super) struct Odd<'a> {
    pub(super) modulus: &'a [Tile],
    /// `-1 / modulus mod 2^128`.
    pub(super) neg_inv: u128,
}

/// The number of scratch tiles for operands of `tiles` tiles: the length of their product.
pub(super) const fn scratch_len(tiles: usize) -> usize {
    2 * tiles
}

/// `out`, congruent to `a * b / R` and below `R`.
pub(super) fn multiply<U: Unit>(
    unit: U,
    out: &mut [Tile],
    a: &[Tile],
    b: &[Tile],
    odd: Odd<'_>,
    product: &mut [Tile],
) {
    let (lowest, rest) = b.split_first().expect("a tile");
    unit.multiply(&mut product[..=a.len()], a, lowest);
    product[a.len() + 1..].as_flattened_mut().fill(0);
    for (i, b) in (1..).zip(rest) {
        // There is no carry out: the sum of the rows so far fits.
        unit.multiply_add(&mut product[i..][..=a.len()], a, b);
    }
    reduce(unit, out, product, odd);
}

/// Like `multiply(.., a, a, ..)`, faster.
pub(super) fn square<U: Unit>(
    unit: U,
    out: &mut [Tile],
    a: &[Tile],
    odd: Odd<'_>,
    product: &mut [Tile],
) {
    // Each product of two different words once.
    unit.square(&mut product[..=a.len()], a);
    product[a.len() + 1..].as_flattened_mut().fill(0);
    for i in 1..a.len() {
        let rest = &a[i..];
        unit.square_add(&mut product[2 * i..][..=rest.len()], rest);
    }
    unit.double_and_add_squares(product, a);
    reduce(unit, out, product, odd);
}

/// `out`, congruent to `product / R` and below `R`.
fn reduce<U: Unit>(unit: U, out: &mut [Tile], product: &mut [Tile], odd: Odd<'_>) {
    let tiles = odd.modulus.len();
    let mut carry = 0;
    for i in 0..tiles {
        // The carry out of one row has the weight of the last tile of the next.
        let sum = &mut product[i..][..=tiles];
        carry = unit.eliminate(sum, odd.modulus, odd.neg_inv, carry);
    }
    // The sum was below `2 R`, since the modulus is below `R`.
    unit.subtract(out, &product[tiles..], odd.modulus, carry);
}
