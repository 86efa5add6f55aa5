//! Eight or four lanes as a lane type of the common ladder.

use batch_modexp_core::window::Window;

use super::halves::{Enter, MulEntry, have_halves};
use super::look_up::{Select, SelectOfRow, shares_suffice};
use super::madd52::{Limb, MAX_LANES, Madd52, RADIX_BITS};
use super::size;
use super::step::{self, SquareTimes};
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
        let alone = size::keeps_columns::<T>(limbs) && size::tile_len::<T>(limbs) == limbs;
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
        let mut step = step::Step {
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
