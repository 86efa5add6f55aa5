//! One step of the ladder: squarings, the look-up of a table entry, and a multiplication by it.

use core::mem;

use super::halves::MulEntry;
use super::kernel;
use super::kernel::square::{self, Operand};
use super::look_up::{Rows, Select, Share, share_of, shares_suffice};
use super::madd52::{Kernel, Limb, MAX_LANES, Madd52};
use super::size::{keeps_columns, may_have_halves};
use super::tiles::{Mul, Square};
use crate::lanes;
use crate::lanes::Modulus;

/// See [`Lanes::step`](crate::lanes::Lanes::step).
pub(super) struct Step<'a, 'v, L> {
    pub(super) step: lanes::Step<'a, 'v, L>,
    pub(super) digits: [u8; 8],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for Step<'_, '_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (digits, modulus) = (self.digits, self.modulus);
        let squarings = self.step.squarings;
        let interleaves = shares_suffice(squarings);
        let (limbs, entry_len) = (modulus.limbs.len(), self.step.entry.len());
        let fuses = t.tuning().fuses_squarings && interleaves;
        let alone = const { keeps_columns::<T>(B) } && limbs == B && fuses;
        let step = &mut self.step;
        if interleaves && T::MERGES_INTO_ZERO {
            step.entry.fill(L::ZERO);
        }
        if alone && const { may_have_halves::<T>(B) } && entry_len > limbs {
            t.run::<_, B>(&mut Squarings::<_, 2> {
                step,
                digits,
                modulus,
            });
        } else if alone {
            t.run::<_, B>(&mut Squarings::<_, 1> {
                step,
                digits,
                modulus,
            });
        }
        let lanes::Step {
            table,
            ref mut entry,
            ref mut value,
            ref mut spare,
            ..
        } = *step;
        let (mut value, mut spare) = (&mut **value, &mut **spare);
        if !alone {
            for squaring in 0..squarings {
                t.run::<_, B>(&mut Square {
                    out: spare,
                    a: value,
                    modulus,
                    scratch: self.scratch,
                    share: interleaves.then(|| Share::new(squaring, entry, table, digits)),
                });
                mem::swap(&mut value, &mut spare);
            }
        } else if !squarings.is_multiple_of(2) {
            mem::swap(&mut value, &mut spare);
        }
        if !interleaves {
            t.run::<_, B>(&mut Select {
                out: entry,
                table,
                digits,
            });
        }
        if entry.len() > value.len() {
            t.run::<_, B>(&mut MulEntry {
                out: spare,
                a: value,
                entry,
                modulus,
                scratch: self.scratch,
            });
        } else {
            t.run::<_, B>(&mut Mul {
                out: spare,
                a: value,
                b: entry,
                modulus,
                scratch: self.scratch,
            });
        }
    }
}

/// Squares the value of a step as often as the step says, from `value` to `spare` and back.
/// Meanwhile looks up an entry of the table, of `P` numbers.
///
/// All squarings are one function, so that their common values are prepared once. The carries of
/// one squaring overlap with the first rows of the next, and multiply-adds hardly pause.
pub(super) struct Squarings<'a, 's, 'v, L, const P: usize> {
    pub(super) step: &'a mut lanes::Step<'s, 'v, L>,
    pub(super) digits: [u8; MAX_LANES],
    pub(super) modulus: &'a Modulus<'a, L>,
}

impl<L: Limb, const P: usize> Kernel<L> for Squarings<'_, '_, '_, L, P> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { keeps_columns::<T>(B) && (P == 1 || may_have_halves::<T>(B)) } {
            unreachable!("tiles of {B} limbs are not squared so");
        }
        let lanes::Step {
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
            let (first, entries) = share_of(table, squaring);
            let work = &mut Rows::new(t, self.digits, first, entries.each_ref(), entry);
            sums = square::square_alone(t, columns, modulus, neg_inv, work);
            mem::swap(&mut value, &mut spare);
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
