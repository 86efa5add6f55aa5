//! Montgomery multiplication and squaring over blocks, and the table look-up.
//!
//! Operand scanning over blocks (C. K. Koc, T. Acar, B. S. Kaliski, "Analyzing and Comparing Montgomery
//! Multiplication Algorithms", IEEE Micro 16(3), 1996, coarsely integrated): for each block of `b`, from
//! the lowest, add `a` times that block and the multiple of the modulus that clears the lowest block of
//! the sum. Column sums are kept in registers while they pass from block to block of `a`.

use super::kernel::{self, Sums};
use super::madd52::{Kernel, Limb, Madd52};
use crate::backend::lanes::Modulus;

/// Scratch limbs for operands of `limbs` limbs: the columns of a product, the doubled operand, and one
/// block of quotients.
pub(super) const fn scratch_len(limbs: usize) -> usize {
    4 * limbs
}

/// The scratch space, cut into blocks.
struct Scratch<'a, const B: usize> {
    columns: &'a mut [[Limb; B]],
    doubled: &'a mut [[Limb; B]],
    q: &'a mut [Limb; B],
}

impl<'a, const B: usize> Scratch<'a, B> {
    #[inline(always)]
    fn new(limbs: &'a mut [Limb], blocks: usize) -> Self {
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
pub(super) struct Mul<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) b: &'a [Limb],
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let (a, b, modulus) = (blocks(self.a), blocks(self.b), blocks(self.modulus.limbs));
        let count = modulus.len();
        let neg_inv = t.load(self.modulus.neg_inv);
        let out = self.out.as_chunks_mut().0;
        if count == 1 {
            let sums = kernel::multiply_block(t, &a[0], &b[0], &modulus[0], neg_inv);
            kernel::normalise(t, &mut out[0], sums, t.zero());
            return;
        }
        let Scratch { columns, q, .. } = Scratch::<B>::new(self.scratch, count);
        let zeros = const { &[Limb::ZERO; B] };

        for i in 0..count {
            let first = i == 0;
            let sums = if first {
                [t.zero(); B]
            } else {
                kernel::load(t, &columns[i])
            };
            // No columns come in from above before the second row of blocks, nor above the number.
            let tops = if first { zeros } else { &columns[i + 1] };
            let mut sums =
                kernel::multiply_low(t, sums, tops, &a[0], &b[i], &modulus[0], neg_inv, q);
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let tops = if first || j + 1 == count {
                    zeros
                } else {
                    &high[0]
                };
                sums = kernel::multiply_high(
                    t,
                    sums,
                    tops,
                    &a[j],
                    &b[i],
                    &modulus[j],
                    q,
                    &mut low[i + j],
                );
            }
            kernel::store(t, &mut columns[i + count], sums);
        }
        normalise(t, out, &columns[count..]);
    }
}

/// See [`Lanes::square`](crate::backend::lanes::Lanes::square).
pub(super) struct Square<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Square<'_> {
    /// The squares of the blocks come first; the products of different blocks are added row by row with
    /// the doubled operand, so that each is computed once.
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let (a, modulus) = (blocks(self.a), blocks(self.modulus.limbs));
        let count = modulus.len();
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch {
            columns,
            doubled,
            q,
        } = Scratch::<B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;

        for (a, columns) in a.iter().zip(columns.chunks_exact_mut(2)) {
            let (low, high) = columns.split_at_mut(1);
            kernel::square_block(t, a, &mut low[0], &mut high[0]);
        }
        if count == 1 {
            let sums = kernel::load(t, &columns[0]);
            let sums = kernel::reduce_low(t, sums, &columns[1], &modulus[0], neg_inv, q);
            kernel::normalise(t, &mut out[0], sums, t.zero());
            return;
        }

        double(t, doubled.as_flattened_mut(), self.a);
        for i in 0..count {
            let sums = kernel::load(t, &columns[i]);
            let mut sums: Sums<T, B> =
                kernel::reduce_low(t, sums, &columns[i + 1], &modulus[0], neg_inv, q);
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let (low, tops) = (&mut low[i + j], &high[0]);
                sums = if j > i {
                    if j == i + 1 {
                        // What the block below carries into this one belongs to rows below. This is
                        // the last row that uses the block.
                        let limb = t.load(&a[j][0]);
                        t.store(&mut doubled[j][0], t.low(t.add(limb, limb)));
                    }
                    kernel::multiply_high(t, sums, tops, &doubled[j], &a[i], &modulus[j], q, low)
                } else {
                    kernel::reduce_high(t, sums, tops, &modulus[j], q, low)
                };
            }
            kernel::store(t, &mut columns[i + count], sums);
        }
        normalise(t, out, &columns[count..]);
    }
}

/// See [`Lanes::select`](crate::backend::lanes::Lanes::select).
pub(super) struct Select<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) table: &'a [Limb],
    pub(super) digits: &'a Limb,
}

impl Kernel for Select<'_> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let digits = t.load(self.digits);
        let table = blocks(self.table);
        let out: &mut [[Limb; B]] = self.out.as_chunks_mut().0;
        let count = out.len();
        for (j, out) in out.iter_mut().enumerate() {
            kernel::select_block(t, out, &table[j..], count, digits);
        }
    }
}

#[inline(always)]
fn blocks<const B: usize>(limbs: &[Limb]) -> &[[Limb; B]] {
    limbs.as_chunks().0
}

/// `out = 2 * a`, normalised; `a` is, and is below half of what its limbs can hold.
#[inline(always)]
fn double<T: Madd52>(t: T, out: &mut [Limb], a: &[Limb]) {
    let mut carry = t.zero();
    for (out, a) in out.iter_mut().zip(a) {
        let limb = t.load(a);
        let sum = t.add(t.add(limb, limb), carry);
        carry = t.carry(sum);
        t.store(out, t.low(sum));
    }
}

/// From column sums to limbs.
#[inline(always)]
fn normalise<T: Madd52, const B: usize>(t: T, out: &mut [[Limb; B]], columns: &[[Limb; B]]) {
    let mut carry = t.zero();
    for (out, columns) in out.iter_mut().zip(columns) {
        carry = kernel::normalise(t, out, kernel::load(t, columns), carry);
    }
}
