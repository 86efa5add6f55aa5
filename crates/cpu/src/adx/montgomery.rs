//! Montgomery multiplication, block by block.

use super::unit::{Block, Unit};

/// An odd modulus.
#[derive(Clone, Copy)]
pub(super) struct Odd<'a> {
    pub(super) modulus: &'a [Block],
    /// `-1 / modulus mod 2^128`.
    pub(super) neg_inv: u128,
}

/// How many blocks of scratch space operands of `blocks` blocks need: for the product.
pub(super) const fn scratch_len(blocks: usize) -> usize {
    2 * blocks
}

/// `out = a * b / R mod modulus`, congruent and below `R`.
pub(super) fn multiply<U: Unit>(
    unit: U,
    out: &mut [Block],
    a: &[Block],
    b: &[Block],
    odd: Odd<'_>,
    product: &mut [Block],
) {
    let (lowest, rest) = b.split_first().expect("a block");
    unit.multiply(&mut product[..=a.len()], a, lowest);
    product[a.len() + 1..].as_flattened_mut().fill(0);
    for (i, b) in (1..).zip(rest) {
        // Nothing is carried out: all rows so far are below what they have room for.
        unit.multiply_add(&mut product[i..][..=a.len()], a, b);
    }
    reduce(unit, out, product, odd);
}

/// The same as `multiply(.., a, a, ..)`.
pub(super) fn square<U: Unit>(
    unit: U,
    out: &mut [Block],
    a: &[Block],
    odd: Odd<'_>,
    product: &mut [Block],
) {
    // Each two different words once.
    unit.square(&mut product[..=a.len()], a);
    product[a.len() + 1..].as_flattened_mut().fill(0);
    for i in 1..a.len() {
        let rest = &a[i..];
        unit.square_add(&mut product[2 * i..][..=rest.len()], rest);
    }
    unit.double_and_add_squares(product, a);
    reduce(unit, out, product, odd);
}

/// `out = product / R mod modulus`, congruent and below `R`.
fn reduce<U: Unit>(unit: U, out: &mut [Block], product: &mut [Block], odd: Odd<'_>) {
    let blocks = odd.modulus.len();
    let mut carry = 0;
    for i in 0..blocks {
        // What is carried out of one row has the weight of the last block of the next.
        let sum = &mut product[i..][..=blocks];
        carry = unit.eliminate(sum, odd.modulus, odd.neg_inv, carry);
    }
    // The sum was below `2 R`, since the modulus is below `R`.
    unit.subtract(out, &product[blocks..], odd.modulus, carry);
}
