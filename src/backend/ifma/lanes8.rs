//! The eight lanes as the common ladder sees them.

use zeroize::Zeroize;

use super::blocks::{self, Mul, Select, Square};
use super::madd52::{Limb, Madd52, RADIX_BITS};
use super::size;
use crate::backend::lanes::{Lanes, Modulus};

/// Eight instances on the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes8<T>(pub(super) T);

impl<T: Madd52> Lanes for Lanes8<T> {
    type Limb = Limb;

    const COUNT: usize = 8;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 2;
    const ZERO: Limb = Limb::ZERO;

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
        let mul = Mul {
            out,
            a,
            b,
            modulus,
            scratch,
        };
        size::dispatch(self.0, modulus.limbs.len(), mul);
    }

    fn square(
        self,
        out: &mut [Limb],
        a: &[Limb],
        modulus: Modulus<'_, Limb>,
        scratch: &mut [Limb],
    ) {
        let square = Square {
            out,
            a,
            modulus,
            scratch,
        };
        size::dispatch(self.0, modulus.limbs.len(), square);
    }

    fn select(self, out: &mut [Limb], table: &[Limb], digits: &[u8]) {
        let mut limb = Limb::ZERO;
        for (lane, digit) in limb.0.iter_mut().zip(digits) {
            *lane = u64::from(*digit);
        }
        let limbs = out.len();
        let select = Select {
            out,
            table,
            digits: &limb,
        };
        size::dispatch(self.0, limbs, select);
        limb.zeroize();
    }
}
