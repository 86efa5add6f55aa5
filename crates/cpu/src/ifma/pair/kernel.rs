//! The Montgomery product of two pairs of numbers: the inner loop.
//!
//! Vector `j` of a number holds limb `j` of its four quarters. A row multiplies all limbs of `a` by
//! one limb of `b`, the same in all quarters. When the lowest column is complete the sums move down
//! by one vector. The vector that leaves at the bottom enters again at the top, one quarter lower,
//! where its columns belong.
//!
//! Two rows are computed at a time. Both quotients follow at once from two columns and `-1 /
//! modulus mod 2^104`. The critical path goes from a quotient through all lanes and a multiple of
//! the modulus to the next quotient. For the same reason, the columns of `a * b` and those of `q *
//! modulus` are summed separately, the former ahead of the latter.

use super::across::{Across, Pair, PairKernel};
use crate::ifma::madd52::Madd52;
use crate::ifma::madd52::unrolled;
use crate::ifma::pair::MAX_QUARTER;
use crate::lanes::LaneModulus;

/// A number in vectors. If it is below R, its limbs may be column sums below `2^63`.
type Number<T, const J: usize> = [<T as Madd52>::Vector; J];

/// Column sums, two more than a number has vectors. Those beyond are never used.
type Columns<T> = [<T as Madd52>::Vector; MAX_QUARTER + 2];

/// The moduli of both instances.
struct Moduli<T: Across, const J: usize> {
    limbs: Number<T, J>,
    /// `-1 / modulus mod 2^104`, the same in all quarters.
    neg_inv: [T::Vector; 2],
}

/// The factor that rows multiply: limbs below `2^52`, and a pending carry for each quarter.
///
/// Adding the carries first would delay the rows, and could ripple through all limbs. Kept apart,
/// they cost one addition for each row.
struct Multiplicand<T: Across, const J: usize> {
    /// Multiplications use only the low 52 bits.
    limbs: Number<T, J>,
    /// `2^52 - 1` where the lowest limb of a quarter lacks a carry of one.
    carries: T::Vector,
}

impl<T: Across, const J: usize> Multiplicand<T, J> {
    #[inline(always)]
    fn new(t: T, columns: &Number<T, J>) -> Self {
        let mut limbs = *columns;
        // Limits the final carry of a quarter to one.
        let top = columns[J - 1];
        limbs[0] = t.add(limbs[0], t.up(t.carry(top)));
        limbs[J - 1] = t.low(top);
        let mut carry = t.zero();
        unrolled!(J, I, {
            limbs[I] = t.add(limbs[I], carry);
            carry = t.carry(limbs[I]);
        });
        Self {
            limbs,
            carries: t.mask_of(t.up(carry)),
        }
    }
}

/// The limbs of a number from the lowest, each the same in all quarters.
struct Multiplier<T: Across, F> {
    t: T,
    /// Spreads the column with this index, counted from the lowest of the number.
    spread: F,
    next: usize,
    carry: T::Vector,
}

impl<T: Across, F: Fn(usize) -> T::Vector> Multiplier<T, F> {
    /// The next limb, with meaningless bits above the low 52.
    #[inline(always)]
    fn next(&mut self) -> T::Vector {
        let limb = self.t.add((self.spread)(self.next), self.carry);
        self.carry = self.t.carry(limb);
        self.next += 1;
        limb
    }
}

/// Adds the products of `$a` and two limbs of the multiplier to `$sums`.
macro_rules! add_products {
    ($t:ident, $j:ident, $sums:ident, $a:ident, $b:ident) => {
        let (b0, b1) = ($b.next(), $b.next());
        $sums[0] = $t.add($sums[0], $t.and($a.carries, b0));
        $sums[1] = $t.add($sums[1], $t.and($a.carries, b1));
        unrolled!($j, I, {
            let limb = $a.limbs[I];
            $sums[I] = $t.madd_lo($sums[I], limb, b0);
            $sums[I + 1] = $t.madd_hi($sums[I + 1], limb, b0);
            $sums[I + 1] = $t.madd_lo($sums[I + 1], limb, b1);
            $sums[I + 2] = $t.madd_hi($sums[I + 2], limb, b1);
        });
    };
}

/// Moves the sums down by two columns.
macro_rules! shift {
    ($t:ident, $j:ident, $sums:ident) => {
        unrolled!($j, I, {
            $sums[I] = $sums[I + 2];
        });
        $sums[$j] = $t.zero();
        $sums[$j + 1] = $t.zero();
    };
}

/// Two rows of the reduction. `$low` are the two lowest columns that are not in `$sums`; the macro
/// replaces them by the next two. `$products` adds the next products to `$ahead`, which supplies
/// columns.
macro_rules! reduce_rows {
    ($t:ident, $j:ident, $sums:ident, $low:ident, $ahead:ident, $modulus:ident, $products:block) => {
        let s0 = $t.add($sums[0], $low[0]);
        let s1 = $t.add($sums[1], $low[1]);
        let [n0, n1] = $modulus.neg_inv;
        // The quotients of the lowest quarter, which are valid for all.
        let q0 = $t.madd_lo($t.zero(), s0, n0);
        let q1 = $t.add(
            $t.madd_hi($t.zero(), s0, n0),
            $t.madd_lo($t.zero(), s0, n1),
        );
        let q1 = $t.madd_lo(q1, $t.add(s1, $t.carry(s0)), n0);
        // The carries of both columns when they are cleared. This does not wait for `q0` to be
        // spread.
        let (m0, m1) = ($modulus.limbs[0], $modulus.limbs[1]);
        let cleared = $t.madd_hi($t.add(s1, $t.carry_of_cleared(s0)), m0, q0);
        let cleared = $t.add(cleared, $t.madd_lo($t.zero(), m1, q0));
        let carry = $t.lowest($t.carry_of_cleared(cleared));
        let (q0, q1) = ($t.spread_lowest(q0), $t.spread_lowest(q1));

        shift!($t, $j, $ahead);
        $products

        // The terms that the next quotients depend on are kept out of the long sums.
        $low[0] = $t.madd_hi($t.add($ahead[0], carry), m0, q1);
        $low[1] = $t.madd_hi($ahead[1], m1, q1);
        $sums[0] = $t.madd_lo(s0, m0, q0);
        $sums[1] = $t.madd_hi(s1, m0, q0);
        unrolled!($j, I, {
            let limb = $modulus.limbs[I];
            if I > 0 {
                $sums[I] = $t.madd_lo($sums[I], limb, q0);
                $sums[I + 1] = $t.madd_hi($sums[I + 1], limb, q0);
            }
        });
        unrolled!($j, I, {
            let limb = $modulus.limbs[I];
            $sums[I + 1] = $t.madd_lo($sums[I + 1], limb, q1);
            if I > 1 {
                $sums[I + 2] = $t.madd_hi($sums[I + 2], limb, q1);
            }
        });
        // The lowest pair of both vectors is cleared and carried; the others belong one quarter
        // lower.
        $sums[$j] = $t.add($sums[$j], $t.down($sums[0]));
        $sums[$j + 1] = $t.add($sums[$j + 1], $t.down($sums[1]));
        shift!($t, $j, $sums);
    };
}

/// `a * b / R mod modulus` as column sums below `2^61`: congruent, and below `2 * modulus` if `a *
/// b < R * modulus`. `spread` gives column `i` of `b`, the same in all quarters.
#[inline(always)]
fn multiply<T: Across, const J: usize>(
    t: T,
    a: &Number<T, J>,
    spread: impl Fn(usize) -> T::Vector,
    modulus: &Moduli<T, J>,
) -> Number<T, J> {
    let a = Multiplicand::new(t, a);
    let mut b = Multiplier {
        t,
        spread,
        next: 0,
        carry: t.zero(),
    };
    let mut ahead: Columns<T> = [t.zero(); MAX_QUARTER + 2];
    let mut sums: Columns<T> = [t.zero(); MAX_QUARTER + 2];
    add_products!(t, J, ahead, a, b);
    let mut low = [ahead[0], ahead[1]];
    for _ in 1..2 * J {
        reduce_rows!(t, J, sums, low, ahead, modulus, {
            add_products!(t, J, ahead, a, b);
        });
    }
    reduce_rows!(t, J, sums, low, ahead, modulus, {});

    // Includes the products of the last rows.
    [ahead[0], ahead[1]] = low;
    let mut out = [t.zero(); J];
    unrolled!(J, I, {
        out[I] = t.add(sums[I], ahead[I]);
    });
    out
}

/// A number in memory, limb by limb, as quarters.
type Quarters<const J: usize> = [[Pair; J]; 4];

/// A number in memory, vector by vector.
#[repr(C, align(64))]
struct Vectors<const J: usize>([[Pair; 4]; J]);

/// See [`Lanes::mul`](crate::lanes::Lanes::mul).
pub(super) struct Mul<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) a: &'a [Pair],
    pub(super) b: &'a [Pair],
    pub(super) modulus: LaneModulus<'a, Pair>,
}

impl PairKernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let modulus = load_moduli::<T, J>(t, self.modulus);
        let a = load(t, self.a);
        let b: &Quarters<J> = quarters(self.b.as_chunks().0);
        let b = b.as_flattened();
        let product = multiply(t, &a, |i| t.spread(&b[i]), &modulus);
        store(t, self.out, &product);
    }
}

/// `out = a^(2^count)` in Montgomery form; `a` itself if `count` is 0.
pub(super) struct Squares<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) a: &'a [Pair],
    pub(super) count: u32,
    pub(super) modulus: LaneModulus<'a, Pair>,
}

impl PairKernel for Squares<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let modulus = load_moduli::<T, J>(t, self.modulus);
        let mut value = load(t, self.a);
        let mut vectors = Vectors([[Pair::ZERO; 4]; J]);
        for _ in 0..self.count {
            unrolled!(J, I, {
                t.store_pairs(&mut vectors.0[I], value[I]);
            });
            let vectors = &vectors;
            let spread = |i: usize| t.spread(&vectors.0[i % J][i / J]);
            value = multiply(t, &value, spread, &modulus);
        }
        store(t, self.out, &value);
    }
}

/// See [`Lanes::select`](crate::lanes::Lanes::select).
pub(super) struct Select<'a> {
    pub(super) out: &'a mut [Pair],
    pub(super) table: &'a [Pair],
    pub(super) digits: &'a Pair,
}

impl PairKernel for Select<'_> {
    #[inline(always)]
    fn run<T: Across, const J: usize>(self, t: T) {
        let digits = t.spread(self.digits);
        let mut sums = [t.zero(); J];
        for (entry, number) in (0..).zip(self.table.chunks_exact(4 * J)) {
            let number: &[[Pair; 4]; J] = vectors(number.as_chunks().0);
            unrolled!(J, I, {
                sums[I] = t.pick_pairs(sums[I], &number[I], digits, entry);
            });
        }
        let out = self.out.as_chunks_mut().0;
        let out: &mut [[Pair; 4]; J] = out.try_into().expect("as long as an entry");
        unrolled!(J, I, {
            t.store_pairs(&mut out[I], sums[I]);
        });
    }
}

#[inline(always)]
fn vectors<const J: usize>(chunks: &[[Pair; 4]]) -> &[[Pair; 4]; J] {
    chunks
        .try_into()
        .expect("a number has as many vectors as a quarter has limbs")
}

#[inline(always)]
fn quarters<const J: usize>(chunks: &[[Pair; J]]) -> &Quarters<J> {
    chunks.try_into().expect("a number has four quarters")
}

#[inline(always)]
fn load<T: Across, const J: usize>(t: T, limbs: &[Pair]) -> Number<T, J> {
    let [a, b, c, d] = quarters(limbs.as_chunks::<J>().0);
    let mut number = [t.zero(); J];
    unrolled!(J, I, {
        number[I] = t.gather([&a[I], &b[I], &c[I], &d[I]]);
    });
    number
}

#[inline(always)]
fn store<T: Across, const J: usize>(t: T, limbs: &mut [Pair], number: &Number<T, J>) {
    let chunks = limbs.as_chunks_mut::<J>().0;
    let chunks: &mut Quarters<J> = chunks.try_into().expect("a number has four quarters");
    let [a, b, c, d] = chunks;
    unrolled!(J, I, {
        t.scatter([&mut a[I], &mut b[I], &mut c[I], &mut d[I]], number[I]);
    });
}

#[inline(always)]
fn load_moduli<T: Across, const J: usize>(t: T, modulus: LaneModulus<'_, Pair>) -> Moduli<T, J> {
    Moduli {
        limbs: load(t, modulus.limbs),
        neg_inv: [0, 1].map(|i| t.spread(&modulus.constants[i])),
    }
}
