//! Operations on tiles, from which the multiplication is built.

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
