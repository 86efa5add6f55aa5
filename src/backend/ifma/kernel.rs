//! Products of blocks: the inner loops.
//!
//! A block is `B` limbs, and `B` column sums are held in registers. One row multiplies all limbs of a
//! block by one limb of another number and adds the low halves of the products to the sums of their own
//! columns, the high halves one column up. Then the lowest sum is complete, and the sums move down by one
//! register.
//!
//! Column sums are not normalised in between. A column gets at most four halves below 2^52 a row, from
//! at most 316 rows (16,384 bits), and a carry: less than 2^63.

use super::madd52::{Limb, Madd52};

/// Writes `$body` out for each `$j` below `$b`, which is at most 20. A loop that the compiler unrolls
/// later does not do: it would keep the sums in memory.
macro_rules! unrolled {
    ($b:ident, $j:ident, $body:block) => {
        unrolled!(@ $b, $j, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    };
    (@ $b:ident, $j:ident, $body:block, $($index:literal)*) => { $({
        const $j: usize = $index;
        if $j < $b $body
    })* };
}
pub(super) use unrolled;

/// Column sums in registers, least significant first.
pub(super) type Sums<T, const B: usize> = [<T as Madd52>::Vector; B];

/// Adds `block * factor` to `sums`, with `top` as the column above them.
macro_rules! add_row {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $block:expr, $factor:ident) => {
        unrolled!($b, J, {
            let limb = $t.load(&$block[J]);
            $sums[J] = $t.madd_lo($sums[J], limb, $factor);
            if J + 1 < $b {
                $sums[J + 1] = $t.madd_hi($sums[J + 1], limb, $factor);
            } else {
                $top = $t.madd_hi($top, limb, $factor);
            }
        });
    };
}

/// Moves the sums down by one column; `top` comes in above.
macro_rules! shift {
    ($b:ident, $sums:ident, $top:ident) => {
        unrolled!($b, J, {
            $sums[J] = if J + 1 < $b { $sums[J + 1] } else { $top };
        });
    };
}

/// Adds the multiple of the modulus that makes the lowest sum a multiple of 2^52, carries what is above
/// and shifts. Returns the quotient limb.
///
/// What the lowest sum `s` becomes is not computed: the quotient adds `-s mod 2^52` to it, whatever the modulus is, so
/// that it carries `s / 2^52`, rounded up.
macro_rules! reduce_row {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $modulus:expr, $neg_inv:ident) => {{
        let quotient = $t.madd_lo($t.zero(), $sums[0], $neg_inv);
        $sums[1] = $t.add($sums[1], $t.carry_of_cleared($sums[0]));
        unrolled!($b, J, {
            let limb = $t.load(&$modulus[J]);
            if J > 0 {
                $sums[J] = $t.madd_lo($sums[J], limb, quotient);
            }
            if J + 1 < $b {
                $sums[J + 1] = $t.madd_hi($sums[J + 1], limb, quotient);
            } else {
                $top = $t.madd_hi($top, limb, quotient);
            }
        });
        shift!($b, $sums, $top);
        quotient
    }};
}

/// The lowest block of a Montgomery multiplication: `sums = (sums + a * b + q * modulus) / 2^(52 * B)`,
/// where `tops` are the columns above `sums`. Writes the quotient to `q`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn multiply_low<T: Madd52, const B: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[Limb; B],
    a: &[Limb; B],
    b: &[Limb; B],
    modulus: &[Limb; B],
    neg_inv: T::Vector,
    q: &mut [Limb; B],
) -> Sums<T, B> {
    for row in 0..B {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        let factor = t.load(&b[row]);
        let mut top = t.load(&tops[row]);
        add_row!(t, B, sums, top, a, factor);
        let quotient = reduce_row!(t, B, sums, top, modulus, neg_inv);
        t.store(&mut q[row], quotient);
    }
    sums
}

/// The whole of a Montgomery multiplication of one block, less the carries:
/// `(a * b + q * modulus) / 2^(52 * B)`.
#[inline(always)]
pub(super) fn multiply_block<T: Madd52, const B: usize>(
    t: T,
    a: &[Limb; B],
    b: &[Limb; B],
    modulus: &[Limb; B],
    neg_inv: T::Vector,
) -> Sums<T, B> {
    let mut sums = [t.zero(); B];
    for factor in b {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        let factor = t.load(factor);
        let mut top = t.zero();
        add_row!(t, B, sums, top, a, factor);
        reduce_row!(t, B, sums, top, modulus, neg_inv);
    }
    sums
}

/// The same without a product: `sums = (sums + q * modulus) / 2^(52 * B)`.
#[inline(always)]
pub(super) fn reduce_low<T: Madd52, const B: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[Limb; B],
    modulus: &[Limb; B],
    neg_inv: T::Vector,
    q: &mut [Limb; B],
) -> Sums<T, B> {
    for row in 0..B {
        let modulus = t.reload(modulus);
        let mut top = t.load(&tops[row]);
        let quotient = reduce_row!(t, B, sums, top, modulus, neg_inv);
        t.store(&mut q[row], quotient);
    }
    sums
}

/// A block further up: adds `a * b + modulus * q`, writes the low `B` columns to `low` and returns the
/// high ones.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn multiply_high<T: Madd52, const B: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[Limb; B],
    a: &[Limb; B],
    b: &[Limb; B],
    modulus: &[Limb; B],
    q: &[Limb; B],
    low: &mut [Limb; B],
) -> Sums<T, B> {
    for row in 0..B {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        let (factor, quotient) = (t.load(&b[row]), t.load(&q[row]));
        let mut top = t.load(&tops[row]);
        add_row!(t, B, sums, top, a, factor);
        add_row!(t, B, sums, top, modulus, quotient);
        t.store(&mut low[row], sums[0]);
        shift!(B, sums, top);
    }
    sums
}

/// The same without a product: adds `modulus * q`.
#[inline(always)]
pub(super) fn reduce_high<T: Madd52, const B: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[Limb; B],
    modulus: &[Limb; B],
    q: &[Limb; B],
    low: &mut [Limb; B],
) -> Sums<T, B> {
    for row in 0..B {
        let modulus = t.reload(modulus);
        let quotient = t.load(&q[row]);
        let mut top = t.load(&tops[row]);
        add_row!(t, B, sums, top, modulus, quotient);
        t.store(&mut low[row], sums[0]);
        shift!(B, sums, top);
    }
    sums
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

/// Reads `B` column sums.
#[inline(always)]
pub(super) fn load<T: Madd52, const B: usize>(t: T, block: &[Limb; B]) -> Sums<T, B> {
    let mut sums = [t.zero(); B];
    unrolled!(B, J, {
        sums[J] = t.load(&block[J]);
    });
    sums
}

/// Writes `B` column sums.
#[inline(always)]
pub(super) fn store<T: Madd52, const B: usize>(t: T, block: &mut [Limb; B], sums: Sums<T, B>) {
    unrolled!(B, J, {
        t.store(&mut block[J], sums[J]);
    });
}

/// Writes the limbs of `B` column sums, given the carry from below, and returns the carry.
#[inline(always)]
pub(super) fn normalise<T: Madd52, const B: usize>(
    t: T,
    out: &mut [Limb; B],
    sums: Sums<T, B>,
    mut carry: T::Vector,
) -> T::Vector {
    unrolled!(B, J, {
        let sum = t.add(sums[J], carry);
        carry = t.carry(sum);
        t.store(&mut out[J], t.low(sum));
    });
    carry
}

/// Picks an entry of a table of `entries` whose blocks are `stride` blocks apart, by the digit of each lane.
#[inline(always)]
pub(super) fn select_block<T: Madd52, const B: usize>(
    t: T,
    out: &mut [Limb; B],
    table: &[[Limb; B]],
    stride: usize,
    digits: T::Vector,
) {
    let mut sums = [t.zero(); B];
    for (entry, block) in (0..).zip(table.iter().step_by(stride)) {
        unrolled!(B, J, {
            sums[J] = t.pick(sums[J], &block[J], digits, entry);
        });
    }
    store(t, out, sums);
}
