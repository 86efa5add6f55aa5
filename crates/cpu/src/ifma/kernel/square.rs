//! Squares: each product of two different limbs is computed once.

use super::{Interleaved, Madd52, RAISE, Sums};
use crate::ifma::madd52::{reload, unrolled};

/// The columns of `a^2`, low and high: half of the cross products, doubled, and the squares of the
/// limbs.
///
/// A row has the products of one limb with the limbs below it. It thus need not wait for the limbs
/// above, which the operation before this one completes one after the other.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // `I < J` is written out for `J = 0` too.
pub(crate) fn square_tile<T: Madd52, const B: usize>(
    t: T,
    a: &[T::Limb; B],
    low: &mut [T::Limb; B],
    high: &mut [T::Limb; B],
) {
    // The cross products of column c are summed in register c mod B. Row j opens the columns 2j - 1
    // and 2j, and completes column j, whose register column j + B then takes.
    let mut sums = [t.zero(); B];
    unrolled!(B, J, {
        let a = reload(a);
        let factor = t.load(&a[J]);
        unrolled!(B, I, {
            if I < J {
                let limb = t.load(&a[I]);
                let sum = if J == 1 { t.zero() } else { sums[(I + J) % B] };
                sums[(I + J) % B] = t.madd_lo(sum, limb, factor);
                let sum = if I + 2 >= J {
                    t.zero()
                } else {
                    sums[(I + J + 1) % B]
                };
                sums[(I + J + 1) % B] = t.madd_hi(sum, limb, factor);
            }
        });
        t.store(&mut low[J], whole_column(t, a, J, sums[J]));
    });
    unrolled!(B, J, {
        // No cross product reaches the highest column.
        let sum = if J + 1 < B { sums[J] } else { t.zero() };
        t.store(&mut high[J], whole_column(t, a, B + J, sum));
    });
}

/// Column `column` of `a^2`, given half of its cross products.
#[inline(always)]
fn whole_column<T: Madd52, const B: usize>(
    t: T,
    a: &[T::Limb; B],
    column: usize,
    half: T::Vector,
) -> T::Vector {
    with_square(t, t.load(&a[column / 2]), column, half)
}

/// Column `column`, given the limb whose square it contains.
#[inline(always)]
fn with_square<T: Madd52>(t: T, limb: T::Vector, column: usize, half: T::Vector) -> T::Vector {
    let cross = t.add(half, half);
    if column.is_multiple_of(2) {
        t.madd_lo(cross, limb, limb)
    } else {
        t.madd_hi(cross, limb, limb)
    }
}

/// This many limbs are taken from registers by the first rows, which would otherwise wait for a
/// store and a load.
const FRESH: usize = 5;

/// `a^2 / 2^(52 * B)` of a number of one tile, given and returned as column sums. Does `work` in
/// each row of the reduction.
///
/// A column of the operand becomes a limb when its row needs it, and is written to `limbs`. The
/// columns stay in registers. The lower half of them comes first; the reduction computes each
/// higher column when it gets there.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for `J = 0` too.
#[allow(unused_assignments)] // Of the last row.
pub(crate) fn square_alone<T: Madd52, const B: usize>(
    t: T,
    columns: Sums<T, B>,
    limbs: &mut [T::Limb; B],
    modulus: &[T::Limb; B],
    neg_inv: T::Vector,
    work: &mut impl Interleaved<T>,
) -> Sums<T, B> {
    // Columns are raised by 2^53 - 1, of which 1 is carried, the last one by 2^52 - 1: half of the
    // remainder.
    let mut sums = [t.splat(RAISE); B];
    sums[B - 1] = t.splat(RAISE / 2);
    // Half of the cross products of the next two columns above `sums`.
    let (mut cross, mut next_cross) = (t.zero(), t.zero());
    let mut fresh = [t.zero(); FRESH];
    // The carry of the columns that are limbs already.
    let mut carry = t.zero();
    unrolled!(B, J, {
        let factor = t.add(columns[J], carry);
        carry = t.carry(factor);
        t.store(&mut limbs[J], factor);
        let a = reload(&*limbs);
        if J < FRESH {
            fresh[J % FRESH] = factor;
        }
        unrolled!(B, I, {
            if I < J && I + J < B {
                let limb = if J < FRESH {
                    fresh[I % FRESH]
                } else {
                    t.load(&a[I])
                };
                sums[(I + J) % B] = t.madd_lo(sums[(I + J) % B], limb, factor);
                if I + J + 1 < B {
                    sums[(I + J + 1) % B] = t.madd_hi(sums[(I + J + 1) % B], limb, factor);
                } else {
                    cross = t.madd_hi(cross, limb, factor);
                }
            }
        });
        let root = if J < FRESH {
            fresh[J / 2 % FRESH]
        } else {
            t.load(&a[J / 2])
        };
        sums[J] = if J == 0 {
            t.madd_lo(t.splat(2 * RAISE + 1), root, root)
        } else {
            with_square(t, root, J, sums[J])
        };
    });

    let (mut a, mut modulus) = (&*limbs, modulus);
    // The quotient of a column that is raised by 1 less than a multiple of 2^52.
    let mut quotient = t.madd_lo(neg_inv, sums[0], neg_inv);
    unrolled!(B, I, {
        (a, modulus) = (reload(a), reload(modulus));
        let carry = t.carry(sums[0]);
        complete_next!(t, sums, modulus, quotient, carry);
        let next = t.madd_lo(neg_inv, sums[1], neg_inv);
        let mut top = cross;
        unrolled!(B, J, {
            if J >= 1 {
                if I + 2 * J < B {
                    let (low, high) = (t.load(&a[(I + J) % B]), t.load(&a[B - J]));
                    cross = t.madd_lo(cross, low, high);
                    next_cross = t.madd_hi(next_cross, low, high);
                }
                if J + 1 == B {
                    top = whole_column(t, a, B + I, cross);
                }
                reduce_limb!(t, B, sums, top, modulus, J, quotient);
            }
            work.part::<J>(t, I);
        });
        shift!(B, sums, top);
        quotient = next;
        cross = next_cross;
        next_cross = t.zero();
    });
    sums
}
