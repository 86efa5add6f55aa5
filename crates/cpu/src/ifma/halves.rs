//! Multiplication by an entry of the table with half of the reduction.
//!
//! For `a = a_0 + a_1 2^(52 h)` and `b' = b / 2^(52 h) mod M`,
//!
//! ```text
//! a b / 2^(52 N) = (a_0 b' + a_1 b) / 2^(52 (N - h))   mod M
//! ```
//!
//! Only `N - h` of `N` limbs are then reduced, in as many rows, each of two products. For `h = N /
//! 2` this takes `3 N^2` multiply-adds instead of `4 N^2`. An entry of the table then has two
//! numbers, `b` and `b'`.
//!
//! With several tiles, `h` is a whole number of tiles, the smaller half.
//!
//! **Bounds.** Let `K = R / M`. It is above 16, since the width of `M` is a multiple of 64 bits and
//! `R = 2^(52 N)` exceeds `2^width` by a multiple of four bits. With `a < A M` and `b < C M`, `b' <
//! (1 + C / 2^(52 h)) M`, and the result is below `(2 + A C / K + C / 2^(52 h)) M`. With `A` and
//! `C` of up to 2.4 the result is below `2.4 M` again. A squaring turns that into less than `1.4
//! M`. Numbers thus leave a step below `5/2 M` instead of `2 M`, which fits into `N` limbs, even
//! doubled.
//!
//! Source: Intel's multi-buffer library (crypto_mb) uses the idea.

use super::kernel::{self, Sums};
use super::madd52::{Kernel, LaneLimb, Madd52, may_have_halves};
use super::tiles::{Scratch, finish, multiply_row, tile_count, tiles, zeros};
use crate::lanes::LaneModulus;

/// `out = a * b / R mod modulus`, where `b` is an entry of a table.
pub(super) struct MulEntry<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) a: &'a [L],
    pub(super) entry: &'a [L],
    pub(super) modulus: &'a LaneModulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: LaneLimb> Kernel<L> for MulEntry<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { may_have_halves::<T>(B) } {
            unreachable!("tiles of {B} limbs have no halves");
        }
        let (a, modulus) = (tiles(self.a), tiles(self.modulus.limbs));
        let count = tile_count::<T, B>(modulus);
        let (entry, halved) = tiles(self.entry).split_at(count);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch { columns, q, .. } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;

        if count == 1 {
            let sums = multiply(t, &a[0], [&entry[0], &halved[0]], &modulus[0], neg_inv);
            return kernel::normalise(t, &mut out[0], sums);
        }
        let half = count / 2;
        for i in 0..half {
            let last = i + 1 == count - half;
            let row = |j: usize| [&halved[j], &entry[j]];
            let by = [&a[i], &a[half + i]];
            multiply_row(
                t,
                row,
                by,
                i,
                last,
                modulus,
                neg_inv,
                columns,
                q,
                out,
                &mut (),
            );
        }
        if !count.is_multiple_of(2) {
            let row = |j: usize| [&entry[j]];
            let by = [&a[2 * half]];
            multiply_row(
                t,
                row,
                by,
                half,
                true,
                modulus,
                neg_inv,
                columns,
                q,
                out,
                &mut (),
            );
        }
    }
}

/// The columns of `a * b / R mod modulus` for an entry of one tile: `b` with its half.
#[inline(always)]
fn multiply<T: Madd52, const B: usize>(
    t: T,
    a: &[T::Limb; B],
    [b, halved]: [&[T::Limb; B]; 2],
    modulus: &[T::Limb; B],
    neg_inv: T::Vector,
) -> Sums<T, B> {
    let zeros = zeros::<T, B>();
    let mut sums = [t.splat(kernel::RAISE); B];
    sums[B - B / 2..].fill(t.zero());
    let (low, high) = a.split_at(B / 2);
    let (high, odd) = high.split_at(B / 2);
    let (by, limbs) = ([halved, b], [low, high]);
    let sums = kernel::multiply_low(
        t,
        sums,
        zeros,
        by,
        limbs,
        modulus,
        neg_inv,
        None,
        true,
        &mut (),
    );
    kernel::multiply_low(
        t,
        sums,
        zeros,
        [b],
        [odd],
        modulus,
        neg_inv,
        None,
        true,
        &mut (),
    )
}

/// Computes the second number of an entry from the first one.
pub(super) struct Extend<'a, L> {
    pub(super) entry: &'a mut [L],
    pub(super) modulus: &'a LaneModulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: LaneLimb> Kernel<L> for Extend<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { may_have_halves::<T>(B) } {
            unreachable!("tiles of {B} limbs have no halves");
        }
        let modulus = tiles(self.modulus.limbs);
        let count = tile_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let (power, halved) = self.entry.as_chunks_mut::<B>().0.split_at_mut(count);
        let (modulus_0, zeros) = (&modulus[0], zeros::<T, B>());
        if count == 1 {
            let sums = kernel::load(t, &power[0]);
            let rows = B / 2;
            let sums = kernel::reduce_low(t, rows, sums, zeros, modulus_0, neg_inv, None, &mut ());
            return kernel::normalise(t, &mut halved[0], sums);
        }
        let Scratch { columns, q, .. } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let half = count / 2;
        columns[..count].copy_from_slice(power);
        columns[count..count + half].fill(*zeros);
        for i in 0..half {
            let last = i + 1 == half;
            let (sums, tops) = (kernel::load(t, &columns[i]), &columns[i + 1]);
            let quotient = Some(&mut *q);
            let mut sums =
                kernel::reduce_low(t, B, sums, tops, modulus_0, neg_inv, quotient, &mut ());
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let low = if last {
                    &mut halved[j - 1]
                } else {
                    &mut low[i + j]
                };
                sums = kernel::reduce_high(t, sums, &high[0], &modulus[j], q, low, last, &mut ());
            }
            finish(t, sums, halved, columns, i, last);
        }
    }
}
