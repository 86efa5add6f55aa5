//! The four lanes as a lane type of the common ladder.

use zeroize::Zeroize;

use super::fma51::{Fma51, Limb, RADIX_BITS, TWO_52};
use super::look_up::{Select, SelectOfRow};
use super::product::{self, Mul, Prepare, Square};
use crate::lanes::{LaneModulus, Lanes, PowerLanes};

/// Four instances on the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes4<T>(pub(super) T);

impl<T: Fma51> Lanes for Lanes4<T> {
    type Limb = Limb;

    const COUNT: usize = 4;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 3;
    const ZERO: Limb = Limb::ZERO;

    fn limb_count(bits: u32) -> usize {
        (bits + 4).div_ceil(RADIX_BITS).max(2) as usize
    }

    fn scratch_len(limbs: usize) -> usize {
        product::scratch_len(limbs)
    }

    /// Avoids a conversion from integer to double, which takes variable time on some processors.
    fn set_lane(limb: &mut Limb, lane: usize, value: u64) {
        limb.0[lane] = (f64::from_bits(TWO_52.to_bits() | value) - TWO_52).to_bits();
    }

    fn lane(limb: &Limb, lane: usize) -> u64 {
        (f64::from_bits(limb.0[lane]) + TWO_52).to_bits() - TWO_52.to_bits()
    }

    fn constants_len(limbs: usize) -> usize {
        product::constants_len(limbs)
    }

    fn prepare(
        self,
        constants: &mut [Limb],
        modulus: &[Limb],
        neg_inv: &Limb,
        scratch: &mut [Limb],
    ) {
        self.0.run(Prepare {
            constants,
            modulus,
            neg_inv,
            scratch,
        });
    }

    fn mul(
        self,
        out: &mut [Limb],
        a: &[Limb],
        b: &[Limb],
        modulus: LaneModulus<'_, Limb>,
        scratch: &mut [Limb],
    ) {
        let mul = Mul {
            out,
            a,
            b,
            modulus,
            scratch,
        };
        self.0.run(mul);
    }

    fn square(
        self,
        out: &mut [Limb],
        a: &[Limb],
        modulus: LaneModulus<'_, Limb>,
        scratch: &mut [Limb],
    ) {
        let square = Square {
            out,
            a,
            modulus,
            scratch,
        };
        self.0.run(square);
    }

    fn select(self, out: &mut [Limb], table: &[Limb], digits: &[u8]) {
        let mut limb = of_lanes(digits);
        let select = Select {
            out,
            table,
            digits: &limb,
        };
        self.0.run(select);
        limb.zeroize();
    }
}

impl<T: Fma51> PowerLanes for Lanes4<T> {
    const LARGEST_ROW_WINDOW: u32 = 5;

    fn select_of_row(self, out: &mut [Limb], row: &[u64], digits: &[u8]) {
        let mut limb = of_lanes(digits);
        let select = SelectOfRow {
            out,
            row,
            digits: &limb,
        };
        self.0.run(select);
        limb.zeroize();
    }
}

/// The digits of all lanes.
fn of_lanes(digits: &[u8]) -> Limb {
    let mut limb = Limb::ZERO;
    for (lane, digit) in limb.0.iter_mut().zip(digits) {
        *lane = u64::from(*digit);
    }
    limb
}
