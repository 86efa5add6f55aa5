//! Products of tiles: the inner loops.
//!
//! A tile is `B` limbs, and its `B` column sums are in registers. One row multiplies all limbs of a
//! tile by one limb of another number. It adds the low halves of the products to the sums of their
//! own columns, and the high halves one column up. The lowest sum is then complete, and the sums
//! move down by one register.
//!
//! Column sums are not normalised in between. A column gets at most four halves below 2^52 a row,
//! or six in half as many rows, from at most 320 rows (16,384 bits), and a carry: less than 2^63.

use super::madd52::{LaneLimb, Madd52, RADIX_BITS, reload, unrolled};

/// The largest amount by which a column may be raised from the start.
///
/// The carry of a raised column need not be rounded up when the column is cleared. The quotient of
/// a raised column `s` is `(s + 1) n` for `n = -1 / modulus mod 2^52`, so it starts at `n`. See
/// `docs/ifma.md`, "Columns".
pub(super) const RAISE: u64 = (1 << RADIX_BITS) - 1;

/// Column sums in registers, least significant first.
pub(super) type Sums<T, const B: usize> = [<T as Madd52>::Vector; B];

/// Adds the high half of `limb * factor`. Its low half belongs to column `$j`; `top` is the column
/// above the sums.
macro_rules! add_high {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $limb:ident, $j:ident, $factor:ident) => {
        if $j + 1 < $b {
            $sums[$j + 1] = $t.madd_hi($sums[$j + 1], $limb, $factor);
        } else {
            $top = $t.madd_hi($top, $limb, $factor);
        }
    };
}

/// Adds `tile[$j] * factor`.
macro_rules! add_limb {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $tile:ident, $j:ident, $factor:ident) => {
        let limb = $t.load(&$tile[$j]);
        $sums[$j] = $t.madd_lo($sums[$j], limb, $factor);
        add_high!($t, $b, $sums, $top, limb, $j, $factor);
    };
}

/// Moves the sums down by one column; `top` enters at the top.
macro_rules! shift {
    ($b:ident, $sums:ident, $top:ident) => {
        unrolled!($b, J, {
            $sums[J] = if J + 1 < $b { $sums[J + 1] } else { $top };
        });
    };
}

/// Adds the products of `modulus * quotient` that complete column 1, and the carry of the cleared
/// column 0.
///
/// The lowest sum `s` itself is not updated. The quotient adds `-s mod 2^52` to it, whatever the
/// modulus is, so its carry is `s / 2^52`, rounded up.
///
/// The two products are summed separately, because a short row waits for the path from one quotient
/// to the next.
///
/// The last operand is the carry, if the caller has computed it.
macro_rules! complete_next {
    ($t:ident, $sums:ident, $modulus:ident, $quotient:ident) => {
        let carry = $t.carry_of_cleared($sums[0]);
        complete_next!($t, $sums, $modulus, $quotient, carry);
    };
    ($t:ident, $sums:ident, $modulus:ident, $quotient:ident, $carry:ident) => {
        let carry = $carry;
        let high = $t.madd_hi(carry, $t.load(&$modulus[0]), $quotient);
        $sums[1] = $t.madd_lo($sums[1], $t.load(&$modulus[1]), $quotient);
        $sums[1] = $t.add($sums[1], high);
    };
}

/// Adds the remaining products of `modulus[$j] * quotient`, for `$j` of at least 1.
macro_rules! reduce_limb {
    ($t:ident, $b:ident, $sums:ident, $top:ident, $modulus:ident, $j:ident, $quotient:ident) => {
        let limb = $t.load(&$modulus[$j]);
        if $j > 1 {
            $sums[$j] = $t.madd_lo($sums[$j], limb, $quotient);
        }
        add_high!($t, $b, $sums, $top, limb, $j, $quotient);
    };
}

pub(super) mod square;

/// How many limbs the products with the modulus lag behind those with `a` in a row of
/// [`multiply_low`]. The quotient depends on the lowest column, and is then ready when it is used.
const LAG: usize = 4;

/// The lowest tile of a Montgomery multiplication: `sums = (sums + a * b + q * modulus) / 2^(52 *
/// rows)`.
///
/// `tops` are the columns above `sums`. `a * b` is the sum of one or two products with `rows` limbs
/// of `b`. Writes the quotient to `q` if there are tiles above. If columns are `raised`, all
/// cleared columns are raised by [`RAISE`]. Does `work` in each row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for `J = 0` too.
pub(super) fn multiply_low<T: Madd52, const B: usize, const P: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[T::Limb; B],
    a: [&[T::Limb; B]; P],
    b: [&[T::Limb]; P],
    modulus: &[T::Limb; B],
    neg_inv: T::Vector,
    mut q: Option<&mut [T::Limb; B]>,
    raised: bool,
    work: &mut impl Interleaved<T>,
) -> Sums<T, B> {
    for row in 0..b[0].len() {
        let (a_0, modulus) = (reload(a[0]), reload(modulus));
        let factor = t.load(&b[0][row]);
        // The second product; or the first one again, which is then not used.
        let (a_1, factor_1) = (a[P - 1], t.load(&b[P - 1][row]));
        let a_1 = if P > 1 { reload(a_1) } else { a_1 };
        let mut top = t.load(&tops[row]);
        let lowest = t.load(&a_0[0]);
        sums[0] = t.madd_lo(sums[0], lowest, factor);
        if P > 1 {
            sums[0] = t.madd_lo(sums[0], t.load(&a_1[0]), factor_1);
        }
        let start = if raised { neg_inv } else { t.zero() };
        let quotient = t.madd_lo(start, sums[0], neg_inv);
        if let Some(q) = &mut q {
            t.store(&mut q[row], quotient);
        }
        sums[1] = t.madd_hi(sums[1], lowest, factor);
        if P > 1 {
            sums[1] = t.madd_hi(sums[1], t.load(&a_1[0]), factor_1);
        }
        unrolled!(B, J, {
            if J >= 1 {
                add_limb!(t, B, sums, top, a_0, J, factor);
                if P > 1 {
                    add_limb!(t, B, sums, top, a_1, J, factor_1);
                }
            }
            if J == LAG || J + 1 == B && J < LAG {
                let carry = if raised {
                    t.carry(sums[0])
                } else {
                    t.carry_of_cleared(sums[0])
                };
                complete_next!(t, sums, modulus, quotient, carry);
            }
            if J > LAG {
                const K: usize = J.saturating_sub(LAG);
                reduce_limb!(t, B, sums, top, modulus, K, quotient);
            }
            work.part::<J>(t, row);
        });
        unrolled!(B, J, {
            if J >= 1 && J + LAG >= B {
                reduce_limb!(t, B, sums, top, modulus, J, quotient);
            }
        });
        shift!(B, sums, top);
    }
    sums
}

/// Like [`multiply_low`] without a product: `sums = (sums + q * modulus) / 2^(52 * rows)`. Does
/// `work` in each row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for `J = 0` too.
pub(super) fn reduce_low<T: Madd52, const B: usize>(
    t: T,
    rows: usize,
    mut sums: Sums<T, B>,
    tops: &[T::Limb; B],
    modulus: &[T::Limb; B],
    neg_inv: T::Vector,
    mut q: Option<&mut [T::Limb; B]>,
    work: &mut impl Interleaved<T>,
) -> Sums<T, B> {
    let mut quotient = t.madd_lo(t.zero(), sums[0], neg_inv);
    for row in 0..rows {
        let modulus = reload(modulus);
        if let Some(q) = &mut q {
            t.store(&mut q[row], quotient);
        }
        let mut top = t.load(&tops[row]);
        // The next quotient comes first: the rest of the row hides its latency.
        complete_next!(t, sums, modulus, quotient);
        let next = t.madd_lo(t.zero(), sums[1], neg_inv);
        unrolled!(B, J, {
            if J >= 1 {
                reduce_limb!(t, B, sums, top, modulus, J, quotient);
            }
            work.part::<J>(t, row);
        });
        shift!(B, sums, top);
        quotient = next;
    }
    sums
}

/// Work that is done along with the rows of a tile, in one part for each limb. Methods must be
/// `#[inline(always)]`.
pub(super) trait Interleaved<T> {
    /// Prepares the work of a squaring, the first one of which has number 0.
    fn begin(&mut self, t: T, squaring: usize);

    /// Part `J` of row `row`.
    fn part<const J: usize>(&mut self, t: T, row: usize);
}

/// No work.
impl<T> Interleaved<T> for () {
    #[inline(always)]
    fn begin(&mut self, _: T, _: usize) {}

    #[inline(always)]
    fn part<const J: usize>(&mut self, _: T, _: usize) {}
}

/// Work beside a multiplication or squarings. Each implementation makes a function of its own.
/// Without optimisation, all of them in one would need more than the stack of a thread.
pub(super) trait Beside<L: LaneLimb> {
    /// The numbers of an entry that is looked up.
    const NUMBERS: usize;

    /// The work for tiles of `B` limbs.
    fn interleaved<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) -> impl Interleaved<T>;
}

/// Nothing.
impl<L: LaneLimb> Beside<L> for () {
    const NUMBERS: usize = 0;

    #[inline(always)]
    fn interleaved<T: Madd52<Limb = L>, const B: usize>(&mut self, _: T) -> impl Interleaved<T> {}
}

/// Writes the lowest column; as a limb if it is complete.
macro_rules! write_lowest {
    ($t:ident, $sums:ident, $out:expr, $limbs:ident) => {
        if $limbs {
            $sums[1] = $t.add($sums[1], $t.carry($sums[0]));
            $sums[0] = $t.low($sums[0]);
        }
        $t.store(&mut $out, $sums[0]);
    };
}

/// A higher tile: adds `a * b + modulus * q`, writes the low `B` columns to `low` and returns the
/// high ones.
///
/// With `limbs`, the low columns are complete and are written as limbs. Does `work` in each row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn multiply_high<T: Madd52, const B: usize, const P: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[T::Limb; B],
    a: [&[T::Limb; B]; P],
    b: [&[T::Limb; B]; P],
    modulus: &[T::Limb; B],
    q: &[T::Limb; B],
    low: &mut [T::Limb; B],
    limbs: bool,
    work: &mut impl Interleaved<T>,
) -> Sums<T, B> {
    for row in 0..B {
        let (a_0, modulus) = (reload(a[0]), reload(modulus));
        let (factor, quotient) = (t.load(&b[0][row]), t.load(&q[row]));
        // As in `multiply_low`.
        let (a_1, factor_1) = (a[P - 1], t.load(&b[P - 1][row]));
        let a_1 = if P > 1 { reload(a_1) } else { a_1 };
        let mut top = t.load(&tops[row]);
        unrolled!(B, J, {
            add_limb!(t, B, sums, top, a_0, J, factor);
            if P > 1 {
                add_limb!(t, B, sums, top, a_1, J, factor_1);
            }
            add_limb!(t, B, sums, top, modulus, J, quotient);
            work.part::<J>(t, row);
        });
        write_lowest!(t, sums, low[row], limbs);
        shift!(B, sums, top);
    }
    sums
}

/// Like [`multiply_high`] without a product: adds `modulus * q`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn reduce_high<T: Madd52, const B: usize>(
    t: T,
    mut sums: Sums<T, B>,
    tops: &[T::Limb; B],
    modulus: &[T::Limb; B],
    q: &[T::Limb; B],
    low: &mut [T::Limb; B],
    limbs: bool,
    work: &mut impl Interleaved<T>,
) -> Sums<T, B> {
    for row in 0..B {
        let modulus = reload(modulus);
        let quotient = t.load(&q[row]);
        let mut top = t.load(&tops[row]);
        unrolled!(B, J, {
            add_limb!(t, B, sums, top, modulus, J, quotient);
            work.part::<J>(t, row);
        });
        write_lowest!(t, sums, low[row], limbs);
        shift!(B, sums, top);
    }
    sums
}

/// Reads `B` column sums.
#[inline(always)]
pub(super) fn load<T: Madd52, const B: usize>(t: T, tile: &[T::Limb; B]) -> Sums<T, B> {
    let mut sums = [t.zero(); B];
    unrolled!(B, J, {
        sums[J] = t.load(&tile[J]);
    });
    sums
}

/// Writes `B` column sums.
#[inline(always)]
pub(super) fn store<T: Madd52, const B: usize>(t: T, tile: &mut [T::Limb; B], sums: Sums<T, B>) {
    unrolled!(B, J, {
        t.store(&mut tile[J], sums[J]);
    });
}

/// Writes the limbs of the highest `B` column sums.
#[inline(always)]
pub(super) fn normalise<T: Madd52, const B: usize>(
    t: T,
    out: &mut [T::Limb; B],
    mut sums: Sums<T, B>,
) {
    unrolled!(B, J, {
        if J + 1 < B {
            sums[J + 1] = t.add(sums[J + 1], t.carry(sums[J]));
        }
        t.store(&mut out[J], t.low(sums[J]));
    });
}
