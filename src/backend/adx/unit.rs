//! What the multiplication by blocks is made of.

/// Limbs of 32 bits in a block: eight words of 64 bits, which stay in registers.
pub(super) const BLOCK: usize = 16;

/// A block, its least significant limb first.
pub(super) type Block = [u32; BLOCK];

/// The operations on blocks. Implementors are zero-size tokens: having one proves that the processor has the instructions.
pub(super) trait Unit: Copy {
    /// Adds `a * b` to `sum`, which has a block more than `a`. What is carried out is lost.
    fn multiply_add(self, sum: &mut [Block], a: &[Block], b: &Block);

    /// Adds to `sum`, which has a block more than `a`, the product of the lowest block of `a` with the higher ones, and the
    /// product of each two different words of the lowest block, each once. What is carried out is lost.
    fn square_add(self, sum: &mut [Block], a: &[Block]);

    /// Finds the `quotient` for which `sum + quotient * modulus` has a lowest block of zeros, and leaves that in `sum`, which
    /// has a block more than `modulus`; but the lowest block is of no use any more. `neg_inv` is `-1 / modulus mod 2^64`.
    /// `carry` is added with the weight of the last block, and what is carried out is returned: 0, 1 or 2.
    fn eliminate(
        self,
        sum: &mut [Block],
        modulus: &[Block],
        quotient: &mut Block,
        neg_inv: u64,
        carry: u64,
    ) -> u64;

    /// Doubles `sum`, which has twice as many blocks as `a`, and adds the squares of the words of `a`. What is carried out
    /// is lost.
    fn double_and_add_squares(self, sum: &mut [Block], a: &[Block]);

    /// `out = a - take * b`. What is borrowed is lost.
    fn subtract(self, out: &mut [Block], a: &[Block], b: &[Block], take: u64);

    /// Adds entry `digit` of `table` to `out`, bit by bit, if there is such an entry. Reads the whole table in the same order
    /// whatever the digit is.
    fn or_entry(self, out: &mut [u32], table: &[u32], digit: u8);
}
