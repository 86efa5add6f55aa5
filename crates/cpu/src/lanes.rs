//! The common part of the SIMD backends: one instance in each lane of a vector, and everything
//! around the multiplication.
//!
//! A *limb* here is a vector that holds the same limb of every lane. A number of `n` limbs is `n`
//! vectors. (`ifma/pair` also moves data across lanes, for few instances.) A *group* is a set of
//! instances, at most one for each lane.
//!
//! A lane type supplies modular multiplication, squaring and a constant-time table look-up
//! ([`Lanes`]). Import, Montgomery constants, the ladder and export are written once, over that
//! trait.
//!
//! Montgomery arithmetic is the almost-Montgomery kind without a final subtraction (C. D. Walter,
//! "Montgomery exponentiation needs no final subtractions", Electronics Letters 35(21), 1999). With
//! `R = 2^(RADIX_BITS * n) > 4 * modulus`, factors below `2 * modulus` give a product below
//! `2 * modulus`. A lane type may have another bound. Only the export makes results canonical.

mod convert;
mod engine;
mod fixed_base;
mod ladder;
mod multi_exp;
mod power_engine;
pub(crate) mod products;
mod residues;
#[cfg(test)]
pub(crate) mod testing;
mod workspace;

use core::mem;

use batch_modexp_core::window::Window;
use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::engine::GROUP;
pub(crate) use self::engine::backend;
pub(crate) use self::engine::{LaneEngine, Profile, SimdEngine};
pub(crate) use self::fixed_base::PowerLanes;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::fixed_base::Selection;
#[cfg(test)]
pub(crate) use self::ladder::LARGEST_WINDOW;
pub(crate) use self::workspace::Operands;

/// The largest number of lanes in a vector.
pub(crate) const MAX_LANES: usize = 8;

/// Arithmetic on [`COUNT`](Self::COUNT) instances at a time, by a vector unit.
///
/// A value proves that the processor has the instructions.
pub(crate) trait Lanes: Copy {
    /// One limb of every lane. The default is [`ZERO`](Self::ZERO).
    type Limb: Copy + Default + Zeroize;

    /// The number of lanes.
    const COUNT: usize;
    /// Bits in a limb.
    const RADIX_BITS: u32;
    /// Factors, products and squares are below `BOUND * modulus`.
    const BOUND: u8;
    /// Zero in every lane.
    const ZERO: Self::Limb;
    /// Exponents of more bits than this use the largest window, shorter ones at most 4 bits. This value
    /// is measured for a look-up that is not hidden beside other work. While a table of 16 entries
    /// stays in the first-level cache, one of 32 does not pay.
    const LONG_EXPONENT_BITS: u32 = 1600;

    /// The number of limbs of an operand for moduli of `bits` bits. It gives
    /// `R > BOUND^2 * modulus`, or more if the multiplication needs it.
    fn limb_count(bits: u32) -> usize;

    /// The number of scratch limbs for a multiplication of `limbs` limbs.
    fn scratch_len(limbs: usize) -> usize;

    /// Sets one lane to `value`, which is below `2^RADIX_BITS`.
    fn set_lane(limb: &mut Self::Limb, lane: usize, value: u64);

    /// The value of one lane.
    fn lane(limb: &Self::Limb, lane: usize) -> u64;

    /// The number of limbs of constants that [`prepare`](Self::prepare) makes for a modulus of
    /// `limbs` limbs.
    fn constants_len(limbs: usize) -> usize {
        let _ = limbs;
        0
    }

    /// Computes the constants of the modulus that multiplications need besides `neg_inv`.
    fn prepare(
        self,
        constants: &mut [Self::Limb],
        modulus: &[Self::Limb],
        neg_inv: &Self::Limb,
        scratch: &mut [Self::Limb],
    ) {
        let _ = (constants, modulus, neg_inv, scratch);
    }

    /// `out`, congruent to `a * b / R` and below `a * b / R + (BOUND - 1) * modulus`, which must be
    /// below R. This is below `BOUND * modulus` if `a * b < R * modulus`.
    fn mul(
        self,
        out: &mut [Self::Limb],
        a: &[Self::Limb],
        b: &[Self::Limb],
        modulus: LaneModulus<'_, Self::Limb>,
        scratch: &mut [Self::Limb],
    );

    /// Like `mul(out, a, a, ..)`, faster.
    fn square(
        self,
        out: &mut [Self::Limb],
        a: &[Self::Limb],
        modulus: LaneModulus<'_, Self::Limb>,
        scratch: &mut [Self::Limb],
    );

    /// Squares `value` `count` times; `spare` is space for another number. A result moves between
    /// both, and ends in `value`.
    fn square_times<'v>(
        self,
        value: &mut &'v mut [Self::Limb],
        spare: &mut &'v mut [Self::Limb],
        count: u32,
        modulus: LaneModulus<'_, Self::Limb>,
        scratch: &mut [Self::Limb],
    ) {
        for _ in 0..count {
            self.square(spare, value, modulus, scratch);
            mem::swap(value, spare);
        }
    }

    /// Copies entry `digits[lane]` of `table` to `out` in every lane. Reads the whole table in the
    /// same order for all digits. An entry is `out.len()` limbs long.
    fn select(self, out: &mut [Self::Limb], table: &[Self::Limb], digits: &[u8]);

    /// The number of limbs of a table entry, for powers of `limbs` limbs and this window. An entry
    /// begins with the power. [`extend_entries`](Self::extend_entries) computes the rest of it.
    fn entry_len(self, limbs: usize, window: Window) -> usize {
        let _ = window;
        limbs
    }

    /// Computes what entries of the table have besides the power, for [`step`](Self::step).
    fn extend_entries(self, x: &mut Operands<'_, Self>) {
        let _ = x;
    }

    /// One step of the ladder, for one digit of the exponents.
    ///
    /// Squares `value` `squarings` times, at least once, and multiplies it by the power of entry
    /// `digits[lane]` of the table, which has `2^squarings` entries. `value` and the result are
    /// below `(BOUND + 1/2) * modulus`.
    ///
    /// The result is not copied to the place where the next step reads it. On Zen 4 the time of a
    /// copy depended on whether the value changed. So it showed, in `Ifma` pairs, how many digits
    /// left the power unchanged: leading zeros of an exponent, and bases of 0 and -1. See
    /// docs/log/evidence.md, "Running times", also for `Fma` with and without a copy.
    fn step(self, squarings: u32, digits: &[u8], x: &mut Operands<'_, Self>) {
        let (value, spare) = (&mut x.value, &mut x.spare);
        self.square_times(value, spare, squarings, x.modulus, x.scratch);
        self.select(x.entry, x.table, digits);
        self.mul(spare, value, x.entry, x.modulus, x.scratch);
        mem::swap(value, spare);
    }
}

/// The moduli of all lanes.
#[derive(Clone, Copy)]
pub(crate) struct LaneModulus<'a, L> {
    /// The moduli, all odd.
    pub(crate) limbs: &'a [L],
    /// `-1 / modulus mod 2^RADIX_BITS`.
    pub(crate) neg_inv: &'a L,
    /// The constants that [`Lanes::prepare`] computed.
    pub(crate) constants: &'a [L],
}
