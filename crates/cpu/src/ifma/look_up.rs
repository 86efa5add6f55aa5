//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order whatever the digits are, and merged under masks that hold where the digit is
//! the entry: [in a register or in memory](super::tuning::LookUp).

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::kernel::{self, Beside, unrolled};
use super::madd52::{Kernel, Limb, MAX_LANES, Madd52};
use super::size;
use super::tuning::LookUp;

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

/// How many entries of the table one squaring looks at if it merges them in registers: as many as there are mask registers to merge
/// under, and enough for a window of 5 bits.
pub(super) const MERGED: usize = 7;

/// How many it looks at if it stores them: enough for a window of 4 bits.
pub(super) const STORED: usize = 4;

const _: () = assert!(MERGED == 7 && STORED < 7, "as many are written out below");

/// The part of a table that one squaring looks at: `E` entries. The table has at least as many.
pub(super) struct Share<'a, L, const E: usize> {
    /// Where lanes whose digit is among these entries get them; the others keep what they have. Zero before the first
    /// share, if [`Madd52::merge`] needs that.
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
    /// The first entry.
    first: usize,
}

/// Whether numbers of `limbs` limbs are looked up by [stores](LookUp::Stores).
pub(super) fn stores_entries<T: Madd52>(unit: T, limbs: usize) -> bool {
    unit.tuning().look_up == LookUp::Stores && size::keeps_columns::<T>(size::block_len::<T>(limbs))
}

/// Whether shares of `entries` entries, one for each of `squarings` squarings before the multiplication, are all of the table.
pub(super) fn suffice(entries: usize, squarings: u32) -> bool {
    (entries..=entries * squarings as usize).contains(&(1 << squarings))
}

impl<'a, L: Limb, const E: usize> Share<'a, L, E> {
    /// The share of squaring `squaring`.
    pub(super) fn new(
        squaring: u32,
        out: &'a mut [L],
        table: &'a [L],
        digits: [u8; MAX_LANES],
    ) -> Self {
        let entries = table.len() / out.len();
        Self {
            first: first_of::<E>(squaring as usize, entries),
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
    ) -> Rows<'_, T, B, P, E> {
        let out = self.out.as_chunks_mut::<B>().0.as_chunks_mut::<P>().0;
        let table = self.table.as_chunks::<B>().0.as_chunks::<P>().0;
        let table = &table[self.first * out.len() + i..];
        let mut entries = [&table[0]; E];
        unrolled!(E, K, { entries[K] = &table[K * out.len()] });
        Rows::new(t, self.digits, self.first, entries, &mut out[i])
    }
}

/// The entries of a table that squaring `squaring` looks at, and the number of the first of them.
#[inline(always)]
pub(super) fn share_of<L, const E: usize>(table: &[L], squaring: usize) -> (usize, &[L; E]) {
    let first = first_of::<E>(squaring, table.len());
    let entries = table[first..].first_chunk();
    (first, entries.expect("so many are left"))
}

/// The first of so many entries that squaring `squaring` looks at. The last squaring may have some that the one before it had, which
/// changes nothing.
#[inline(always)]
fn first_of<const E: usize>(squaring: usize, entries: usize) -> usize {
    (squaring * E).min(entries - E)
}

/// The lanes whose digits are the entries from number `first` of the table on.
#[inline(always)]
fn masks<T: Madd52, const E: usize>(t: T, digits: [u8; MAX_LANES], first: usize) -> [T::Mask; E] {
    let digits = t.widen(digits);
    let mut masks = [t.equal(digits, first as u64); E];
    unrolled!(E, K, { masks[K] = t.equal(digits, (first + K) as u64) });
    masks
}

/// One block of a [`Share`]: of each number of the entries. [`STORED`] entries go from memory to memory, [`MERGED`] through a register.
pub(super) struct Rows<'a, T: Madd52, const B: usize, const P: usize, const E: usize> {
    masks: [T::Mask; E],
    entries: [&'a [[T::Limb; B]; P]; E],
    out: &'a mut [[T::Limb; B]; P],
    /// What is merged of the limb that is being looked up.
    picked: T::Vector,
}

impl<'a, T: Madd52, const B: usize, const P: usize, const E: usize> Rows<'a, T, B, P, E> {
    /// For the digits of all lanes, of entries from number `first` of the table on, into `out`.
    #[inline(always)]
    pub(super) fn new(
        t: T,
        digits: [u8; MAX_LANES],
        first: usize,
        entries: [&'a [[T::Limb; B]; P]; E],
        out: &'a mut [[T::Limb; B]; P],
    ) -> Self {
        Self {
            masks: masks(t, digits, first),
            entries,
            out,
            picked: t.zero(),
        }
    }

    /// Those of one number.
    #[inline(always)]
    pub(super) fn of(self, number: usize) -> Number<'a, T, B, P, E> {
        Number { rows: self, number }
    }

    /// Part `J` of `B` of looking up limb `row` of `N` numbers, from the first of them.
    #[inline(always)]
    fn part<const J: usize, const N: usize>(&mut self, t: T, first: usize, row: usize) {
        const { assert!(N <= 2, "two are written out") };
        let numbers = &mut self.out[first..][..N];
        unrolled!(I, {
            unrolled!(K, {
                // Known when this is compiled, so that builds without optimisation have no code for the other parts.
                if const { I < N && K < E && (I * E + K) * B / (N * E) == J } {
                    let out = &mut numbers[I][row];
                    let limb = &self.entries[K][first + I][row];
                    if E == STORED {
                        t.replace(out, self.masks[K], limb);
                    } else {
                        if K == 0 {
                            self.picked = t.load(out);
                        }
                        self.picked = t.merge(self.picked, self.masks[K], limb);
                        if K + 1 == E {
                            t.store(out, self.picked);
                        }
                    }
                }
            }, 0 1 2 3 4 5 6);
        }, 0 1);
    }
}

impl<T: Madd52, const B: usize, const P: usize, const E: usize> Beside<T> for Rows<'_, T, B, P, E> {
    /// One limb of each number in a row.
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        Rows::part::<J, P>(self, t, 0, row);
    }
}

/// [`Rows`] of one number.
pub(super) struct Number<'a, T: Madd52, const B: usize, const P: usize, const E: usize> {
    rows: Rows<'a, T, B, P, E>,
    number: usize,
}

impl<T: Madd52, const B: usize, const P: usize, const E: usize> Beside<T>
    for Number<'_, T, B, P, E>
{
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        self.rows.part::<J, 1>(t, self.number, row);
    }
}

/// The same entries for a square whose columns stay in registers: stored at equal distances all along it, since Intel's processors
/// have time for one masked store in three cycles.
///
/// The order of loads and stores and their addresses are the same for all digits; which lanes a store writes is in its mask.
pub(super) struct Evenly<'a, T: Madd52, const B: usize, const P: usize> {
    masks: [T::Mask; STORED],
    entries: &'a [[[T::Limb; B]; P]; STORED],
    /// Always there.
    out: Option<&'a mut [[T::Limb; B]; P]>,
}

impl<'a, T: Madd52, const B: usize, const P: usize> Evenly<'a, T, B, P> {
    /// As for [`Rows`].
    #[inline(always)]
    pub(super) fn new(
        t: T,
        digits: [u8; MAX_LANES],
        first: usize,
        entries: &'a [[[T::Limb; B]; P]; STORED],
        out: &'a mut [[T::Limb; B]; P],
    ) -> Self {
        Self {
            masks: masks(t, digits, first),
            entries,
            out: Some(out),
        }
    }
}

impl<T: Madd52, const B: usize, const P: usize> Beside<T> for Evenly<'_, T, B, P> {
    #[inline(always)]
    fn part<const J: usize>(&mut self, _: T, _: usize) {}

    /// Limb by limb. The last two rows have none, so that what comes after the square need not wait for a store.
    #[inline(always)]
    fn moment(&mut self, t: T, moment: usize, of: usize) {
        let (stores, of) = (STORED * P * B, of - 2 * B);
        let store = moment * stores / of;
        if store < stores && (moment + 1) * stores / of > store {
            let (number, limb) = (store / STORED % P, store / STORED / P);
            let entry = &self.entries[store % STORED][number][limb];
            // Hidden from the compiler, which would make an address for each limb.
            let out = t.reload_mut(self.out.take().expect("the output is there"));
            t.replace(&mut out[number][limb], self.masks[store % STORED], entry);
            self.out = Some(out);
        }
    }
}
