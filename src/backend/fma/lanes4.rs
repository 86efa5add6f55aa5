//! The four lanes as the common ladder sees them.

use zeroize::Zeroize;

use super::fma51::{Fma51, Limb, RADIX_BITS, TWO_52};
use super::product::{self, Mul, Prepare, Select, Square};
use crate::backend::lanes::{Arithmetic, Lanes, LookUp, Modulus, Task};

/// Four instances on the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes4<T>(pub(super) T);

impl<T: Fma51> Lanes for Lanes4<T> {
    type Limb = Limb;

    const COUNT: usize = 4;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 3;
    const ZERO: Limb = Limb::ZERO;
    /// Measured: as long as a table of 16 entries stays in the first-level cache, one of 32 does not pay.
    const LONG_EXPONENT_BITS: u32 = 1600;

    fn limb_count(bits: u32) -> usize {
        (bits + 4).div_ceil(RADIX_BITS).max(2) as usize
    }

    fn scratch_len(limbs: usize) -> usize {
        product::scratch_len(limbs)
    }

    /// Without a conversion from integer to double, which some processors do in variable time.
    fn set_lane(limb: &mut Limb, lane: usize, value: u64) {
        limb.0[lane] = (f64::from_bits(TWO_52.to_bits() | value) - TWO_52).to_bits();
    }

    fn lane(limb: &Limb, lane: usize) -> u64 {
        (f64::from_bits(limb.0[lane]) + TWO_52).to_bits() - TWO_52.to_bits()
    }

    fn constants_len(limbs: usize) -> usize {
        product::constants_len(limbs)
    }

    fn run<K: Task<Limb>>(self, _limbs: usize, task: K) {
        task.run(self);
    }
}

/// Each operation is compiled for the instructions by itself.
impl<T: Fma51> Arithmetic for Lanes4<T> {
    type Limb = Limb;

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

    fn mul(self, a: &mut [Limb], b: &[Limb], modulus: Modulus<'_, Limb>, scratch: &mut [Limb]) {
        let mul = Mul {
            a,
            b,
            modulus,
            scratch,
        };
        self.0.run(mul);
    }

    fn square_and_look_up(
        self,
        a: &mut [Limb],
        squarings: u32,
        look_up: LookUp<'_, Limb>,
        modulus: Modulus<'_, Limb>,
        scratch: &mut [Limb],
    ) {
        for _ in 0..squarings {
            let square = Square {
                a: &mut *a,
                modulus,
                scratch: &mut *scratch,
            };
            self.0.run(square);
        }
        self.look_up(look_up);
    }

    fn look_up(self, look_up: LookUp<'_, Limb>) {
        let mut limb = Limb::ZERO;
        for (lane, digit) in limb.0.iter_mut().zip(look_up.digits) {
            *lane = u64::from(*digit);
        }
        let select = Select {
            out: look_up.out,
            table: look_up.table,
            digits: &limb,
        };
        self.0.run(select);
        limb.zeroize();
    }
}
