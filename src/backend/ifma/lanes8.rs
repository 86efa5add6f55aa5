//! The eight lanes as the common ladder sees them.

use super::blocks::{self, Mul, Square};
use super::look_up::Select;
use super::madd52::{Limb, Madd52, RADIX_BITS};
use super::size;
use crate::backend::lanes::{Lanes, Modulus, Step};

/// Eight instances on the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes8<T>(pub(super) T);

impl<T: Madd52> Lanes for Lanes8<T> {
    type Limb = Limb;

    const COUNT: usize = 8;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 2;
    const ZERO: Limb = Limb::ZERO;
    /// Look-ups are hidden beside squarings, so this is where the multiplications that a larger window saves pay for its
    /// table.
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

    fn lane(limb: &Limb, lane: usize) -> u64 {
        limb.0[lane]
    }

    fn mul(
        self,
        out: &mut [Limb],
        a: &[Limb],
        b: &[Limb],
        modulus: Modulus<'_, Limb>,
        scratch: &mut [Limb],
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
        out: &mut [Limb],
        a: &[Limb],
        modulus: Modulus<'_, Limb>,
        scratch: &mut [Limb],
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

    fn select(self, out: &mut [Limb], table: &[Limb], digits: &[u8]) {
        let limbs = out.len();
        let mut select = Select {
            out,
            table,
            digits: eight(digits),
        };
        size::dispatch(self.0, limbs, &mut select);
    }

    fn step(self, step: Step<'_, Limb>, modulus: Modulus<'_, Limb>, scratch: &mut [Limb]) {
        let digits = eight(step.digits);
        let mut step = blocks::Step {
            step,
            digits,
            modulus: &modulus,
            scratch,
        };
        size::dispatch(self.0, modulus.limbs.len(), &mut step);
    }
}

/// The digits of all lanes.
fn eight(digits: &[u8]) -> [u8; 8] {
    digits.try_into().expect("a digit for each lane")
}
