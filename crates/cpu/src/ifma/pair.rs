//! Pairs: two instances at once, for batches too small to fill eight lanes. The limbs of each lie
//! across four lanes.
//!
//! A number of `4 J` limbs is cut into quarters of `J` limbs. Vector `j` holds limb `j` of each
//! quarter, for one instance in the even lanes and for the other in the odd ones. All eight lanes
//! are thus full. A row of the multiplication moves one vector across lanes rather than all of
//! them. In memory the limbs are in their usual order, with those of both instances side by side.
//!
//! S. Gueron and V. Krasnov, "Software Implementation of Modular Exponentiation, Using Advanced
//! Vector Instructions Architectures" (WAIFI 2012), have limbs of one number across lanes; OpenSSL
//! alternates two such numbers. The quarters, columns as operands, and two rows at a time are ours.
//! `docs/ifma.md` has the arithmetic.

mod across;
mod kernel;
#[cfg(test)]
mod tests;

use core::mem;

use zeroize::Zeroize;

pub(super) use self::across::{Across, Pair, PairKernel};
use self::kernel::{Mul, Select, Squares};
use super::madd52::{RADIX_BITS, run_with_len};
use crate::lanes::{LaneModulus, Lanes};

/// The most limbs of a quarter: about as many column sums fit into the registers.
const MAX_QUARTER: usize = 20;

/// The widest moduli for pairs, in bits. Each larger quarter would need another kernel.
pub(super) const MAX_BITS: u32 = 4 * MAX_QUARTER as u32 * RADIX_BITS - 2;

/// Two instances, computed with the instructions of `T`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs<T>(pub(super) T);

impl<T: Across> Lanes for Pairs<T> {
    type Limb = Pair;

    const COUNT: usize = 2;
    const RADIX_BITS: u32 = RADIX_BITS;
    const BOUND: u8 = 2;
    const ZERO: Pair = Pair::ZERO;

    /// The smallest multiple of four that gives `R > 4 * modulus` and at least two limbs for each
    /// quarter, since there are two rows at a time.
    fn limb_count(bits: u32) -> usize {
        let quarter = (bits + 2).div_ceil(RADIX_BITS).div_ceil(4).max(2) as usize;
        assert!(bits <= MAX_BITS, "{bits} bits are too wide for pairs");
        4 * quarter
    }

    fn scratch_len(_: usize) -> usize {
        0
    }

    fn set_lane(limb: &mut Pair, lane: usize, value: u64) {
        limb.0[lane] = value;
    }

    fn lane(limb: &Pair, lane: usize) -> u64 {
        limb.0[lane]
    }

    fn constants_len(_: usize) -> usize {
        2
    }

    /// `-1 / modulus mod 2^104`, as two limbs.
    fn prepare(
        self,
        constants: &mut [Pair],
        modulus: &[Pair],
        neg_inv: &Pair,
        _scratch: &mut [Pair],
    ) {
        const MASK: u128 = (1 << RADIX_BITS) - 1;
        for lane in 0..Self::COUNT {
            let limb = |i: usize| u128::from(modulus[i].0[lane]);
            let modulus = limb(0) | limb(1) << RADIX_BITS;
            // `x m = -1 + e` with a small `e` gives `x (2 + x m) m = -1 + e^2` (Newton): the number
            // of correct bits doubles.
            let x = u128::from(neg_inv.0[lane]);
            let x = x.wrapping_mul(x.wrapping_mul(modulus).wrapping_add(2));
            constants[0].0[lane] = (x & MASK) as u64;
            constants[1].0[lane] = (x >> RADIX_BITS & MASK) as u64;
        }
    }

    fn mul(
        self,
        out: &mut [Pair],
        a: &[Pair],
        b: &[Pair],
        modulus: LaneModulus<'_, Pair>,
        _scratch: &mut [Pair],
    ) {
        let mul = Mul { out, a, b, modulus };
        dispatch(self.0, modulus.limbs.len(), mul);
    }

    fn square(
        self,
        out: &mut [Pair],
        a: &[Pair],
        modulus: LaneModulus<'_, Pair>,
        _scratch: &mut [Pair],
    ) {
        let squares = Squares {
            out,
            a,
            count: 1,
            modulus,
        };
        dispatch(self.0, modulus.limbs.len(), squares);
    }

    fn square_times<'v>(
        self,
        value: &mut &'v mut [Pair],
        spare: &mut &'v mut [Pair],
        count: u32,
        modulus: LaneModulus<'_, Pair>,
        _scratch: &mut [Pair],
    ) {
        let squares = Squares {
            out: spare,
            a: value,
            count,
            modulus,
        };
        dispatch(self.0, modulus.limbs.len(), squares);
        mem::swap(value, spare);
    }

    fn select(self, out: &mut [Pair], table: &[Pair], digits: &[u8]) {
        let mut digits = Pair([0, 1].map(|lane| u64::from(digits[lane])));
        let limbs = out.len();
        let select = Select {
            out,
            table,
            digits: &digits,
        };
        dispatch(self.0, limbs, select);
        digits.zeroize();
    }
}

/// Runs `kernel` with the quarter length of operands of `limbs` limbs, a number that `limb_count`
/// gave.
fn dispatch<T: Across, K: PairKernel>(unit: T, limbs: usize, kernel: K) {
    run_with_len!(unit.run_pairs::<K>(kernel), limbs / 4,
        2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20);
}
