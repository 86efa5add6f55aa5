//! Consecutive squarings of numbers of one tile, with the look-up of the next factor beside them,
//! and possibly the multiplication by it.

use core::mem;

use super::halves;
use super::kernel;
use super::kernel::square::{self, Operand};
use super::look_up::{Evenly, Rows, STORED, share_of};
use super::madd52::{Kernel, Limb, MAX_LANES, Madd52};
use super::size::{keeps_columns, may_have_halves};
use crate::lanes::{Modulus, Step};

/// Squares the value of a step as often as the step says, from `value` to `spare` and back.
/// Meanwhile looks up an entry of the table, of `P` numbers.
///
/// All squarings are one function, so that their common values are prepared once. The carries of
/// one squaring overlap with the first rows of the next, and multiply-adds hardly pause.
///
/// If entries are [stored](STORED), the function also multiplies by the entry: into `value` after
/// an odd number of squarings, else into `spare`. The product stays in columns, which the next step
/// accepts.
pub(super) struct Squarings<'a, 's, 'v, L, const P: usize, const E: usize> {
    pub(super) step: &'a mut Step<'s, 'v, L>,
    pub(super) digits: [u8; MAX_LANES],
    pub(super) modulus: &'a Modulus<'a, L>,
}

impl<L: Limb, const P: usize, const E: usize> Kernel<L> for Squarings<'_, '_, '_, L, P, E> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { keeps_columns::<T>(B) && (P == 1 || may_have_halves::<T>(B)) } {
            unreachable!("tiles of {B} limbs are not squared so");
        }
        let Step {
            squarings,
            table,
            entry,
            value,
            spare,
            ..
        } = self.step;
        let one_tile = "a number of one tile";
        let mut value = value.first_chunk_mut::<B>().expect(one_tile);
        let mut spare = spare.first_chunk_mut::<B>().expect(one_tile);
        let modulus = self.modulus.limbs.first_chunk::<B>().expect(one_tile);
        let neg_inv = t.load(self.modulus.neg_inv);
        let table = table.as_chunks::<B>().0.as_chunks::<P>().0;
        let entry = entry.as_chunks_mut::<B>().0.first_chunk_mut::<P>();
        let entry = entry.expect("an entry like those of the table");
        let mut sums = kernel::load(t, value);
        for squaring in 0..*squarings as usize {
            let columns = Operand::columns(t, sums, value);
            sums = if const { E == STORED } {
                let (first, entries) = share_of(table, squaring);
                let work = &mut Evenly::new(t, self.digits, first, entries, entry);
                square::square_alone(t, columns, modulus, neg_inv, work)
            } else {
                let (first, entries) = share_of::<_, E>(table, squaring);
                let work = &mut Rows::new(t, self.digits, first, entries.each_ref(), entry);
                square::square_alone(t, columns, modulus, neg_inv, work)
            };
            mem::swap(&mut value, &mut spare);
        }
        if const { E == STORED } {
            // These limbs are only multiplied.
            kernel::carry_through(t, value, sums);
            sums = halves::multiply(t, value, entry, modulus, neg_inv);
            return kernel::store(t, spare, sums);
        }
        kernel::normalise(t, value, sums);
    }
}

/// See [`Lanes::square_times`](crate::lanes::Lanes::square_times). Squares from `value` to `spare`
/// and back.
pub(super) struct SquareTimes<'a, L> {
    pub(super) value: &'a mut [L],
    pub(super) spare: &'a mut [L],
    pub(super) count: u32,
    pub(super) modulus: &'a Modulus<'a, L>,
}

impl<L: Limb> Kernel<L> for SquareTimes<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { keeps_columns::<T>(B) } {
            unreachable!("tiles of {B} limbs are not squared so");
        }
        let one_tile = "a number of one tile";
        let mut value = self.value.first_chunk_mut::<B>().expect(one_tile);
        let mut spare = self.spare.first_chunk_mut::<B>().expect(one_tile);
        let modulus = self.modulus.limbs.first_chunk::<B>().expect(one_tile);
        let neg_inv = t.load(self.modulus.neg_inv);
        let mut sums = kernel::load(t, value);
        for _ in 0..self.count {
            let columns = Operand::columns(t, sums, value);
            sums = square::square_alone(t, columns, modulus, neg_inv, &mut ());
            mem::swap(&mut value, &mut spare);
        }
        kernel::normalise(t, value, sums);
    }
}

/// See [`Lanes::close`](crate::lanes::Lanes::close).
pub(super) struct Close<'a, L>(pub(super) &'a mut [L]);

impl<L: Limb> Kernel<L> for Close<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let value = self.0.first_chunk_mut::<B>().expect("a number of one tile");
        let sums = kernel::load(t, value);
        kernel::normalise(t, value, sums);
    }
}
