//! Montgomery multiplication and squaring over blocks, and what the ladder does for a digit.
//!
//! Operand scanning over blocks (C. K. Koc, T. Acar, B. S. Kaliski, "Analyzing and Comparing Montgomery
//! Multiplication Algorithms", IEEE Micro 16(3), 1996, coarsely integrated): for each block of `b`, from
//! the lowest, add `a` times that block and the multiple of the modulus that clears the lowest block of
//! the sum. Column sums are kept in registers while they pass from block to block of `a`.

use core::mem;

use super::kernel::{self, Sums};
use super::look_up::{Select, Share};
use super::madd52::{Kernel, Limb, Madd52};
use crate::backend::lanes::{self, Modulus};

/// Scratch limbs for operands of `limbs` limbs: the columns of a product, the doubled operand, and one
/// block of quotients.
pub(super) const fn scratch_len(limbs: usize) -> usize {
    4 * limbs
}

/// The scratch space, cut into blocks.
struct Scratch<'a, L, const B: usize> {
    columns: &'a mut [[L; B]],
    doubled: &'a mut [[L; B]],
    q: &'a mut [L; B],
}

impl<'a, L, const B: usize> Scratch<'a, L, B> {
    #[inline(always)]
    fn new(limbs: &'a mut [L], blocks: usize) -> Self {
        let (columns, rest) = limbs.as_chunks_mut().0.split_at_mut(2 * blocks);
        let (doubled, rest) = rest.split_at_mut(blocks);
        Self {
            columns,
            doubled,
            q: &mut rest[0],
        }
    }
}

/// See [`Lanes::mul`](crate::backend::lanes::Lanes::mul).
pub(super) struct Mul<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) a: &'a [L],
    pub(super) b: &'a [L],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for Mul<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (a, b, modulus) = (blocks(self.a), blocks(self.b), blocks(self.modulus.limbs));
        let count = block_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch { columns, q, .. } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;
        let zeros = const { L::ZEROS.first_chunk::<B>().unwrap() };

        for i in 0..count {
            let (first, last) = (i == 0, i + 1 == count);
            let sums = if first {
                [t.zero(); B]
            } else {
                kernel::load(t, &columns[i])
            };
            // No columns come in from above before the second row of blocks, nor above the number.
            let tops = if first { zeros } else { &columns[i + 1] };
            let quotient = (count > 1).then_some(&mut *q);
            let mut sums =
                kernel::multiply_low(t, sums, tops, &a[0], &b[i], &modulus[0], neg_inv, quotient);
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let tops = if first || j + 1 == count {
                    zeros
                } else {
                    &high[0]
                };
                let low = if last {
                    &mut out[j - 1]
                } else {
                    &mut low[i + j]
                };
                sums =
                    kernel::multiply_high(t, sums, tops, &a[j], &b[i], &modulus[j], q, low, last);
            }
            finish(t, sums, out, columns, i);
        }
    }
}

/// See [`Lanes::square`](crate::backend::lanes::Lanes::square).
pub(super) struct Square<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) a: &'a [L],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
    /// A part of a look-up, to be done on the way.
    pub(super) share: Option<Share<'a, L>>,
}

impl<L: Limb> Kernel<L> for Square<'_, L> {
    /// The squares of the blocks come first; the products of different blocks are added row by row with
    /// the doubled operand, so that each is computed once.
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (a, modulus) = (blocks(self.a), blocks(self.modulus.limbs));
        let count = block_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch {
            columns,
            doubled,
            q,
        } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;

        if count > 1 {
            double(t, doubled.as_flattened_mut(), self.a);
        }
        for (a, columns) in a[..count].iter().zip(columns.chunks_exact_mut(2)) {
            let (low, high) = columns.split_at_mut(1);
            kernel::square_block(t, a, &mut low[0], &mut high[0]);
        }
        for i in 0..count {
            let last = i + 1 == count;
            let sums = kernel::load(t, &columns[i]);
            let (tops, modulus_0) = (&columns[i + 1], &modulus[0]);
            let quotient = (count > 1).then_some(&mut *q);
            let mut sums: Sums<T, B> = match &mut self.share {
                Some(share) => {
                    let rows = &mut share.block::<T, B>(t, i);
                    kernel::reduce_low(t, sums, tops, modulus_0, neg_inv, quotient, rows)
                }
                None => kernel::reduce_low(t, sums, tops, modulus_0, neg_inv, quotient, &mut ()),
            };
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let tops = &high[0];
                let low = if last {
                    &mut out[j - 1]
                } else {
                    &mut low[i + j]
                };
                sums = if j > i {
                    if j == i + 1 {
                        // What the block below carries into this one belongs to rows below. This is
                        // the last row that uses the block.
                        let limb = t.load(&a[j][0]);
                        t.store(&mut doubled[j][0], t.low(t.add(limb, limb)));
                    }
                    kernel::multiply_high(
                        t,
                        sums,
                        tops,
                        &doubled[j],
                        &a[i],
                        &modulus[j],
                        q,
                        low,
                        last,
                    )
                } else {
                    kernel::reduce_high(t, sums, tops, &modulus[j], q, low, last)
                };
            }
            finish(t, sums, out, columns, i);
        }
    }
}

/// See [`Lanes::step`](crate::backend::lanes::Lanes::step).
pub(super) struct Step<'a, L> {
    pub(super) step: lanes::Step<'a, L>,
    pub(super) digits: [u8; 8],
    pub(super) modulus: &'a Modulus<'a, L>,
    pub(super) scratch: &'a mut [L],
}

impl<L: Limb> Kernel<L> for Step<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (digits, modulus) = (self.digits, self.modulus);
        let lanes::Step {
            squarings,
            table,
            ref mut factor,
            ref mut value,
            ref mut spare,
            ..
        } = self.step;
        let (mut value, mut spare) = (&mut **value, &mut **spare);
        let beside = Share::<L>::suffice(squarings);
        if beside && T::MERGES_INTO_ZERO {
            factor.fill(L::ZERO);
        }
        for squaring in 0..squarings {
            t.run::<_, B>(&mut Square {
                out: spare,
                a: value,
                modulus,
                scratch: self.scratch,
                share: beside.then(|| Share::new(squaring, factor, table, digits)),
            });
            mem::swap(&mut value, &mut spare);
        }
        if !beside {
            t.run::<_, B>(&mut Select {
                out: factor,
                table,
                digits,
            });
        }
        t.run::<_, B>(&mut Mul {
            out: spare,
            a: value,
            b: factor,
            modulus,
            scratch: self.scratch,
        });
        if squarings.is_multiple_of(2) {
            value.copy_from_slice(spare);
        }
    }
}

/// How many blocks a number has. That short blocks are alone spares the compiler the rest.
#[inline(always)]
fn block_count<T: Madd52, const B: usize>(number: &[[T::Limb; B]]) -> usize {
    if B <= T::MAX_BLOCK / 2 {
        1
    } else {
        number.len()
    }
}

/// What becomes of the sums at the end of row `i` of blocks.
#[inline(always)]
fn finish<T: Madd52, const B: usize>(
    t: T,
    sums: Sums<T, B>,
    out: &mut [[T::Limb; B]],
    columns: &mut [[T::Limb; B]],
    i: usize,
) {
    let count = out.len();
    if i + 1 == count {
        kernel::normalise(t, &mut out[count - 1], sums);
    } else {
        kernel::store(t, &mut columns[i + count], sums);
    }
}

#[inline(always)]
fn blocks<L, const B: usize>(limbs: &[L]) -> &[[L; B]] {
    limbs.as_chunks().0
}

/// `out = 2 * a`, normalised; `a` is, and is below half of what its limbs can hold.
#[inline(always)]
fn double<T: Madd52>(t: T, out: &mut [T::Limb], a: &[T::Limb]) {
    let mut carry = t.zero();
    for (out, a) in out.iter_mut().zip(a) {
        let limb = t.load(a);
        let twice = t.add(limb, limb);
        // The lowest bit of `twice` is free for the carry, which therefore goes no further.
        t.store(out, t.add(t.low(twice), carry));
        carry = t.carry(twice);
    }
}
