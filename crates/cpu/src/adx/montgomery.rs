//! Montgomery multiplication, tile by tile, and the operations on tiles from which it is built.

/// Limbs of 32 bits in a tile: eight words of 64 bits, which stay in registers.
pub(super) const TILE: usize = 16;

/// A tile, least significant limb first.
pub(super) type Tile = [u32; TILE];

/// The operations on tiles. Implementors are zero-size tokens that prove that the processor has the
/// instructions.
pub(super) trait Unit: Copy {
    /// `product = a * b`; `product` has one tile more than `a`.
    fn multiply(self, product: &mut [Tile], a: &[Tile], b: &Tile);

    /// Adds `a * b` to `sum`, which has one tile more than `a`. Drops the carry out.
    fn multiply_add(self, sum: &mut [Tile], a: &[Tile], b: &Tile);

    /// Writes the cross products of the lowest tile of `a` to `product`, which has one tile more
    /// than `a`.
    ///
    /// They are the product of the lowest tile with the higher ones, and each product of two
    /// different words of the lowest tile once.
    fn square(self, product: &mut [Tile], a: &[Tile]);

    /// Adds the cross products of [`square`](Self::square) to `sum`, which has one tile more than
    /// `a`. Drops the carry out.
    fn square_add(self, sum: &mut [Tile], a: &[Tile]);

    /// Clears the lowest tile of `sum`, which has one tile more than `modulus`, by adding a
    /// multiple of the modulus.
    ///
    /// The quotient replaces the cleared tile. `neg_inv` is `-1 / modulus mod 2^128`. `carry`, 0 or
    /// 1, is added with the weight of the last tile. Returns the carry out, 0 or 1.
    fn eliminate(self, sum: &mut [Tile], modulus: &[Tile], neg_inv: u128, carry: u64) -> u64;

    /// Doubles `sum`, which has twice as many tiles as `a`, and adds the squares of the words of
    /// `a`. Drops the carry out.
    fn double_and_add_squares(self, sum: &mut [Tile], a: &[Tile]);

    /// `out = a - take * b`, where `take` is 0 or 1. Drops the borrow.
    fn subtract(self, out: &mut [Tile], a: &[Tile], b: &[Tile], take: u64);

    /// Ors entry `digit` of `table` into `out`, if there is such an entry. Reads the whole table in
    /// the same order for every digit.
    fn or_entry(self, out: &mut [u32], table: &[u32], digit: u8);
}

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
