//! Montgomery multiplication and squaring over tiles of `B` limbs.
//!
//! The method is operand scanning over tiles (C. K. Koc, T. Acar, B. S. Kaliski, "Analyzing and
//! Comparing Montgomery Multiplication Algorithms", IEEE Micro 16(3), 1996, coarsely integrated).
//! For each tile of `b`, from the lowest, it adds `a` times that tile. It then adds the multiple of
//! the modulus that clears the lowest tile of the sum. Column sums stay in registers from tile to
//! tile of `a`.

use core::mem;

use super::kernel::square;
use super::kernel::{self, Beside, Interleaved, Sums};
use super::look_up::Section;
use super::madd52::{Kernel, LaneLimb, Madd52, keeps_columns, may_have_halves};
use crate::lanes::LaneModulus;

/// The number of scratch limbs for operands of `limbs` limbs: the columns of a product, the doubled
/// operand, and one tile of quotients.
pub(super) const fn scratch_len(limbs: usize) -> usize {
    4 * limbs
}

/// The scratch space, cut into tiles.
pub(super) struct Scratch<'a, L, const B: usize> {
    pub(super) columns: &'a mut [[L; B]],
    pub(super) doubled: &'a mut [[L; B]],
    pub(super) q: &'a mut [L; B],
}

impl<'a, L, const B: usize> Scratch<'a, L, B> {
    #[inline(always)]
    pub(super) fn new(limbs: &'a mut [L], tiles: usize) -> Self {
        let (columns, rest) = limbs.as_chunks_mut().0.split_at_mut(2 * tiles);
        let (doubled, rest) = rest.split_at_mut(tiles);
        Self {
            columns,
            doubled,
            q: &mut rest[0],
        }
    }
}

/// See [`Lanes::mul`](crate::lanes::Lanes::mul).
pub(super) struct Mul<'a, L, W> {
    pub(super) out: &'a mut [L],
    pub(super) a: &'a [L],
    pub(super) b: &'a [L],
    pub(super) modulus: &'a LaneModulus<'a, L>,
    pub(super) scratch: &'a mut [L],
    /// The work beside the multiplication.
    pub(super) work: W,
}

impl<L: LaneLimb, W: Beside<L>> Kernel<L> for Mul<'_, L, W> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { keeps_columns::<T>(B) || W::NUMBERS == 0 } {
            unreachable!("nothing is looked up beside tiles of {B} limbs");
        }
        let (a, b, modulus) = (tiles(self.a), tiles(self.b), tiles(self.modulus.limbs));
        let count = tile_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch { columns, q, .. } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;
        let work = &mut self.work.interleaved::<T, B>(t);
        for (i, b) in b[..count].iter().enumerate() {
            let last = i + 1 == count;
            let row = |j: usize| [&a[j]];
            multiply_row(
                t,
                row,
                [b],
                i,
                last,
                modulus,
                neg_inv,
                columns,
                q,
                out,
                work,
            );
        }
    }
}

/// Row `i` of tiles of a product, or of a sum of `P` products.
///
/// Adds the tiles of the `a` operands, which `a` gives by number, times those of `b`. Clears the
/// lowest tile of columns. The `last` row writes the result.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn multiply_row<'a, T: Madd52, const B: usize, const P: usize>(
    t: T,
    a: impl Fn(usize) -> [&'a [T::Limb; B]; P],
    b: [&[T::Limb; B]; P],
    i: usize,
    last: bool,
    modulus: &[[T::Limb; B]],
    neg_inv: T::Vector,
    columns: &mut [[T::Limb; B]],
    q: &mut [T::Limb; B],
    out: &mut [[T::Limb; B]],
    work: &mut impl Interleaved<T>,
) {
    let (count, first) = (tile_count::<T, B>(modulus), i == 0);
    let zeros = zeros::<T, B>();
    let sums = if first {
        [t.zero(); B]
    } else {
        kernel::load(t, &columns[i])
    };
    // No columns come in from above before the second row of tiles, nor above the number.
    let tops = if first { zeros } else { &columns[i + 1] };
    let quotient = (count > 1).then_some(&mut *q);
    let limbs = b.map(|b| &b[..]);
    let mut sums = kernel::multiply_low(
        t,
        sums,
        tops,
        a(0),
        limbs,
        &modulus[0],
        neg_inv,
        quotient,
        false,
        work,
    );
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
        let modulus = &modulus[j];
        sums = kernel::multiply_high(t, sums, tops, a(j), b, modulus, q, low, last, work);
    }
    finish(t, sums, out, columns, i, last);
}

/// See [`Lanes::square`](crate::lanes::Lanes::square).
pub(super) struct Square<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) a: &'a [L],
    pub(super) modulus: &'a LaneModulus<'a, L>,
    pub(super) scratch: &'a mut [L],
    /// A part of a look-up, done along with the squaring.
    pub(super) section: Option<Section<'a, L, 1>>,
}

impl<L: LaneLimb> Kernel<L> for Square<'_, L> {
    /// Computes the squares of the tiles first. Then adds the products of different tiles row by
    /// row with the doubled operand, so that each is computed once.
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let (a, modulus) = (tiles(self.a), tiles(self.modulus.limbs));
        let count = tile_count::<T, B>(modulus);
        let neg_inv = t.load(self.modulus.neg_inv);
        let Scratch {
            columns,
            doubled,
            q,
        } = Scratch::<T::Limb, B>::new(self.scratch, count);
        let out = self.out.as_chunks_mut().0;
        let limbs = self.modulus.limbs.len();

        if count > 1 {
            // The lowest tile is never doubled.
            double(t, doubled[1..].as_flattened_mut(), &self.a[B - 1..]);
        }
        for (a, columns) in a[..count].iter().zip(columns.chunks_exact_mut(2)) {
            let (low, high) = columns.split_at_mut(1);
            square::square_tile(t, a, &mut low[0], &mut high[0]);
        }
        for i in 0..count {
            let last = i + 1 == count;
            let sums = kernel::load(t, &columns[i]);
            let (tops, modulus_0) = (&columns[i + 1], &modulus[0]);
            let quotient = (count > 1).then_some(&mut *q);
            let mut sums: Sums<T, B> = match &mut self.section {
                Some(section) => {
                    let rows = &mut section.tiles::<T, B>(t, i);
                    kernel::reduce_low(t, B, sums, tops, modulus_0, neg_inv, quotient, rows)
                }
                None => kernel::reduce_low(t, B, sums, tops, modulus_0, neg_inv, quotient, &mut ()),
            };
            for j in 1..count {
                let (low, high) = columns.split_at_mut(i + j + 1);
                let tops = &high[0];
                let low = if last {
                    &mut out[j - 1]
                } else {
                    &mut low[i + j]
                };
                let modulus = &modulus[j];
                if j == i + 1 {
                    // The carry from the tile below belongs to rows below. This is the last row
                    // that uses the tile.
                    let limb = t.load(&a[j][0]);
                    t.store(&mut doubled[j][0], t.low(t.add(limb, limb)));
                }
                // The second number of an entry follows the `count` tiles of the first one. It is
                // looked up beside a higher tile, whose rows have more multiply-adds.
                let section = match &mut self.section {
                    Some(section) if j == 1 && section.has_halves(limbs) => Some(section),
                    _ => None,
                };
                let by = || ([&doubled[j]], [&a[i]]);
                sums = match section {
                    Some(section) if const { may_have_halves::<T>(B) } => {
                        let work = &mut section.tiles::<T, B>(t, count + i);
                        if j > i {
                            let (a, b) = by();
                            kernel::multiply_high(t, sums, tops, a, b, modulus, q, low, last, work)
                        } else {
                            kernel::reduce_high(t, sums, tops, modulus, q, low, last, work)
                        }
                    }
                    _ if j > i => {
                        let (a, b) = by();
                        kernel::multiply_high(t, sums, tops, a, b, modulus, q, low, last, &mut ())
                    }
                    _ => kernel::reduce_high(t, sums, tops, modulus, q, low, last, &mut ()),
                };
            }
            finish(t, sums, out, columns, i, last);
        }
    }
}

/// Squares a number of one tile `count` times, from `value` to `spare` and back.
///
/// All squarings are one function, so that their common values are prepared once. The carries of
/// one squaring overlap with the first rows of the next, and multiply-adds hardly pause.
pub(super) struct Squarings<'a, L, W> {
    pub(super) value: &'a mut [L],
    pub(super) spare: &'a mut [L],
    pub(super) count: u32,
    pub(super) modulus: &'a LaneModulus<'a, L>,
    /// The work beside the squarings.
    pub(super) work: W,
}

impl<L: LaneLimb, W: Beside<L>> Kernel<L> for Squarings<'_, L, W> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        if !const { keeps_columns::<T>(B) && (W::NUMBERS < 2 || may_have_halves::<T>(B)) } {
            unreachable!("tiles of {B} limbs are not squared so");
        }
        let one_tile = "a number of one tile";
        let mut value = self.value.first_chunk_mut::<B>().expect(one_tile);
        let mut spare = self.spare.first_chunk_mut::<B>().expect(one_tile);
        let modulus = self.modulus.limbs.first_chunk::<B>().expect(one_tile);
        let neg_inv = t.load(self.modulus.neg_inv);
        let work = &mut self.work.interleaved::<T, B>(t);
        let mut sums = kernel::load(t, value);
        for squaring in 0..self.count as usize {
            work.begin(t, squaring);
            sums = square::square_alone(t, sums, value, modulus, neg_inv, work);
            mem::swap(&mut value, &mut spare);
        }
        kernel::normalise(t, value, sums);
    }
}

/// The number of tiles of a number. Short tiles only occur alone; telling the compiler saves it the
/// other code.
#[inline(always)]
pub(super) fn tile_count<T: Madd52, const B: usize>(number: &[[T::Limb; B]]) -> usize {
    if B <= T::MAX_TILE / 2 {
        1
    } else {
        number.len()
    }
}

/// A tile of zeros.
#[inline(always)]
pub(super) fn zeros<T: Madd52, const B: usize>() -> &'static [T::Limb; B] {
    const { T::Limb::ZEROS.first_chunk::<B>().unwrap() }
}

/// Completes the sums at the end of row `i` of tiles.
#[inline(always)]
pub(super) fn finish<T: Madd52, const B: usize>(
    t: T,
    sums: Sums<T, B>,
    out: &mut [[T::Limb; B]],
    columns: &mut [[T::Limb; B]],
    i: usize,
    last: bool,
) {
    let count = out.len();
    if last {
        kernel::normalise(t, &mut out[count - 1], sums);
    } else {
        kernel::store(t, &mut columns[i + count], sums);
    }
}

#[inline(always)]
pub(super) fn tiles<L, const B: usize>(limbs: &[L]) -> &[[L; B]] {
    limbs.as_chunks().0
}

/// The limbs of `2 * a` from the second one up. `a` is normalised, and below half of the capacity
/// of its limbs.
#[inline(always)]
fn double<T: Madd52>(t: T, out: &mut [T::Limb], a: &[T::Limb]) {
    let lowest = t.load(&a[0]);
    let mut carry = t.carry(t.add(lowest, lowest));
    for (out, a) in out.iter_mut().zip(&a[1..]) {
        let limb = t.load(a);
        let twice = t.add(limb, limb);
        // The lowest bit of `twice` is free for the carry, so the carry stops there.
        t.store(out, t.add(t.low(twice), carry));
        carry = t.carry(twice);
    }
}
