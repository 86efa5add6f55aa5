//! The eight lanes as the common ladder sees them.

use super::blocks::{self, Mul, Square};
use super::look_up::Select;
use super::madd52::{Kernel, Limb, Madd52, RADIX_BITS};
use super::size;
use crate::backend::lanes::{self, Arithmetic, Lanes, Modulus, Task};

/// Eight instances on the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes8<T>(pub(super) T);

impl<T: Madd52> Lanes for Lanes8<T> {
    type Limb = Limb;

    const COUNT: usize = 8;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 2;
    const ZERO: Limb = Limb::ZERO;
    /// Look-ups hide behind squarings, so this is where the multiplications that a larger window saves pay
    /// for its table.
    const LONG_EXPONENT_BITS: u32 = 320;

    fn limb_count(bits: u32) -> usize {
        size::limb_count(bits)
    }

    fn scratch_len(limbs: usize) -> usize {
        blocks::scratch_len(limbs)
    }

    fn set_lane(limb: &mut Limb, lane: usize, value: u64) {
        limb.0[lane] = value;
    }

    /// What a limb carries above 52 bits is in the limb above it already.
    fn lane(limb: &Limb, lane: usize) -> u64 {
        limb.0[lane] & ((1 << RADIX_BITS) - 1)
    }

    fn run<K: Task<Limb>>(self, limbs: usize, task: K) {
        size::dispatch(self.0, limbs, WithBlocks(task));
    }
}

/// A task on numbers that are cut into blocks.
struct WithBlocks<K>(K);

impl<K: Task<Limb>> Kernel for WithBlocks<K> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        self.0.run(Blocks::<T, B>(t));
    }
}

/// The arithmetic of numbers that are cut into blocks of `B` limbs.
#[derive(Clone, Copy)]
struct Blocks<T, const B: usize>(T);

impl<T: Madd52, const B: usize> Arithmetic for Blocks<T, B> {
    type Limb = Limb;

    /// A call of its own, since there are many places to call it from.
    #[inline(always)]
    fn mul(self, a: &mut [Limb], b: &[Limb], modulus: Modulus<'_, Limb>, scratch: &mut [Limb]) {
        let mul = Mul {
            a,
            b,
            modulus,
            scratch,
        };
        self.0.run::<_, B>(mul);
    }

    #[inline(always)]
    fn square_and_look_up(
        self,
        a: &mut [Limb],
        squarings: u32,
        look_up: lanes::LookUp<'_, Limb>,
        modulus: Modulus<'_, Limb>,
        scratch: &mut [Limb],
    ) {
        let square = Square {
            a,
            squarings,
            look_up,
            modulus,
            scratch,
        };
        square.run::<T, B>(self.0);
    }

    #[inline(always)]
    fn look_up(self, look_up: lanes::LookUp<'_, Limb>) {
        self.0.run::<_, B>(Select(look_up));
    }
}
