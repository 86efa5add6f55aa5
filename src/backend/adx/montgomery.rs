//! Montgomery multiplication, block by block.

use super::unit::{Block, Unit};

/// An odd modulus.
#[derive(Clone, Copy)]
pub(super) struct Odd<'a> {
    pub(super) modulus: &'a [Block],
    /// `-1 / modulus mod 2^64`.
    pub(super) neg_inv: u64,
}

/// How many blocks of scratch space operands of `blocks` blocks need: for the product, and for a block of the quotient.
pub(super) const fn scratch_len(blocks: usize) -> usize {
    2 * blocks + 1
}

/// `out = a * b / R mod modulus`, congruent and below `R`.
pub(super) fn multiply<U: Unit>(
    unit: U,
    out: &mut [Block],
    a: &[Block],
    b: &[Block],
    odd: Odd<'_>,
    scratch: &mut [Block],
) {
    let (product, quotient) = cleared(scratch);
    for (i, b) in b.iter().enumerate() {
        // Nothing is carried out: all rows so far are below what they have room for.
        unit.multiply_add(&mut product[i..][..=a.len()], a, b);
    }
    reduce(unit, out, product, odd, quotient);
}

/// The same as `multiply(.., a, a, ..)`.
pub(super) fn square<U: Unit>(
    unit: U,
    out: &mut [Block],
    a: &[Block],
    odd: Odd<'_>,
    scratch: &mut [Block],
) {
    let (product, quotient) = cleared(scratch);
    // Each two different words once.
    for i in 0..a.len() {
        let rest = &a[i..];
        unit.square_add(&mut product[2 * i..][..=rest.len()], rest);
    }
    unit.double_and_add_squares(product, a);
    reduce(unit, out, product, odd, quotient);
}

/// `out = product / R mod modulus`, congruent and below `R`.
fn reduce<U: Unit>(
    unit: U,
    out: &mut [Block],
    product: &mut [Block],
    odd: Odd<'_>,
    quotient: &mut Block,
) {
    let blocks = odd.modulus.len();
    let mut carry = 0;
    for i in 0..blocks {
        // What is carried out of one row has the weight of the last block of the next.
        let sum = &mut product[i..][..=blocks];
        carry = unit.eliminate(sum, odd.modulus, quotient, odd.neg_inv, carry);
    }
    // The sum was below `2 R`, since the modulus is below `R`.
    unit.subtract(out, &product[blocks..], odd.modulus, carry);
}

/// Room for a product, which is zero, and for a block.
fn cleared(scratch: &mut [Block]) -> (&mut [Block], &mut Block) {
    let (quotient, product) = scratch.split_first_mut().expect("scratch space");
    product.as_flattened_mut().fill(0);
    (product, quotient)
}
