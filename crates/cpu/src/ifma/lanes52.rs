//! Eight or four lanes as a lane type of the common ladder, and a step of the ladder.

use core::mem;

use batch_modexp_core::window::Window;

use super::halves::{Enter, MulEntry, have_halves};
use super::kernel;
use super::kernel::square::{self, Operand};
use super::look_up::{Rows, Select, SelectOfRow, Share, share_of, shares_suffice};
use super::madd52::{Kernel, Limb, MAX_LANES, Madd52, RADIX_BITS};
use super::size::{self, keeps_columns, may_have_halves};
use super::tiles::{self, Mul, Square};
use crate::lanes;
use crate::lanes::{Lanes, Modulus, Step, Table};

/// One instance in each lane, computed with the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes52<T>(pub(super) T);

impl<T: Madd52> Lanes for Lanes52<T> {
    type Limb = T::Limb;

    const COUNT: usize = T::Limb::LANES;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 2;
    const ZERO: T::Limb = T::Limb::ZERO;
    /// Look-ups are hidden beside squarings. From this length on, a larger window saves more
    /// multiplications than its larger table costs.
    const LONG_EXPONENT_BITS: u32 = 320;
    const LARGEST_ROW_WINDOW: u32 = 6;

    fn limb_count(bits: u32) -> usize {
        size::limb_count::<T>(bits)
    }

    fn scratch_len(limbs: usize) -> usize {
        tiles::scratch_len(limbs)
    }

    fn set_lane(limb: &mut T::Limb, lane: usize, value: u64) {
        limb.lanes_mut()[lane] = value;
    }

    fn lane(limb: &T::Limb, lane: usize) -> u64 {
        limb.lanes()[lane]
    }

    fn mul(
        self,
        out: &mut [T::Limb],
        a: &[T::Limb],
        b: &[T::Limb],
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        let mut mul = Mul {
            out,
            a,
            b,
            modulus: &modulus,
            scratch,
        };
        size::dispatch(self.0, modulus.limbs.len(), &mut mul);
    }

    fn square(
        self,
        out: &mut [T::Limb],
        a: &[T::Limb],
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        let mut square = Square {
            out,
            a,
            modulus: &modulus,
            scratch,
            share: None,
        };
        size::dispatch(self.0, modulus.limbs.len(), &mut square);
    }

    fn square_times<'a>(
        self,
        value: &'a mut [T::Limb],
        spare: &'a mut [T::Limb],
        count: u32,
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) -> (&'a mut [T::Limb], &'a mut [T::Limb]) {
        let limbs = modulus.limbs.len();
        let alone = keeps_columns::<T>(limbs) && size::tile_len::<T>(limbs) == limbs;
        if !alone {
            return lanes::square_times(self, value, spare, count, modulus, scratch);
        }
        let mut squarings = SquareTimes {
            value,
            spare,
            count,
            modulus: &modulus,
        };
        size::dispatch(self.0, limbs, &mut squarings);
        // Each square went from one buffer to the other.
        match count.is_multiple_of(2) {
            true => (value, spare),
            false => (spare, value),
        }
    }

    fn entry_len(self, limbs: usize, window: Window) -> usize {
        let halves = have_halves(self.0, limbs) && shares_suffice(window.bits());
        limbs * if halves { 2 } else { 1 }
    }

    fn fill_table(
        self,
        table: Table<'_, T::Limb>,
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        let limbs = modulus.limbs.len();
        if table.entry_len == limbs {
            return lanes::fill_table(self, table, modulus, scratch);
        }
        let Table {
            entries,
            entry_len,
            one,
            base,
            spare,
        } = table;
        let enter = |entry: &mut [T::Limb], power: &[T::Limb], scratch: &mut [T::Limb]| {
            let mut enter = Enter {
                entry,
                power,
                modulus: &modulus,
                scratch,
            };
            size::dispatch(self.0, limbs, &mut enter);
        };
        let (zeroth, rest) = entries.split_at_mut(entry_len);
        let (first, rest) = rest.split_at_mut(entry_len);
        enter(zeroth, one, scratch);
        enter(first, base, scratch);
        for entry in rest.chunks_exact_mut(entry_len) {
            let mut mul = MulEntry {
                out: spare,
                a: base,
                entry: first,
                modulus: &modulus,
                scratch,
            };
            size::dispatch(self.0, limbs, &mut mul);
            base.copy_from_slice(spare);
            enter(entry, base, scratch);
        }
    }

    fn open(self, value: &mut [T::Limb], entry: &mut [T::Limb], table: &[T::Limb], digits: &[u8]) {
        if entry.len() == value.len() {
            return self.select(value, table, digits);
        }
        self.select(entry, table, digits);
        let tile = size::tile_len::<T>(value.len());
        let pairs = entry.chunks_exact(2 * tile);
        for (value, pair) in value.chunks_exact_mut(tile).zip(pairs) {
            value.copy_from_slice(&pair[..tile]);
        }
    }

    fn select(self, out: &mut [T::Limb], table: &[T::Limb], digits: &[u8]) {
        let limbs = out.len();
        let mut select = Select {
            out,
            table,
            digits: of_lanes(digits),
        };
        size::dispatch(self.0, limbs, &mut select);
    }

    fn select_of_row(self, out: &mut [T::Limb], row: &[u64], digits: &[u8]) {
        let limbs = out.len();
        let mut select = SelectOfRow {
            out,
            row,
            digits: of_lanes(digits),
        };
        size::dispatch(self.0, limbs, &mut select);
    }

    fn step<'a>(
        self,
        step: Step<'_, 'a, T::Limb>,
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) -> (&'a mut [T::Limb], &'a mut [T::Limb]) {
        let digits = of_lanes(step.digits);
        let mut step = StepKernel {
            step,
            digits,
            modulus: &modulus,
            scratch,
        };
        size::dispatch(self.0, modulus.limbs.len(), &mut step);
        let Step {
            squarings,
            value,
            spare,
            ..
        } = step.step;
        // Each square and the product went from one buffer to the other.
        match squarings.is_multiple_of(2) {
            true => (spare, value),
            false => (value, spare),
        }
    }
}

/// The digits of all lanes, padded with zeros.
fn of_lanes(digits: &[u8]) -> [u8; MAX_LANES] {
    let mut of_lanes = [0; MAX_LANES];
    of_lanes[..digits.len()].copy_from_slice(digits);
    of_lanes
}

/// One step of the ladder: squarings, the look-up of a table entry, and a multiplication by it.
struct StepKernel<'a, 'v, L> {
    step: Step<'a, 'v, L>,
    digits: [u8; MAX_LANES],
    modulus: &'a Modulus<'a, L>,
    scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for StepKernel<'_, '_, L> {
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
        let Step {
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
struct Squarings<'a, 's, 'v, L, const P: usize> {
    step: &'a mut Step<'s, 'v, L>,
    digits: [u8; MAX_LANES],
    modulus: &'a Modulus<'a, L>,
}

impl<L: Limb, const P: usize> Kernel<L> for Squarings<'_, '_, '_, L, P> {
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
struct SquareTimes<'a, L> {
    value: &'a mut [L],
    spare: &'a mut [L],
    count: u32,
    modulus: &'a Modulus<'a, L>,
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
