//! What the multiplication by blocks is made of.

/// Limbs of 32 bits in a block: eight words of 64 bits, which stay in registers.
pub(super) const BLOCK: usize = 16;

/// A block, its least significant limb first.
pub(super) type Block = [u32; BLOCK];

/// The operations on blocks. Implementors are zero-size tokens: having one proves that the processor has the instructions.
pub(super) trait Unit: Copy {
    /// `product = a * b`, which has a block more than `a`.
    fn multiply(self, product: &mut [Block], a: &[Block], b: &Block);

    /// Adds `a * b` to `sum`, which has a block more than `a`. What is carried out is lost.
    fn multiply_add(self, sum: &mut [Block], a: &[Block], b: &Block);

    /// The product of the lowest block of `a` with the higher ones, and the product of each two different words of the lowest
    /// block, each once: their sum becomes `product`, which has a block more than `a`.
    fn square(self, product: &mut [Block], a: &[Block]);

    /// Adds the same to `sum`, which has a block more than `a`. What is carried out is lost.
    fn square_add(self, sum: &mut [Block], a: &[Block]);

    /// Finds the quotient for which `sum + quotient * modulus` has a lowest block of zeros, and leaves that in `sum`, which
    /// has a block more than `modulus`, with the quotient in place of the zeros. `neg_inv` is `-1 / modulus mod 2^128`.
    /// `carry`, 0 or 1, is added with the weight of the last block. What is carried out is returned, 0 or 1.
    fn eliminate(self, sum: &mut [Block], modulus: &[Block], neg_inv: u128, carry: u64) -> u64;

    /// Doubles `sum`, which has twice as many blocks as `a`, and adds the squares of the words of `a`. What is carried out
    /// is lost.
    fn double_and_add_squares(self, sum: &mut [Block], a: &[Block]);

    /// `out = a - take * b`, where `take` is 0 or 1. What is borrowed is lost.
    fn subtract(self, out: &mut [Block], a: &[Block], b: &[Block], take: u64);

    /// Adds entry `digit` of `table` to `out`, bit by bit, if there is such an entry. Reads the whole table in the same order
    /// whatever the digit is.
    fn or_entry(self, out: &mut [u32], table: &[u32], digit: u8);
}
