//! Products of blocks: the inner loops.
//!
//! A block is `B` limbs, and `B` column sums are held in registers. One row multiplies all limbs of a
//! block by one limb of another number and adds the low halves of the products to the sums of their own
//! columns, the high halves one column up. Then the lowest sum is complete, the sums move down by one
//! register, and the next column comes in above.
//!
//! The sums that are left after `B` rows are those of the `B` columns above. They go back to memory, so
//! that no register is held from one product to the next.

use super::columns::{self, carry_of_cleared, unrolled};
use super::look_up::Rows;
use super::madd52::{Limb, Madd52};

/// Adds `block[$j] * factor` to `sums`, with `top` as the column above them.
macro_rules! add_limb {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $block:ident, $j:ident, $factor:ident) => {
        let limb = $t.load(&$block[$j]);
        $sums[$j] = $t.madd_lo($sums[$j], limb, $factor);
        add_high!($t, $b, $sums, $top, limb, $j, $factor);
    };
}

/// Adds the high half of `limb * factor`, whose low half belongs to column `$j`.
macro_rules! add_high {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $limb:ident, $j:ident, $factor:ident) => {
        if $j + 1 < $b {
            $sums[$j + 1] = $t.madd_hi($sums[$j + 1], $limb, $factor);
        } else {
            $top = $t.madd_hi($top, $limb, $factor);
        }
    };
}

/// Adds `modulus[$j] * quotient`; the low half of the lowest is in the carry already.
macro_rules! reduce_limb {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $modulus:ident, $j:ident, $quotient:ident) => {
        let limb = $t.load(&$modulus[$j]);
        if $j > 0 {
            $sums[$j] = $t.madd_lo($sums[$j], limb, $quotient);
        }
        add_high!($t, $b, $sums, $top, limb, $j, $quotient);
    };
}

/// Moves the sums down by one column; `top` comes in above.
macro_rules! shift {
    ($t:ident, $b:ident, $sums:ident, $top:ident) => {
        unrolled!($b, J, {
            $sums[J] = if J + 1 < $b { $sums[J + 1] } else { $top };
        });
        $sums = columns::pin($t, $sums);
    };
}

/// How many limbs the reduction is behind the product in a row of [`multiply_low`], so that the quotient,
/// which needs the lowest column, is there when it is used.
const LAG: usize = 4;

/// The columns that a product of two blocks is added to.
pub(super) struct Columns<'a, const B: usize> {
    /// Held in registers first. They are not written back by a kernel that makes them zero.
    pub(super) low: &'a mut [Limb; B],
    /// Come in one by one.
    pub(super) high: &'a mut [Limb; B],
}

/// The lowest block of a Montgomery multiplication: adds `a * b + q * modulus`, where `q` is what makes the
/// low columns zero, and writes `q`. What the low columns carry goes to the high ones.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for 0 too.
pub(super) fn multiply_low<T: Madd52, const B: usize>(
    t: T,
    columns: Columns<'_, B>,
    a: &[Limb; B],
    b: &[Limb; B],
    modulus: &[Limb; B],
    neg_inv: T::Vector,
    q: &mut [Limb; B],
) {
    let mut sums = columns::load(t, columns.low);
    for row in 0..B {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        let factor = t.load(&b[row]);
        let mut top = t.load(&columns.high[row]);
        let lowest = t.madd_lo(sums[0], t.load(&a[0]), factor);
        let quotient = t.madd_lo(t.zero(), lowest, neg_inv);
        t.store(&mut q[row], quotient);
        sums[1] = t.add(sums[1], carry_of_cleared(t, lowest));
        sums[1] = t.madd_hi(sums[1], t.load(&a[0]), factor);
        unrolled!(B, J, {
            if J >= 1 {
                add_limb!(t, B, sums, top, a, J, factor);
            }
            if J >= LAG {
                const K: usize = J - if J < LAG { J } else { LAG };
                reduce_limb!(t, B, sums, top, modulus, K, quotient);
            }
        });
        unrolled!(B, J, {
            if J + LAG >= B {
                reduce_limb!(t, B, sums, top, modulus, J, quotient);
            }
        });
        shift!(t, B, sums, top);
    }
    columns::store(t, columns.high, sums);
}

/// The same without a product, with one block of a look-up.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // A row of everything.
pub(super) fn reduce_low<T: Madd52, const B: usize>(
    t: T,
    columns: Columns<'_, B>,
    modulus: &[Limb; B],
    neg_inv: T::Vector,
    q: &mut [Limb; B],
    look_up: &mut Rows<'_, T, B>,
) {
    let mut sums = columns::load(t, columns.low);
    for row in 0..B {
        let modulus = t.reload(modulus);
        let mut top = t.load(&columns.high[row]);
        let quotient = t.madd_lo(t.zero(), sums[0], neg_inv);
        t.store(&mut q[row], quotient);
        sums[1] = t.add(sums[1], carry_of_cleared(t, sums[0]));
        unrolled!(B, J, {
            reduce_limb!(t, B, sums, top, modulus, J, quotient);
        });
        shift!(t, B, sums, top);
        look_up.limb(t, row);
    }
    columns::store(t, columns.high, sums);
}

/// A block further up: adds `a * b + modulus * q`.
#[inline(always)]
pub(super) fn multiply_high<T: Madd52, const B: usize>(
    t: T,
    columns: Columns<'_, B>,
    a: &[Limb; B],
    b: &[Limb; B],
    modulus: &[Limb; B],
    q: &[Limb; B],
) {
    let mut sums = columns::load(t, columns.low);
    for row in 0..B {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        let (factor, quotient) = (t.load(&b[row]), t.load(&q[row]));
        let mut top = t.load(&columns.high[row]);
        unrolled!(B, J, {
            add_limb!(t, B, sums, top, a, J, factor);
            add_limb!(t, B, sums, top, modulus, J, quotient);
        });
        t.store(&mut columns.low[row], sums[0]);
        shift!(t, B, sums, top);
    }
    columns::store(t, columns.high, sums);
}

/// The same without a product: adds `modulus * q`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // A row of everything.
pub(super) fn reduce_high<T: Madd52, const B: usize>(
    t: T,
    columns: Columns<'_, B>,
    modulus: &[Limb; B],
    q: &[Limb; B],
) {
    let mut sums = columns::load(t, columns.low);
    for row in 0..B {
        let modulus = t.reload(modulus);
        let quotient = t.load(&q[row]);
        let mut top = t.load(&columns.high[row]);
        unrolled!(B, J, {
            add_limb!(t, B, sums, top, modulus, J, quotient);
        });
        t.store(&mut columns.low[row], sums[0]);
        shift!(t, B, sums, top);
    }
    columns::store(t, columns.high, sums);
}

/// The columns of `a^2`, low and high: half of the cross products, doubled, and the squares of the limbs.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // `J > I` is written out for `J = 0` too.
pub(super) fn square_block<T: Madd52, const B: usize>(
    t: T,
    a: &[Limb; B],
    low: &mut [Limb; B],
    high: &mut [Limb; B],
) {
    // The cross products of column c are summed up in register c mod B. After row i the columns up to
    // 2i + 2 are complete, and row i + 1 opens column i + 1 + B in the register of column i + 1.
    let mut sums = [t.zero(); B];
    let mut write = |column: usize, vector| {
        let limb = if column < B {
            &mut low[column]
        } else {
            &mut high[column - B]
        };
        t.store(limb, vector);
    };
    let first = t.load(&a[0]);
    write(0, t.madd_lo(t.zero(), first, first));
    unrolled!(B, I, {
        let a = t.reload(a);
        let factor = t.load(&a[I]);
        unrolled!(B, J, {
            if J > I {
                let limb = t.load(&a[J]);
                sums[(I + J) % B] = t.madd_lo(sums[(I + J) % B], limb, factor);
                let sum = if J + 1 < B {
                    sums[(I + J + 1) % B]
                } else {
                    t.zero()
                };
                sums[(I + J + 1) % B] = t.madd_hi(sum, limb, factor);
            }
        });
        // No cross product reaches the highest column.
        let odd = if I + 1 < B {
            sums[(2 * I + 1) % B]
        } else {
            t.zero()
        };
        write(2 * I + 1, t.madd_hi(t.add(odd, odd), factor, factor));
        if I + 1 < B {
            let next = t.load(&a[I + 1]);
            let even = sums[(2 * I + 2) % B];
            write(2 * I + 2, t.madd_lo(t.add(even, even), next, next));
        }
    });
}
