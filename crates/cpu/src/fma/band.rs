//! Products of a number with a band of up to four limbs: the inner loops.
//!
//! A band goes through the columns from the lowest to the highest. At column `c` it multiplies limb
//! `c - r` of the number by limb `r` of the band, for all `r`. Each column sum is thus read and
//! written once for the whole band.

use super::fma51::{Fma51, Limb};

/// Limbs in a band. The registers hold the band, two sums, two constants and intermediate values.
pub(super) const BAND: usize = 4;

/// How many rows of a reduction are done in whole bands: all but at least one band.
pub(super) const fn rows_at_once(limbs: usize) -> usize {
    limbs.saturating_sub(BAND) / BAND * BAND
}

/// Repeats `$body` for each `$j` below `$n`, which is at most 4, so that arrays stay in registers.
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
    /// The carry into the next column.
    high: T::Sums,
}

impl<T: Fma51, const R: usize> Band<T, R> {
    /// Adds the products of the first `count` limbs of the band to a column. Limb 0 of the band is
    /// multiplied by the last limb of `number`, limb 1 by the one before it.
    #[inline(always)]
    fn column(&mut self, t: T, sum: T::Sums, number: &[Limb], count: usize) -> T::Sums {
        let mut low = t.add(sum, self.high);
        self.high = t.splat(0);
        unrolled!(R, J, {
            if J < count {
                let limb = t.load(&number[number.len() - 1 - J]);
                let (high, product_low) = t.product(limb, self.factors[J]);
                low = t.add(low, product_low);
                self.high = t.add(self.high, high);
            }
        });
        low
    }

    /// Adds the products of the band's limbs from `from` on, where limb `from` is multiplied by the
    /// last limb of `number`.
    #[inline(always)]
    #[allow(clippy::absurd_extreme_comparisons)] // The comparison is written out for 0 too.
    fn upper_column(&mut self, t: T, sum: T::Sums, number: &[Limb], from: usize) -> T::Sums {
        let mut low = t.add(sum, self.high);
        self.high = t.splat(0);
        unrolled!(R, J, {
            if J >= from {
                let limb = t.load(&number[number.len() - 1 - (J - from)]);
                let (high, product_low) = t.product(limb, self.factors[J]);
                low = t.add(low, product_low);
                self.high = t.add(self.high, high);
            }
        });
        low
    }

    /// Processes the columns from `R` to the end; `columns[0]` belongs to limb 0 of both factors.
    #[inline(always)]
    fn finish(mut self, t: T, columns: &mut [Limb], number: &[Limb]) {
        let (middle, end) = columns[R..].split_at_mut(number.len() - R);
        for (column, limbs) in middle.iter_mut().zip(number[1..].windows(R)) {
            let sum = self.column(t, t.load_sums(column), limbs, R);
            t.store_sums(column, sum);
        }
        // Above the highest limb of the number, columns lack the products of the first limbs of the
        // band.
        let highest = &number[number.len() - R..];
        unrolled!(R, D, {
            if D + 1 < R {
                let sum = self.upper_column(t, t.load_sums(&end[D]), highest, D + 1);
                t.store_sums(&mut end[D], sum);
            }
        });
        let last = t.add(t.load_sums(&end[R - 1]), self.high);
        t.store_sums(&mut end[R - 1], last);
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
        high: t.splat(0),
    };
    unrolled!(R, C, {
        let sum = band.column(t, t.load_sums(&columns[C]), &number[..=C], C + 1);
        t.store_sums(&mut columns[C], sum);
    });
    band.finish(t, columns, number);
}

/// Adds the multiple of the modulus that clears the lowest `R` columns, and carries from them into
/// the next one. All products for these columns must have been added.
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
        high: t.splat(0),
    };
    unrolled!(R, C, {
        let sum = band.column(t, t.load_sums(&columns[C]), &modulus[..=C], C);
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
