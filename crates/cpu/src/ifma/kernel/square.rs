//! Squares: each product of two different limbs is computed once.

use super::{Beside, Madd52, Sums};

/// The columns of `a^2`, low and high: half of the cross products, doubled, and the squares of the limbs.
///
/// A row has the products of one limb with those below it, so that it does not wait for those above, which the operation
/// before this one makes one after the other.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // `I < J` is written out for `J = 0` too.
pub(crate) fn square_block<T: Madd52, const B: usize>(
    t: T,
    a: &[T::Limb; B],
    low: &mut [T::Limb; B],
    high: &mut [T::Limb; B],
) {
    // The cross products of column c are summed up in register c mod B. Row j opens the columns 2j - 1 and 2j, and
    // completes column j, whose register is that of column j + B.
    let mut sums = [t.zero(); B];
    unrolled!(B, J, {
        let a = t.reload(a);
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

/// The same, given the limb whose square is in that column.
#[inline(always)]
fn with_square<T: Madd52>(t: T, limb: T::Vector, column: usize, half: T::Vector) -> T::Vector {
    let cross = t.add(half, half);
    if column.is_multiple_of(2) {
        t.madd_lo(cross, limb, limb)
    } else {
        t.madd_hi(cross, limb, limb)
    }
}

/// A number to be squared, of one block.
pub(crate) enum Operand<'a, T: Madd52, const B: usize> {
    Limbs(&'a [T::Limb; B]),
    /// Column sums, each of which becomes a limb when it is wanted.
    Columns {
        columns: Sums<T, B>,
        /// What the columns carry that are limbs by now.
        carry: T::Vector,
        limbs: &'a mut [T::Limb; B],
    },
}

impl<'a, T: Madd52, const B: usize> Operand<'a, T, B> {
    /// The limbs of these columns go to `limbs`.
    #[inline(always)]
    pub(crate) fn columns(t: T, columns: Sums<T, B>, limbs: &'a mut [T::Limb; B]) -> Self {
        Self::Columns {
            columns,
            carry: t.zero(),
            limbs,
        }
    }

    /// The limb that was [opened](Self::open) last and those below it; others too, if it never was columns.
    #[inline(always)]
    fn limbs(&self) -> &[T::Limb; B] {
        match self {
            Self::Limbs(limbs) => limbs,
            Self::Columns { limbs, .. } => limbs,
        }
    }

    /// Limb `index`, after those below it.
    #[inline(always)]
    fn open(&mut self, t: T, index: usize) -> T::Vector {
        match self {
            Self::Limbs(limbs) => t.load(&limbs[index]),
            Self::Columns {
                columns,
                carry,
                limbs,
            } => {
                let column = t.add(columns[index], *carry);
                let limb = t.low(column);
                *carry = t.carry(column);
                t.store(&mut limbs[index], limb);
                limb
            }
        }
    }
}

/// So many limbs are taken from registers by the first rows, which would wait for them to come back from memory.
const FRESH: usize = 5;

/// `a^2 / 2^(52 * B)` of a number of one block, with something done `beside` each row of the reduction.
///
/// The columns stay in registers: the lower half of them comes first, and those above one by one, as the reduction gets to
/// them.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for `J = 0` too.
#[allow(unused_assignments)] // Of the last row.
pub(crate) fn square_alone<T: Madd52, const B: usize>(
    t: T,
    mut a: Operand<'_, T, B>,
    modulus: &[T::Limb; B],
    neg_inv: T::Vector,
    beside: &mut impl Beside<T>,
) -> Sums<T, B> {
    let mut sums = [t.zero(); B];
    // Half of the cross products of the lowest column above `sums`, and of the one above that.
    let (mut cross, mut next_cross) = (t.zero(), t.zero());
    let mut fresh = [t.zero(); FRESH];
    unrolled!(B, J, {
        let factor = a.open(t, J);
        let a = t.reload(a.limbs());
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
        sums[J] = with_square(t, root, J, sums[J]);
    });

    let a = a.limbs();
    let mut quotient = t.madd_lo(t.zero(), sums[0], neg_inv);
    unrolled!(B, I, {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        complete_next!(t, sums, modulus, quotient);
        let next = t.madd_lo(t.zero(), sums[1], neg_inv);
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
            beside.part::<J>(t, I);
        });
        shift!(B, sums, top);
        quotient = next;
        cross = next_cross;
        next_cross = t.zero();
    });
    sums
}
