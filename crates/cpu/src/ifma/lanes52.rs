//! Eight or four lanes as a lane type of the common ladder, and a step of the ladder.

use core::mem;

use batch_modexp_core::window::Window;

use super::halves::{Extend, MulEntry, have_halves};
use super::look_up::{Select, Share, shares_suffice};
use super::madd52::{Limb, MAX_LANES, Madd52, RADIX_BITS};
use super::size;
use super::tiles::{self, Beside, LookUp, Mul, Square, Squarings};
use crate::lanes::{Lanes, Modulus, Operands};

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

    fn square_times<'v>(
        self,
        value: &mut &'v mut [T::Limb],
        spare: &mut &'v mut [T::Limb],
        count: u32,
        modulus: Modulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        if size::is_squared_in_registers::<T>(modulus.limbs.len()) {
            return self.square_in_registers(value, spare, count, (), modulus);
        }
        for _ in 0..count {
            self.square(spare, value, modulus, scratch);
            mem::swap(value, spare);
        }
    }

    fn entry_len(self, limbs: usize, window: Window) -> usize {
        match have_halves(self.0, limbs) && shares_suffice(window.bits()) {
            true => 2 * limbs,
            false => limbs,
        }
    }

    fn extend_entries(self, x: &mut Operands<'_, Self>) {
        let limbs = x.value.len();
        if x.entry.len() > limbs {
            for entry in x.table.chunks_exact_mut(x.entry.len()) {
                let mut extend = Extend {
                    entry,
                    modulus: &x.modulus,
                    scratch: x.scratch,
                };
                size::dispatch(self.0, limbs, &mut extend);
            }
        }
    }

    fn select(self, out: &mut [T::Limb], table: &[T::Limb], digits: &[u8]) {
        let limbs = out.len();
        let mut select = Select {
            out,
            table,
            digits: of_lanes::<T>(digits),
        };
        size::dispatch(self.0, limbs, &mut select);
    }

    fn step(self, squarings: u32, digits: &[u8], x: &mut Operands<'_, Self>) {
        if shares_suffice(squarings) {
            self.square_and_look_up(squarings, digits, x);
        } else {
            let (value, spare) = (&mut x.value, &mut x.spare);
            self.square_times(value, spare, squarings, x.modulus, x.scratch);
            self.select(x.entry, x.table, digits);
        }
        let limbs = x.value.len();
        if x.entry.len() > limbs {
            let mut mul = MulEntry {
                out: x.spare,
                a: x.value,
                entry: x.entry,
                modulus: &x.modulus,
                scratch: x.scratch,
            };
            size::dispatch(self.0, limbs, &mut mul);
        } else {
            self.mul(x.spare, x.value, x.entry, x.modulus, x.scratch);
        }
        mem::swap(&mut x.value, &mut x.spare);
    }
}

impl<T: Madd52> Lanes52<T> {
    /// Squares `value`, and looks up the entries of these digits meanwhile.
    fn square_and_look_up(self, squarings: u32, digits: &[u8], x: &mut Operands<'_, Self>) {
        if T::MERGES_INTO_ZERO {
            x.entry.fill(T::Limb::ZERO);
        }
        let (digits, limbs) = (of_lanes::<T>(digits), x.value.len());
        if self.0.tuning().fuses_squarings && size::is_squared_in_registers::<T>(limbs) {
            let (value, spare) = (&mut x.value, &mut x.spare);
            let share = Share::new(0, squarings, x.entry, x.table, digits);
            if share.has_halves(limbs) {
                let work = LookUp::<_, 2>(share);
                self.square_in_registers(value, spare, squarings, work, x.modulus);
            } else {
                let work = LookUp::<_, 1>(share);
                self.square_in_registers(value, spare, squarings, work, x.modulus);
            }
            return;
        }
        for squaring in 0..squarings {
            let mut square = Square {
                out: x.spare,
                a: x.value,
                modulus: &x.modulus,
                scratch: x.scratch,
                share: Some(Share::new(squaring, squarings, x.entry, x.table, digits)),
            };
            size::dispatch(self.0, limbs, &mut square);
            mem::swap(&mut x.value, &mut x.spare);
        }
    }

    /// Squares a number of one tile `count` times, beside `work`.
    fn square_in_registers<'v>(
        self,
        value: &mut &'v mut [T::Limb],
        spare: &mut &'v mut [T::Limb],
        count: u32,
        work: impl Beside<T::Limb>,
        modulus: Modulus<'_, T::Limb>,
    ) {
        let mut squarings = Squarings {
            value,
            spare,
            count,
            modulus: &modulus,
            work,
        };
        size::dispatch(self.0, modulus.limbs.len(), &mut squarings);
        // Each square went from one buffer to the other.
        if !count.is_multiple_of(2) {
            mem::swap(value, spare);
        }
    }
}

/// The digits of all lanes, padded with zeros.
pub(super) fn of_lanes<T: Madd52>(digits: &[u8]) -> [u8; MAX_LANES] {
    let mut of_lanes = [0; MAX_LANES];
    // Both lengths are constants, so this is a move.
    of_lanes[..T::Limb::LANES].copy_from_slice(&digits[..T::Limb::LANES]);
    of_lanes
}
