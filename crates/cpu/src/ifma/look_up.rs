//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order whatever the digits are, and merged under masks that hold where the digit is
//! the entry.

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::kernel::{self, Beside, unrolled};
use super::madd52::{Kernel, Limb, MAX_LANES, Madd52};

/// See [`Lanes::select`](crate::lanes::Lanes::select).
pub(super) struct Select<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
}

impl<L: Limb> Kernel<L> for Select<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let digits = t.widen(self.digits);
        let table = self.table.as_chunks::<B>().0;
        let out = self.out.as_chunks_mut::<B>().0;
        let stride = out.len();
        for (i, out) in out.iter_mut().enumerate() {
            let mut picked = [t.zero(); B];
            for (entry, block) in (0..).zip(table[i..].iter().step_by(stride)) {
                let mask = t.equal(digits, entry);
                unrolled!(B, J, {
                    picked[J] = t.merge(picked[J], mask, &block[J]);
                });
            }
            kernel::store(t, out, picked);
        }
    }
}

/// See [`Lanes::select_of_row`](crate::lanes::Lanes::select_of_row).
///
/// As many entries as there are lanes are one vector of words, from which each lane takes the one that it needs by a permutation
/// in registers: as in M. Hamburg, "Accelerating AES with vector permute instructions", CHES 2009, its time does not depend on
/// what is taken. A mask tells whether the entry is among them.
pub(super) struct SelectOfRow<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) row: &'a [u64],
    pub(super) digits: [u8; MAX_LANES],
}

impl<L: Limb> Kernel<L> for SelectOfRow<'_, L> {
    #[inline(always)]
    fn run<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) {
        let lanes = L::LANES as u8;
        let vector = t.widen(self.digits.map(|digit| digit / lanes));
        let in_vector = t.lane_numbers(self.digits.map(|digit| digit % lanes));
        let words = L::chunks(self.row);
        let vectors = words.len() / self.out.len();
        let out = self.out.as_chunks_mut::<B>().0;
        for (out, words) in out.iter_mut().zip(words.chunks_exact(B * vectors)) {
            let mut picked = [t.zero(); B];
            for number in 0..vectors {
                let mask = t.equal(vector, number as u64);
                unrolled!(B, J, {
                    picked[J] = t.pick(picked[J], mask, in_vector, &words[J * vectors + number]);
                });
            }
            kernel::store(t, out, picked);
        }
    }
}

/// How many entries of the table one squaring looks at: as many as there are mask registers to merge under, and enough
/// for a window of 5 bits.
const ENTRIES: usize = 7;

const _: () = assert!(ENTRIES == 7, "as many are written out below");

/// What one squaring looks at in a table of at least [`ENTRIES`] entries.
pub(super) struct Share<'a, L> {
    /// Where lanes whose digit is among these entries get them; the others keep what they have. Zero before the first
    /// share, if [`Madd52::merge`] needs that.
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
    /// The first entry.
    first: usize,
}

impl<'a, L: Limb> Share<'a, L> {
    /// Whether `squarings` shares, one for each squaring before the multiplication, are all of the table.
    pub(super) fn suffice(squarings: u32) -> bool {
        (ENTRIES..=ENTRIES * squarings as usize).contains(&(1 << squarings))
    }

    /// The share of squaring `squaring`.
    pub(super) fn new(
        squaring: u32,
        out: &'a mut [L],
        table: &'a [L],
        digits: [u8; MAX_LANES],
    ) -> Self {
        let entries = table.len() / out.len();
        Self {
            first: first_of(squaring as usize, entries),
            out,
            table,
            digits,
        }
    }

    /// Whether entries of numbers of `limbs` limbs [have halves](super::halves).
    #[inline(always)]
    pub(super) fn has_halves(&self, limbs: usize) -> bool {
        self.out.len() > limbs
    }

    /// Block `i` of these entries, of `P` numbers each.
    #[inline(always)]
    pub(super) fn block<T: Madd52<Limb = L>, const B: usize, const P: usize>(
        &mut self,
        t: T,
        i: usize,
    ) -> Rows<'_, T, B, P> {
        let out = self.out.as_chunks_mut::<B>().0.as_chunks_mut::<P>().0;
        let table = self.table.as_chunks::<B>().0.as_chunks::<P>().0;
        let table = &table[self.first * out.len() + i..];
        let mut entries = [&table[0]; ENTRIES];
        unrolled!(E, { entries[E] = &table[E * out.len()] }, 0 1 2 3 4 5 6);
        Rows::new(t, self.digits, self.first, entries, &mut out[i])
    }
}

/// The entries of a table that squaring `squaring` looks at, and the number of the first of them.
#[inline(always)]
pub(super) fn share_of<E>(table: &[E], squaring: usize) -> (usize, &[E; ENTRIES]) {
    let first = first_of(squaring, table.len());
    let entries = table[first..].first_chunk();
    (first, entries.expect("so many are left"))
}

/// The first of so many entries that squaring `squaring` looks at. The last squaring may have some that the one before it had, which
/// changes nothing.
#[inline(always)]
fn first_of(squaring: usize, entries: usize) -> usize {
    (squaring * ENTRIES).min(entries - ENTRIES)
}

/// One block of a [`Share`]: of each number of the entries.
pub(super) struct Rows<'a, T: Madd52, const B: usize, const P: usize> {
    masks: [T::Mask; ENTRIES],
    entries: [&'a [[T::Limb; B]; P]; ENTRIES],
    out: &'a mut [[T::Limb; B]; P],
    /// What is merged of the limb that is being looked up.
    picked: T::Vector,
}

impl<'a, T: Madd52, const B: usize, const P: usize> Rows<'a, T, B, P> {
    /// For the digits of all lanes, of entries from number `first` of the table on, into `out`.
    #[inline(always)]
    pub(super) fn new(
        t: T,
        digits: [u8; MAX_LANES],
        first: usize,
        entries: [&'a [[T::Limb; B]; P]; ENTRIES],
        out: &'a mut [[T::Limb; B]; P],
    ) -> Self {
        let digits = t.widen(digits);
        let mut masks = [t.equal(digits, first as u64); ENTRIES];
        unrolled!(E, { masks[E] = t.equal(digits, (first + E) as u64) }, 0 1 2 3 4 5 6);
        Self {
            masks,
            entries,
            out,
            picked: t.zero(),
        }
    }

    /// Those of one number.
    #[inline(always)]
    pub(super) fn of(self, number: usize) -> Number<'a, T, B, P> {
        Number { rows: self, number }
    }

    /// Part `J` of `B` of looking up limb `row` of `N` numbers, from the first of them.
    #[inline(always)]
    fn part<const J: usize, const N: usize>(&mut self, t: T, first: usize, row: usize) {
        const { assert!(N <= 2, "two are written out") };
        let numbers = &mut self.out[first..][..N];
        unrolled!(I, {
            unrolled!(E, {
                // Known when this is compiled, so that builds without optimisation have no code for the other parts.
                if const { I < N && (I * ENTRIES + E) * B / (N * ENTRIES) == J } {
                    let out = &mut numbers[I][row];
                    if E == 0 {
                        self.picked = t.load(out);
                    }
                    let limb = &self.entries[E][first + I][row];
                    self.picked = t.merge(self.picked, self.masks[E], limb);
                    if E + 1 == ENTRIES {
                        t.store(out, self.picked);
                    }
                }
            }, 0 1 2 3 4 5 6);
        }, 0 1);
    }
}

impl<T: Madd52, const B: usize, const P: usize> Beside<T> for Rows<'_, T, B, P> {
    /// One limb of each number in a row.
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        Rows::part::<J, P>(self, t, 0, row);
    }
}

/// [`Rows`] of one number.
pub(super) struct Number<'a, T: Madd52, const B: usize, const P: usize> {
    rows: Rows<'a, T, B, P>,
    number: usize,
}

impl<T: Madd52, const B: usize, const P: usize> Beside<T> for Number<'_, T, B, P> {
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        self.rows.part::<J, 1>(t, self.number, row);
    }
}
