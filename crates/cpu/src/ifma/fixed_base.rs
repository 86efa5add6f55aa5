//! The look-up in tables of a fixed base.

use super::kernel::{self, unrolled};
use super::lanes52::{Lanes52, of_lanes};
use super::madd52::{self, Kernel, Limb, MAX_LANES, Madd52};
use crate::lanes::FixedBaseLanes;

impl<T: Madd52> FixedBaseLanes for Lanes52<T> {
    const LARGEST_ROW_WINDOW: u32 = 6;

    fn select_of_row(self, out: &mut [T::Limb], row: &[u64], digits: &[u8]) {
        let limbs = out.len();
        let mut select = SelectOfRow {
            out,
            row,
            digits: of_lanes::<T>(digits),
        };
        madd52::dispatch(self.0, limbs, &mut select);
    }
}

/// The look-up in a row. A vector holds one word of as many entries as there are lanes. Each lane takes its word by a
/// permutation in registers, whose time does not depend on the indices (M. Hamburg, "Accelerating
/// AES with vector permute instructions", CHES 2009). A mask tells whether the lane's entry is
/// among them.
struct SelectOfRow<'a, L> {
    out: &'a mut [L],
    row: &'a [u64],
    digits: [u8; MAX_LANES],
}

impl<L: Limb> Kernel<L> for SelectOfRow<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let lanes = L::LANES as u8;
        let vector = t.widen(self.digits.map(|digit| digit / lanes));
        let in_vector = t.lane_numbers(self.digits.map(|digit| digit % lanes));
        let words = L::chunks(self.row);
        let vectors = words.len() / self.out.len();
        let out = self.out.as_chunks_mut::<B>().0;
        for (out, words) in out.iter_mut().zip(words.chunks_exact(B * vectors)) {
            let mut picked = [t.zero(); B];
            for number in 0..vectors {
                let mask = t.equal(vector, number as u64);
                unrolled!(B, J, {
                    picked[J] = t.pick(picked[J], mask, in_vector, &words[J * vectors + number]);
                });
            }
            kernel::store(t, out, picked);
        }
    }
}
