//! Squaring of a number of one block.
//!
//! The low columns of the square are summed up in registers. Each row of the reduction completes the
//! lowest of them and frees its register for a high column, whose products are computed in that row: no
//! column goes through memory.

use super::columns::{self, Sums, carry_of_cleared, unrolled};
use super::look_up::Rows;
use super::madd52::{Limb, Madd52};

/// `a = a^2 / R mod modulus`, with a share of a look-up.
///
/// Column `c` is in register `c mod B`: row `i` of the reduction ends with column `i` and opens column
/// `i + B`.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for 0 too.
#[allow(unused_assignments)] // The last row computes nothing for a next one.
pub(super) fn square<T: Madd52, const B: usize>(
    t: T,
    a: &mut [Limb; B],
    modulus: &[Limb; B],
    neg_inv: T::Vector,
    look_up: &mut Rows<'_, T, B>,
) {
    let (mut sums, mut pairs) = low_columns(t, a);
    let mut quotient = t.madd_lo(t.zero(), sums[0], neg_inv);
    unrolled!(B, I, {
        let (a, modulus) = (t.reload(a), t.reload(modulus));
        // First what the next quotient waits for.
        let (m0, m1) = (t.load(&modulus[0]), t.load(&modulus[1]));
        let next = (I + 1) % B;
        sums[next] = t.add(sums[next], carry_of_cleared(t, sums[I]));
        sums[next] = t.madd_hi(sums[next], m0, quotient);
        sums[next] = t.madd_lo(sums[next], m1, quotient);
        let next_quotient = if I + 1 < B {
            t.madd_lo(t.zero(), sums[next], neg_inv)
        } else {
            quotient
        };
        if B > 2 {
            sums[(I + 2) % B] = t.madd_hi(sums[(I + 2) % B], m1, quotient);
        }
        look_up.limb(t, I);

        // The pairs of column `B + I`, whose high halves belong to the column above.
        let mut pairs_above = t.zero();
        unrolled!(B, J, {
            if J > I && J < B + I - J {
                let (u, v) = (t.load(&a[J]), t.load(&a[(B + I - J) % B]));
                pairs = t.madd_lo(pairs, u, v);
                pairs_above = t.madd_hi(pairs_above, u, v);
            }
            if J >= 2 && J + 1 < B {
                let limb = t.load(&modulus[J]);
                sums[(I + J) % B] = t.madd_lo(sums[(I + J) % B], limb, quotient);
                sums[(I + J + 1) % B] = t.madd_hi(sums[(I + J + 1) % B], limb, quotient);
            }
        });
        let middle = t.load(&a[(B + I) / 2]);
        let mut top = t.add(pairs, pairs);
        top = if (B + I).is_multiple_of(2) {
            t.madd_lo(top, middle, middle)
        } else {
            t.madd_hi(top, middle, middle)
        };
        if B > 2 {
            let limb = t.load(&modulus[B - 1]);
            sums[(I + B - 1) % B] = t.madd_lo(sums[(I + B - 1) % B], limb, quotient);
            sums[I] = t.madd_hi(top, limb, quotient);
        } else {
            sums[I] = t.madd_hi(top, m1, quotient);
        }

        sums = columns::pin(t, sums);
        pairs = t.pin(pairs_above);
        quotient = t.pin(next_quotient);
    });
    columns::carry_through(t, a, sums, t.zero());
}

/// The low `B` columns of `a^2`, and what their pairs of different limbs carry into column `B`, which is
/// not doubled yet.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for 0 too.
fn low_columns<T: Madd52, const B: usize>(t: T, a: &[Limb; B]) -> (Sums<T, B>, T::Vector) {
    let mut sums = [t.zero(); B];
    let mut pairs = t.zero();
    unrolled!(B, I, {
        // Row `i` completes the pairs of columns `2i + 1` and `2i + 2`: they are doubled, and the squares of
        // limbs come on top.
        if 2 * I < B {
            let a = t.reload(a);
            let factor = t.load(&a[I]);
            unrolled!(B, J, {
                if J > I && I + J < B {
                    let limb = t.load(&a[J]);
                    sums[I + J] = t.madd_lo(sums[I + J], limb, factor);
                    if I + J + 1 < B {
                        sums[I + J + 1] = t.madd_hi(sums[I + J + 1], limb, factor);
                    } else {
                        pairs = t.madd_hi(pairs, limb, factor);
                    }
                }
            });
            sums[2 * I] = t.madd_lo(sums[2 * I], factor, factor);
            if 2 * I + 1 < B {
                let odd = sums[2 * I + 1];
                sums[2 * I + 1] = t.madd_hi(t.add(odd, odd), factor, factor);
            }
            if 2 * I + 2 < B {
                let even = sums[2 * I + 2];
                sums[2 * I + 2] = t.add(even, even);
            }
            sums = columns::pin(t, sums);
            pairs = t.pin(pairs);
        }
    });
    (sums, pairs)
}
