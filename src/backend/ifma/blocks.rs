//! Montgomery multiplication and squaring over blocks.
//!
//! Operand scanning over blocks (C. K. Koc, T. Acar, B. S. Kaliski, "Analyzing and Comparing Montgomery
//! Multiplication Algorithms", IEEE Micro 16(3), 1996, coarsely integrated): for each block of `b`, from
//! the lowest, add `a` times that block and the multiple of the modulus that clears the lowest block of
//! the sum. Column sums are kept in registers while they pass from block to block of `a`.

use super::columns;
use super::kernel::Columns;
use super::look_up::{Share, Spread};
use super::madd52::{Kernel, Limb, Madd52};
use super::{kernel, one_block};
use crate::backend::lanes::{LookUp, Modulus};

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

/// See [`Arithmetic::mul`](crate::backend::lanes::Arithmetic::mul).
pub(super) struct Mul<'a> {
    pub(super) a: &'a mut [Limb],
    pub(super) b: &'a [Limb],
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let (b, modulus) = (blocks(self.b), blocks(self.modulus.limbs));
        let a = self.a.as_chunks_mut().0;
        let count = modulus.len();
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch { columns, q, .. } = Scratch::<B>::new(self.scratch, count);
        columns.fill([Limb::ZERO; B]);
        for (i, b) in b.iter().enumerate() {
            let product = pair(columns, i);
            kernel::multiply_low(t, product, &a[0], b, &modulus[0], neg_inv, q);
            for j in 1..count {
                let product = pair(columns, i + j);
                kernel::multiply_high(t, product, &a[j], b, &modulus[j], q);
            }
        }
        carry_through(t, a, &columns[count..]);
    }
}

/// See [`Arithmetic::square_and_look_up`](crate::backend::lanes::Arithmetic::square_and_look_up).
pub(super) struct Square<'a> {
    pub(super) a: &'a mut [Limb],
    pub(super) squarings: u32,
    pub(super) look_up: LookUp<'a, Limb>,
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Square<'_> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let modulus = blocks(self.modulus.limbs);
        let a = self.a.as_chunks_mut().0;
        let neg_inv = t.load(self.modulus.neg_inv);
        let mut scratch = Scratch::<B>::new(self.scratch, modulus.len());
        let mut look_up = Spread::<T, B>::new(t, self.look_up, self.squarings);
        for squaring in 0..self.squarings {
            let mut share = look_up.share(t, squaring);
            if let ([a], [modulus]) = (&mut *a, modulus) {
                one_block::square(t, a, modulus, neg_inv, &mut share.block(0));
            } else {
                square(t, a, modulus, neg_inv, &mut scratch, &mut share);
            }
        }
    }
}

/// One squaring of several blocks. The squares of the blocks come first; the products of different blocks
/// are added row by row with the doubled operand, so that each is computed once.
#[inline(always)]
fn square<T: Madd52, const B: usize>(
    t: T,
    a: &mut [[Limb; B]],
    modulus: &[[Limb; B]],
    neg_inv: T::Vector,
    scratch: &mut Scratch<'_, B>,
    look_up: &mut Share<'_, T, B>,
) {
    let count = modulus.len();
    let Scratch {
        columns,
        doubled,
        q,
    } = scratch;
    for (a, columns) in a.iter().zip(columns.chunks_exact_mut(2)) {
        let (low, high) = columns.split_at_mut(1);
        kernel::square_block(t, a, &mut low[0], &mut high[0]);
    }
    // The lowest block is not used doubled, and what it carries into the next one belongs to it.
    double(t, doubled[1..].as_flattened_mut(), a[1..].as_flattened());
    for i in 0..count {
        kernel::reduce_low(
            t,
            pair(columns, i),
            &modulus[0],
            neg_inv,
            q,
            &mut look_up.block(i),
        );
        for j in 1..count {
            if j == i + 1 {
                // What the block below carries into this one belongs to rows below. This is the last
                // row that uses the block.
                let limb = t.load(&a[j][0]);
                t.store(&mut doubled[j][0], t.add(limb, limb));
            }
            let product = pair(columns, i + j);
            if j > i {
                kernel::multiply_high(t, product, &doubled[j], &a[i], &modulus[j], q);
            } else {
                kernel::reduce_high(t, product, &modulus[j], q);
            }
        }
    }
    carry_through(t, a, &columns[count..]);
}

/// Blocks `i` and `i + 1` of the columns.
#[inline(always)]
fn pair<const B: usize>(columns: &mut [[Limb; B]], i: usize) -> Columns<'_, B> {
    let [low, high] = &mut columns[i..i + 2] else {
        unreachable!("two blocks")
    };
    Columns { low, high }
}

#[inline(always)]
fn blocks<const B: usize>(limbs: &[Limb]) -> &[[Limb; B]] {
    limbs.as_chunks().0
}

/// `out = 2 * a`, where `a` is below half of what its limbs can hold.
#[inline(always)]
fn double<T: Madd52>(t: T, out: &mut [Limb], a: &[Limb]) {
    let mut carry = t.zero();
    for (out, a) in out.iter_mut().zip(a) {
        let limb = t.low(t.load(a));
        let sum = t.add(t.add(limb, limb), carry);
        carry = t.carry(sum);
        t.store(out, sum);
    }
}

/// From column sums to limbs.
#[inline(always)]
fn carry_through<T: Madd52, const B: usize>(t: T, out: &mut [[Limb; B]], columns: &[[Limb; B]]) {
    let mut carry = t.zero();
    for (out, columns) in out.iter_mut().zip(columns) {
        carry = columns::carry_through(t, out, columns::load(t, columns), carry);
    }
}
