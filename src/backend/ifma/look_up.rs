//! The table look-up, alone or a few entries in each row of a squaring.

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::columns::{self, unrolled};
use super::madd52::{Kernel, Limb, Madd52};
use crate::backend::lanes;
use crate::backend::lanes::window::ENTRIES_PER_SQUARING as ENTRIES;

/// See [`Arithmetic::look_up`](crate::backend::lanes::Arithmetic::look_up).
pub(super) struct Select<'a>(pub(super) lanes::LookUp<'a, Limb>);

impl Kernel for Select<'_> {
    #[inline(always)]
    fn run<T: Madd52, const B: usize>(self, t: T) {
        let digits = digits(t, self.0.digits);
        let table = self.0.table.as_chunks::<B>().0;
        let out = self.0.out.as_chunks_mut::<B>().0;
        let stride = out.len();
        for (i, out) in out.iter_mut().enumerate() {
            let mut picked = [t.zero(); B];
            for (entry, block) in (0..).zip(table[i..].iter().step_by(stride)) {
                let mask = t.equal(digits, entry);
                unrolled!(B, J, {
                    picked[J] = t.merge(picked[J], mask, &block[J]);
                });
            }
            columns::store(t, out, picked);
        }
    }
}

/// A look-up that is spread over squarings.
pub(super) struct Spread<'a, T: Madd52, const B: usize> {
    digits: T::Vector,
    table: &'a [[Limb; B]],
    out: &'a mut [[Limb; B]],
}

impl<'a, T: Madd52, const B: usize> Spread<'a, T, B> {
    #[inline(always)]
    pub(super) fn new(t: T, look_up: lanes::LookUp<'a, Limb>, squarings: u32) -> Self {
        let entries = look_up.table.len() / look_up.out.len();
        assert!(entries <= ENTRIES * squarings as usize);
        Self {
            digits: digits(t, look_up.digits),
            table: look_up.table.as_chunks().0,
            out: look_up.out.as_chunks_mut().0,
        }
    }

    /// The entries for one of the squarings. Behind the end of the table the last entry is read again, for
    /// a digit that no lane has.
    #[inline(always)]
    pub(super) fn share(&mut self, t: T, squaring: u32) -> Share<'_, T, B> {
        let first = squaring as usize * ENTRIES;
        let mut masks = [t.equal(self.digits, first as u64); ENTRIES];
        unrolled!(ENTRIES, E, {
            masks[E] = t.equal(self.digits, (first + E) as u64);
        });
        Share {
            masks,
            first,
            table: self.table,
            out: self.out,
        }
    }
}

/// The entries that one squaring looks at.
pub(super) struct Share<'a, T: Madd52, const B: usize> {
    masks: [T::Mask; ENTRIES],
    first: usize,
    table: &'a [[Limb; B]],
    out: &'a mut [[Limb; B]],
}

impl<T: Madd52, const B: usize> Share<'_, T, B> {
    /// Block `i` of these entries.
    #[inline(always)]
    pub(super) fn block(&mut self, i: usize) -> Rows<'_, T, B> {
        let stride = self.out.len();
        let last = self.table.len() / stride - 1;
        let mut entries = [&self.table[i]; ENTRIES];
        unrolled!(ENTRIES, E, {
            entries[E] = &self.table[(self.first + E).min(last) * stride + i];
        });
        Rows {
            masks: self.masks,
            entries,
            out: &mut self.out[i],
        }
    }
}

/// One block of the entries that one squaring looks at, and of the output.
pub(super) struct Rows<'a, T: Madd52, const B: usize> {
    masks: [T::Mask; ENTRIES],
    entries: [&'a [Limb; B]; ENTRIES],
    out: &'a mut [Limb; B],
}

impl<T: Madd52, const B: usize> Rows<'_, T, B> {
    /// Looks at one limb.
    #[inline(always)]
    pub(super) fn limb(&mut self, t: T, row: usize) {
        let mut picked = t.load(&self.out[row]);
        unrolled!(ENTRIES, E, {
            picked = t.merge(picked, self.masks[E], &self.entries[E][row]);
        });
        t.store(&mut self.out[row], picked);
    }
}

/// The digits of all lanes.
#[inline(always)]
fn digits<T: Madd52>(t: T, digits: &[u8]) -> T::Vector {
    t.widen(digits.try_into().expect("a digit for each lane"))
}
