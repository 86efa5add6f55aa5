//! Sums of products with one reduction, and reductions by a few limbs, for the check of signatures.

use super::madd52::{Kernel, Limb, Madd52};
use super::size::may_have_halves;
use super::tiles::{Scratch, multiply_row, tile_count, tiles};
use crate::lanes::Modulus;

/// Whether there is code that adds products of numbers of such tiles before it reduces them: for
/// tiles with [halves](may_have_halves), whose products are such sums.
pub(super) const fn adds_products<T: Madd52>(tile: usize) -> bool {
    may_have_halves::<T>(tile)
}

/// See [`Lanes::add_products`](crate::lanes::Lanes::add_products).
pub(super) struct AddProducts<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) a: [&'a [L]; 2],
    pub(super) b: [&'a [L]; 2],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for AddProducts<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { adds_products::<T>(B) } {
            unreachable!("products of tiles of {B} limbs are not added so");
        }
        let (a, b, modulus) = (
            self.a.map(tiles),
            self.b.map(tiles),
            tiles(self.modulus.limbs),
        );
        let count = tile_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch { columns, q, .. } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;
        for i in 0..count {
            let last = i + 1 == count;
            let row = |j: usize| a.map(|a| &a[j]);
            let by = b.map(|b| &b[i]);
            multiply_row(t, row, by, i, last, modulus, neg_inv, columns, q, out);
        }
    }
}

/// See [`Lanes::reduce_lowest`](crate::lanes::Lanes::reduce_lowest). Serves numbers of any length,
/// with any tile length.
pub(super) struct ReduceLowest<'a, L> {
    pub(super) value: &'a mut [L],
    pub(super) limbs: u32,
    pub(super) modulus: &'a Modulus<'a, L>,
}

impl<L: Limb> Kernel<L> for ReduceLowest<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (value, modulus) = (&mut *self.value, self.modulus.limbs);
        let neg_inv = t.load(self.modulus.neg_inv);
        for _ in 0..self.limbs {
            let lowest = t.load(&value[0]);
            let quotient = t.madd_lo(t.zero(), lowest, neg_inv);
            // The lowest limb itself is not computed, as in rows of a kernel.
            let mut carry = t.carry_of_cleared(lowest);
            for i in 1..modulus.len() {
                let column = t.add(t.load(&value[i]), carry);
                let column = t.madd_lo(column, t.load(&modulus[i]), quotient);
                let column = t.madd_hi(column, t.load(&modulus[i - 1]), quotient);
                t.store(&mut value[i - 1], t.low(column));
                carry = t.carry(column);
            }
            let highest = modulus.len() - 1;
            carry = t.madd_hi(carry, t.load(&modulus[highest]), quotient);
            t.store(&mut value[highest], carry);
        }
    }
}
