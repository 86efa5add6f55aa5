//! Montgomery multiplication and squaring, and the table look-up.
//!
//! First all columns of the product, then the reduction (separated operand scanning, C. K. Koc, T. Acar,
//! B. S. Kaliski, "Analyzing and Comparing Montgomery Multiplication Algorithms", IEEE Micro 16(3), 1996).

use super::band::{self, BAND};
use super::bias;
use super::fma51::{Fma51, Kernel, Limb};
use crate::backend::lanes::Modulus;

/// Scratch limbs for operands of `limbs` limbs: the columns of a product.
pub(super) const fn scratch_len(limbs: usize) -> usize {
    2 * limbs
}

/// See [`Lanes::mul`](crate::backend::lanes::Lanes::mul).
pub(super) struct Mul<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) b: &'a [Limb],
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Mul<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let (a, columns) = (self.a, self.scratch);
        for (i, column) in columns.iter_mut().enumerate() {
            t.store_sums(column, t.splat(bias::multiplication(a.len(), i)));
        }
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

/// See [`Lanes::square`](crate::backend::lanes::Lanes::square).
pub(super) struct Square<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) a: &'a [Limb],
    pub(super) modulus: Modulus<'a, Limb>,
    pub(super) scratch: &'a mut [Limb],
}

impl Kernel for Square<'_> {
    /// The products of different bands are computed once, with one factor doubled.
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let (a, columns) = (self.a, self.scratch);
        for (i, column) in columns.iter_mut().enumerate() {
            t.store_sums(column, t.splat(bias::squaring(a.len(), i)));
        }
        let (bands, rest) = a.as_chunks::<BAND>();
        for (i, limbs) in (0..).step_by(BAND).zip(bands) {
            let above = i + BAND;
            let (number, factors) = (&a[above..], load(t, limbs));
            band::square(t, &mut columns[2 * i..], factors);
            let columns = &mut columns[i + above..];
            // A band must not be longer than the number: what is left above the last one takes its part.
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

/// See [`Lanes::select`](crate::backend::lanes::Lanes::select).
pub(super) struct Select<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) table: &'a [Limb],
    pub(super) digits: &'a Limb,
}

/// Limbs that a look-up copies at a time.
const SELECT: usize = 8;

impl Kernel for Select<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let digits = t.load_sums(self.digits);
        let limbs = self.out.len();
        let (groups, rest) = self.out.as_chunks_mut::<SELECT>();
        let mut start = 0;
        for out in groups {
            select(t, out, &self.table[start..], limbs, digits);
            start += SELECT;
        }
        for out in rest {
            select(
                t,
                core::array::from_mut(out),
                &self.table[start..],
                limbs,
                digits,
            );
            start += 1;
        }
    }
}

/// Picks `G` limbs out of entries that are `limbs` limbs long, by the digit of each lane.
#[inline(always)]
fn select<T: Fma51, const G: usize>(
    t: T,
    out: &mut [Limb; G],
    table: &[Limb],
    limbs: usize,
    digits: T::Sums,
) {
    let mut picked = [t.splat(0); G];
    for (entry, group) in (0..).zip(table.chunks(limbs)) {
        for (picked, limb) in picked.iter_mut().zip(group) {
            *picked = t.pick(*picked, limb, digits, entry);
        }
    }
    for (out, picked) in out.iter_mut().zip(picked) {
        t.store_sums(out, picked);
    }
}

/// Divides the columns by R modulo the modulus and writes the limbs of the result.
#[inline(always)]
fn reduce<T: Fma51>(t: T, out: &mut [Limb], columns: &mut [Limb], modulus: Modulus<'_, Limb>) {
    let neg_inv = t.load(modulus.neg_inv);
    let limbs = modulus.limbs;
    let bands = limbs.len() / BAND;
    for i in 0..bands {
        band::reduce::<T, BAND>(t, &mut columns[BAND * i..], limbs, neg_inv);
    }
    let columns_of_rest = &mut columns[BAND * bands..];
    match limbs.len() % BAND {
        1 => band::reduce::<T, 1>(t, columns_of_rest, limbs, neg_inv),
        2 => band::reduce::<T, 2>(t, columns_of_rest, limbs, neg_inv),
        3 => band::reduce::<T, 3>(t, columns_of_rest, limbs, neg_inv),
        _ => {}
    }

    let mut carry = t.splat(0);
    for (out, column) in out.iter_mut().zip(&columns[limbs.len()..]) {
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
