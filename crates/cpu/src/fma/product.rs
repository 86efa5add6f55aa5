//! Montgomery multiplication and squaring.
//!
//! All columns of the product come first, then the reduction (separated operand scanning, C. K.
//! Koc, T. Acar, B. S. Kaliski, "Analyzing and Comparing Montgomery Multiplication Algorithms",
//! IEEE Micro 16(3), 1996).

use super::band::{self, BAND, rows_at_once};
use super::bias;
use super::fma51::{Fma51, Kernel, Limb};
use crate::lanes::LaneModulus;

/// The number of scratch limbs for operands of `limbs` limbs: the columns of a product.
pub(super) const fn scratch_len(limbs: usize) -> usize {
    2 * limbs
}

/// The number of limbs of constants: the modulus `M''` of [`reduce`], and the starting values of
/// the columns of a multiplication and of a squaring, four to a limb.
pub(super) const fn constants_len(limbs: usize) -> usize {
    limbs + 2 * (2 * limbs).div_ceil(4)
}

/// See [`Lanes::prepare`](crate::lanes::Lanes::prepare).
pub(super) struct Prepare<'a> {
    pub(super) constants: &'a mut [Limb],
    pub(super) modulus: &'a [Limb],
    pub(super) neg_inv: &'a Limb,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Prepare<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let limbs = self.modulus.len();
        let (shifted, starts) = self.constants.split_at_mut(limbs);
        // One band of Montgomery reduction maps 1 to `(1 + c * M) / 2^204`.
        if rows_at_once(limbs) > 0 {
            let columns = &mut self.scratch[..limbs + BAND];
            for (i, column) in columns.iter_mut().enumerate() {
                let one = u64::from(i == 0);
                t.store_sums(column, t.splat(bias::one_band(limbs, i).wrapping_add(one)));
            }
            band::reduce::<T, BAND>(t, columns, self.modulus, t.load(self.neg_inv));
            normalise(t, shifted, &columns[BAND..]);
        }

        let (multiplication, squaring) = starts.split_at_mut(starts.len() / 2);
        for i in 0..2 * limbs {
            multiplication[i / 4].0[i % 4] = bias::multiplication(limbs, i);
            squaring[i / 4].0[i % 4] = bias::squaring(limbs, i);
        }
    }
}

/// Sets the columns to their starting values.
#[inline(always)]
fn start<T: Fma51>(t: T, columns: &mut [Limb], starts: &[Limb]) {
    let starts = starts.iter().flat_map(|limb| &limb.0);
    for (column, start) in columns.iter_mut().zip(starts) {
        t.store_sums(column, t.splat(*start));
    }
}

/// See [`Lanes::mul`](crate::lanes::Lanes::mul).
pub(super) struct Mul<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) b: &'a [Limb],
    pub(super) modulus: LaneModulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let (a, columns) = (self.a, self.scratch);
        let starts = &self.modulus.constants[a.len()..];
        start(t, columns, &starts[..starts.len() / 2]);
        let (bands, rest) = self.b.as_chunks::<BAND>();
        for (i, factors) in bands.iter().enumerate() {
            band::multiply(t, &mut columns[BAND * i..], a, load(t, factors));
        }
        let columns_of_rest = &mut columns[BAND * bands.len()..];
        match *rest {
            [x] => band::multiply(t, columns_of_rest, a, load(t, &[x])),
            [x, y] => band::multiply(t, columns_of_rest, a, load(t, &[x, y])),
            [x, y, z] => band::multiply(t, columns_of_rest, a, load(t, &[x, y, z])),
            _ => {}
        }
        reduce(t, self.out, columns, self.modulus);
    }
}

/// See [`Lanes::square`](crate::lanes::Lanes::square).
pub(super) struct Square<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) modulus: LaneModulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Square<'_> {
    /// Computes products of different bands once, with one factor doubled.
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let (a, columns) = (self.a, self.scratch);
        let starts = &self.modulus.constants[a.len()..];
        start(t, columns, &starts[starts.len() / 2..]);
        let (bands, rest) = a.as_chunks::<BAND>();
        for (i, limbs) in (0..).step_by(BAND).zip(bands) {
            let above = i + BAND;
            let (number, factors) = (&a[above..], load(t, limbs));
            band::square(t, &mut columns[2 * i..], factors);
            let columns = &mut columns[i + above..];
            // A band must not be longer than the number. The limbs above the last whole band form a
            // shorter one.
            match *number {
                [] => {}
                [x] => band::multiply(t, columns, limbs, double(t, load(t, &[x]))),
                [x, y] => band::multiply(t, columns, limbs, double(t, load(t, &[x, y]))),
                [x, y, z] => band::multiply(t, columns, limbs, double(t, load(t, &[x, y, z]))),
                _ => band::multiply(t, columns, number, double(t, factors)),
            }
        }
        let columns_of_rest = &mut columns[2 * BAND * bands.len()..];
        match *rest {
            [x] => band::square(t, columns_of_rest, load(t, &[x])),
            [x, y] => band::square(t, columns_of_rest, load(t, &[x, y])),
            [x, y, z] => band::square(t, columns_of_rest, load(t, &[x, y, z])),
            _ => {}
        }
        reduce(t, self.out, columns, self.modulus);
    }
}

/// Divides the columns by R modulo the modulus and writes the limbs of the result.
///
/// Let `T` be the columns, `t` their lowest band and `M'' = (c * M + 1) / 2^204` for `c = -1 / M
/// mod 2^204`. The Montgomery step of a whole band is then `(T + t * c * M) / 2^204 = (T - t) /
/// 2^204 + t * M''`. The quotient is `t` itself, so no row waits for the one before it. Such a step
/// adds less than `2^204 * M`. The last whole band and the limbs beyond it are therefore reduced
/// row by row, and the result is below `T / R + 2 * M`.
#[inline(always)]
fn reduce<T: Fma51>(t: T, out: &mut [Limb], columns: &mut [Limb], modulus: LaneModulus<'_, Limb>) {
    let neg_inv = t.load(modulus.neg_inv);
    let limbs = modulus.limbs;
    let shifted = &modulus.constants[..limbs.len()];
    let at_once = rows_at_once(limbs.len());
    for row in (0..at_once).step_by(BAND) {
        let quotient: [T::Floats; BAND] = band::take(t, &mut columns[row..]);
        band::multiply(t, &mut columns[row + BAND..], shifted, quotient);
    }
    let columns = &mut columns[at_once..];
    let rest = limbs.len() - at_once;
    if rest >= BAND {
        band::reduce::<T, BAND>(t, columns, limbs, neg_inv);
    }
    let columns_of_rest = &mut columns[rest / BAND * BAND..];
    match rest % BAND {
        1 => band::reduce::<T, 1>(t, columns_of_rest, limbs, neg_inv),
        2 => band::reduce::<T, 2>(t, columns_of_rest, limbs, neg_inv),
        3 => band::reduce::<T, 3>(t, columns_of_rest, limbs, neg_inv),
        _ => {}
    }
    normalise(t, out, &columns[rest..]);
}

/// Writes the limbs of column sums. The final carry is the excess of the columns, and is dropped.
#[inline(always)]
fn normalise<T: Fma51>(t: T, out: &mut [Limb], columns: &[Limb]) {
    let mut carry = t.splat(0);
    for (out, column) in out.iter_mut().zip(columns) {
        let sum = t.add(t.load_sums(column), carry);
        t.store(out, t.limb(sum));
        carry = t.carry(sum);
    }
}

/// Reads the limbs of a band.
#[inline(always)]
fn load<T: Fma51, const R: usize>(t: T, limbs: &[Limb; R]) -> [T::Floats; R] {
    let mut floats = [t.load(&limbs[0]); R];
    for (float, limb) in floats.iter_mut().zip(limbs) {
        *float = t.load(limb);
    }
    floats
}

/// Doubles the limbs of a band, without carries.
#[inline(always)]
fn double<T: Fma51, const R: usize>(t: T, mut limbs: [T::Floats; R]) -> [T::Floats; R] {
    for limb in &mut limbs {
        *limb = t.double(*limb);
    }
    limbs
}
