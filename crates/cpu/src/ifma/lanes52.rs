//! Eight or four lanes as a lane type of the common ladder, and the choice of code for a step of the
//! ladder.

use core::mem;

use batch_modexp_core::window::Window;

use super::halves::{Extend, MulEntry};
use super::kernel::Beside;
use super::look_up::{Section, Select, sections_suffice};
use super::madd52::{self, LaneLimb, Madd52, Processor, RADIX_BITS};
use super::tiles::{self, Mul, Square, Squarings};
use crate::lanes::{LaneModulus, Lanes, MAX_LANES, Operands};

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
        madd52::limb_count::<T>(bits)
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
        modulus: LaneModulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        let mut mul = Mul {
            out,
            a,
            b,
            modulus: &modulus,
            scratch,
            work: (),
        };
        madd52::dispatch(self.0, modulus.limbs.len(), &mut mul);
    }

    fn square(
        self,
        out: &mut [T::Limb],
        a: &[T::Limb],
        modulus: LaneModulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        let mut square = Square {
            out,
            a,
            modulus: &modulus,
            scratch,
            section: None,
        };
        madd52::dispatch(self.0, modulus.limbs.len(), &mut square);
    }

    fn square_times<'v>(
        self,
        value: &mut &'v mut [T::Limb],
        spare: &mut &'v mut [T::Limb],
        count: u32,
        modulus: LaneModulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
    ) {
        if madd52::is_squared_in_registers::<T>(modulus.limbs.len()) {
            return self.square_in_registers(value, spare, count, (), modulus);
        }
        for _ in 0..count {
            self.square(spare, value, modulus, scratch);
            mem::swap(value, spare);
        }
    }

    fn entry_len(self, limbs: usize, window: Window) -> usize {
        match have_halves(self.0, limbs, window.bits()) {
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
                madd52::dispatch(self.0, limbs, &mut extend);
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
        madd52::dispatch(self.0, limbs, &mut select);
    }

    fn step(self, squarings: u32, digits: &[u8], x: &mut Operands<'_, Self>) {
        let limbs = x.value.len();
        let has_halves = x.entry.len() > limbs;
        let digits_of_lanes = of_lanes::<T>(digits);
        let (value, spare) = (&mut x.value, &mut x.spare);
        if T::MERGES_INTO_ZERO {
            x.entry.fill(T::Limb::ZERO);
        }
        match StepCode::new(self.0, limbs, squarings) {
            StepCode::LookUpAfterwards => {
                self.square_times(value, spare, squarings, x.modulus, x.scratch);
                self.select(x.entry, x.table, digits);
            }
            StepCode::LookUpMeanwhile => {
                for squaring in 0..squarings {
                    let section =
                        Section::new(squaring, squarings, x.entry, x.table, digits_of_lanes);
                    let mut square = Square {
                        out: spare,
                        a: value,
                        modulus: &x.modulus,
                        scratch: x.scratch,
                        section: Some(section),
                    };
                    madd52::dispatch(self.0, limbs, &mut square);
                    mem::swap(value, spare);
                }
            }
            StepCode::InRegisters => {
                let (entry, table) = (&mut *x.entry, &*x.table);
                if has_halves {
                    let work = Section::<_, 2>::new(0, squarings, entry, table, digits_of_lanes);
                    self.square_in_registers(value, spare, squarings, work, x.modulus);
                } else {
                    let work = Section::<_, 1>::new(0, squarings, entry, table, digits_of_lanes);
                    self.square_in_registers(value, spare, squarings, work, x.modulus);
                }
            }
        }
        if has_halves {
            let mut mul = MulEntry {
                out: x.spare,
                a: x.value,
                entry: x.entry,
                modulus: &x.modulus,
                scratch: x.scratch,
            };
            madd52::dispatch(self.0, limbs, &mut mul);
        } else {
            self.mul(x.spare, x.value, x.entry, x.modulus, x.scratch);
        }
        mem::swap(&mut x.value, &mut x.spare);
    }
}

/// The code for the squarings and the look-up of a step.
///
/// This choice, [`have_halves`] and the window of products of powers depend on the processor and on
/// public lengths. No other code asks for the processor.
enum StepCode {
    /// The squarings, then the look-up.
    LookUpAfterwards,
    /// A section of the look-up along with each squaring.
    LookUpMeanwhile,
    /// The same, in one function for [all squarings](Squarings) of a number of one tile.
    InRegisters,
}

impl StepCode {
    /// For numbers of `limbs` limbs and a window of `squarings` bits.
    fn new<T: Madd52>(unit: T, limbs: usize, squarings: u32) -> Self {
        if !sections_suffice(squarings) {
            return Self::LookUpAfterwards;
        }
        // A Zen 5 has ports for other operations, so only short squarings lose time between
        // functions.
        let pays = unit.processor() != Processor::Other || limbs < 20;
        match pays && madd52::is_squared_in_registers::<T>(limbs) {
            true => Self::InRegisters,
            false => Self::LookUpMeanwhile,
        }
    }
}

/// Whether entries of tables for numbers of `limbs` limbs have [halves](super::halves).
///
/// On a Zen 4 multiply-adds are the bottleneck, so the fewest are the best. On a Zen 5 the look-up of
/// entries that are twice as long takes more time than it saves, except for long numbers; on Intel's
/// processors it saves none.
fn have_halves<T: Madd52>(unit: T, limbs: usize, window_bits: u32) -> bool {
    let pays = match unit.processor() {
        Processor::Zen4 => limbs >= 20,
        Processor::Intel => false,
        Processor::Other => limbs >= 40,
    };
    pays && sections_suffice(window_bits)
        && madd52::may_have_halves::<T>(madd52::tile_len::<T>(limbs))
}

impl<T: Madd52> Lanes52<T> {
    /// Squares a number of one tile `count` times, beside `work`.
    fn square_in_registers<'v>(
        self,
        value: &mut &'v mut [T::Limb],
        spare: &mut &'v mut [T::Limb],
        count: u32,
        work: impl Beside<T::Limb>,
        modulus: LaneModulus<'_, T::Limb>,
    ) {
        let mut squarings = Squarings {
            value,
            spare,
            count,
            modulus: &modulus,
            work,
        };
        madd52::dispatch(self.0, modulus.limbs.len(), &mut squarings);
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
