//! Products of a number with a band of up to four limbs: the inner loops.
//!
//! A band goes through the columns from the lowest to the highest. At column `c` it multiplies limb
//! `c - r` of the number by limb `r` of the band, for all `r`, so a column sum is read and written once
//! for all of them, and only the last limbs of the number are held in registers.

use super::fma51::{Fma51, Limb};

/// Limbs in a band. The registers hold the band, a window of as many limbs, two sums and two constants.
pub(super) const BAND: usize = 4;

/// Writes `$body` out for each `$j` below `$n`, which is at most 4, so that arrays stay in registers.
macro_rules! unrolled {
    ($n:ident, $j:ident, $body:block) => {
        unrolled!(@ $n, $j, $body, 0 1 2 3);
    };
    (@ $n:ident, $j:ident, $body:block, $($index:literal)*) => { $({
        const $j: usize = $index;
        if $j < $n $body
    })* };
}

/// The state of a band between two columns.
struct Band<T: Fma51, const R: usize> {
    /// The limbs of the band.
    factors: [T::Floats; R],
    /// Limb `c - r` of the number, at column `c`.
    window: [T::Floats; R],
    /// What goes into the next column.
    high: T::Sums,
}

impl<T: Fma51, const R: usize> Band<T, R> {
    /// Takes the next limb of the number into the window.
    #[inline(always)]
    fn shift(&mut self, limb: T::Floats) {
        unrolled!(R, J, {
            if J + 1 < R {
                self.window[R - 1 - J] = self.window[R - 2 - J];
            }
        });
        self.window[0] = limb;
    }

    /// Adds the products `from..to` of a column to it.
    #[inline(always)]
    fn column(&mut self, t: T, sum: T::Sums, from: usize, to: usize) -> T::Sums {
        let mut low = t.add(sum, self.high);
        self.high = t.splat(0);
        unrolled!(R, J, {
            if (from..to).contains(&J) {
                let (high, product_low) = t.product(self.window[J], self.factors[J]);
                low = t.add(low, product_low);
                self.high = t.add(self.high, high);
            }
        });
        low
    }

    /// The columns from `R` to the end, `columns[0]` being the one of limb 0 of both.
    #[inline(always)]
    fn finish(mut self, t: T, columns: &mut [Limb], number: &[Limb]) {
        let (middle, end) = columns[R..].split_at_mut(number.len() - R);
        let (groups, rest) = middle.as_chunks_mut::<R>();
        let (limb_groups, limb_rest) = number[R..].as_chunks::<R>();
        for (group, limbs) in groups.iter_mut().zip(limb_groups) {
            self.full_columns(t, group, limbs);
        }
        for (column, limb) in rest.iter_mut().zip(limb_rest) {
            self.shift(t.load(limb));
            let sum = self.column(t, t.load_sums(column), 0, R);
            t.store_sums(column, sum);
        }
        unrolled!(R, D, {
            if D + 1 < R {
                self.shift(self.window[0]);
                let sum = self.column(t, t.load_sums(&end[D]), D + 1, R);
                t.store_sums(&mut end[D], sum);
            }
        });
        let last = t.add(t.load_sums(&end[R - 1]), self.high);
        t.store_sums(&mut end[R - 1], last);
    }

    /// `R` columns in which every limb of the band has a product. A limb of the number stays in its
    /// register all along, and the last `R` of them are where the next call expects them.
    #[inline(always)]
    fn full_columns(&mut self, t: T, columns: &mut [Limb; R], limbs: &[Limb; R]) {
        unrolled!(R, C, {
            let mut low = t.add(t.load_sums(&columns[C]), self.high);
            self.high = t.splat(0);
            // Limb `c - r` is at `r - 1 - c`, modulo `R`, since limb `c - 1` was at 0 when `c` was 0.
            self.window[(2 * R - 1 - C) % R] = t.load(&limbs[C]);
            unrolled!(R, J, {
                let limb = self.window[(2 * R - 1 - C + J) % R];
                let (high, product_low) = t.product(limb, self.factors[J]);
                low = t.add(low, product_low);
                self.high = t.add(self.high, high);
            });
            t.store_sums(&mut columns[C], low);
        });
    }
}

/// Adds `number * factors` to the columns. The number has at least `R` limbs.
#[inline(always)]
pub(super) fn multiply<T: Fma51, const R: usize>(
    t: T,
    columns: &mut [Limb],
    number: &[Limb],
    factors: [T::Floats; R],
) {
    let mut band = Band {
        factors,
        window: factors,
        high: t.splat(0),
    };
    unrolled!(R, C, {
        band.shift(t.load(&number[C]));
        let sum = band.column(t, t.load_sums(&columns[C]), 0, C + 1);
        t.store_sums(&mut columns[C], sum);
    });
    band.finish(t, columns, number);
}

/// Adds the multiple of the modulus that makes the lowest `R` columns zero, and carries from them into
/// the next one. All products for these columns have been added.
#[inline(always)]
pub(super) fn reduce<T: Fma51, const R: usize>(
    t: T,
    columns: &mut [Limb],
    modulus: &[Limb],
    neg_inv: T::Floats,
) {
    let first = t.load(&modulus[0]);
    let mut band = Band {
        factors: [first; R],
        window: [first; R],
        high: t.splat(0),
    };
    unrolled!(R, C, {
        band.shift(t.load(&modulus[C]));
        let sum = band.column(t, t.load_sums(&columns[C]), 0, C);
        let (_, quotient) = t.product(t.limb(sum), neg_inv);
        band.factors[C] = t.limb(quotient);
        let (high, low) = t.product(first, band.factors[C]);
        let carry = t.carry(t.add(sum, low));
        band.high = t.add(t.add(band.high, high), carry);
    });
    band.finish(t, columns, modulus);
}

/// Takes the lowest `R` columns as the limbs of a number and carries from them into the next one.
#[inline(always)]
pub(super) fn take<T: Fma51, const R: usize>(t: T, columns: &mut [Limb]) -> [T::Floats; R] {
    let mut limbs = [t.load(&Limb::ZERO); R];
    let mut carry = t.splat(0);
    unrolled!(R, C, {
        let sum = t.add(t.load_sums(&columns[C]), carry);
        limbs[C] = t.limb(sum);
        carry = t.carry(sum);
    });
    let next = t.add(t.load_sums(&columns[R]), carry);
    t.store_sums(&mut columns[R], next);
    limbs
}

/// Adds the square of `R` limbs to the columns.
#[inline(always)]
#[allow(clippy::absurd_extreme_comparisons)] // The comparisons are written out for 0 too.
pub(super) fn square<T: Fma51, const R: usize>(t: T, columns: &mut [Limb], limbs: [T::Floats; R]) {
    unrolled!(R, I, {
        unrolled!(R, J, {
            if I <= J {
                let other = if I < J { t.double(limbs[J]) } else { limbs[J] };
                let (high, low) = t.product(limbs[I], other);
                let sum = t.add(t.load_sums(&columns[I + J]), low);
                t.store_sums(&mut columns[I + J], sum);
                let sum = t.add(t.load_sums(&columns[I + J + 1]), high);
                t.store_sums(&mut columns[I + J + 1], sum);
            }
        });
    });
}
