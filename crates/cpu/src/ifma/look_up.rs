//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order for all digits. They are merged under masks that select
//! the lanes whose digit is the entry: [in a register or in memory](super::tuning::LookUp).

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::kernel::{self, Interleaved, unrolled};
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
            for (entry, tile) in (0..).zip(table[i..].iter().step_by(stride)) {
                let mask = t.equal(digits, entry);
                unrolled!(B, J, {
                    picked[J] = t.merge(picked[J], mask, &tile[J]);
                });
            }
            kernel::store(t, out, picked);
        }
    }
}

/// See [`Lanes::select_of_row`](crate::lanes::Lanes::select_of_row).
///
/// A vector holds one word of as many entries as there are lanes. Each lane takes its word by a
/// permutation in registers, whose time does not depend on the indices (M. Hamburg, "Accelerating
/// AES with vector permute instructions", CHES 2009). A mask tells whether the lane's entry is
/// among them.
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

/// How many table entries one squaring reads if it merges them in registers: one for each usable
/// mask register, and enough for a window of 5 bits.
pub(super) const MERGED: usize = 7;

/// How many table entries one squaring reads if it stores them: enough for a window of 4 bits.
pub(super) const STORED: usize = 4;

const _: () = assert!(MERGED == 7 && STORED < 7, "as many are written out below");

/// The part of a table that one squaring reads: `E` entries. The table has at least as many.
pub(super) struct Share<'a, L, const E: usize> {
    /// Receives the entries of lanes whose digit is among these; other lanes keep their value. Zero
    /// before the first share, if [`Madd52::merge`] needs that.
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
    /// The number of the first entry.
    first: usize,
}

/// Whether numbers of `limbs` limbs are looked up by [stores](LookUp::Stores).
pub(super) fn stores_entries<T: Madd52>(unit: T, limbs: usize) -> bool {
    unit.tuning().look_up == LookUp::Stores && size::keeps_columns::<T>(size::tile_len::<T>(limbs))
}

/// Whether one share of `entries` entries for each of `squarings` squarings covers the whole table.
pub(super) fn suffice(entries: usize, squarings: u32) -> bool {
    (entries..=entries * squarings as usize).contains(&(1 << squarings))
}

impl<'a, L: Limb, const E: usize> Share<'a, L, E> {
    /// The share of the squaring with number `squaring`.
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

    /// Tile `i` of these entries, each of `P` numbers.
    #[inline(always)]
    pub(super) fn tile<T: Madd52<Limb = L>, const B: usize, const P: usize>(
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

/// The table entries that squaring `squaring` reads, and the number of the first of them.
#[inline(always)]
pub(super) fn share_of<L, const E: usize>(table: &[L], squaring: usize) -> (usize, &[L; E]) {
    let first = first_of::<E>(squaring, table.len());
    let entries = table[first..].first_chunk();
    (first, entries.expect("so many are left"))
}

/// The number of the first entry that squaring `squaring` reads. The last squaring may read some
/// entries a second time, which has no effect.
#[inline(always)]
fn first_of<const E: usize>(squaring: usize, entries: usize) -> usize {
    (squaring * E).min(entries - E)
}

/// The lanes whose digits are the entries from number `first` on, one mask for each entry.
#[inline(always)]
fn masks<T: Madd52, const E: usize>(t: T, digits: [u8; MAX_LANES], first: usize) -> [T::Mask; E] {
    let digits = t.widen(digits);
    let mut masks = [t.equal(digits, first as u64); E];
    unrolled!(E, K, { masks[K] = t.equal(digits, (first + K) as u64) });
    masks
}

/// One tile of a [`Share`], for each number of the entries. [`STORED`] entries go from memory to
/// memory, [`MERGED`] ones through a register.
pub(super) struct Rows<'a, T: Madd52, const B: usize, const P: usize, const E: usize> {
    masks: [T::Mask; E],
    entries: [&'a [[T::Limb; B]; P]; E],
    out: &'a mut [[T::Limb; B]; P],
    /// The merged value of the current limb.
    picked: T::Vector,
}

impl<'a, T: Madd52, const B: usize, const P: usize, const E: usize> Rows<'a, T, B, P, E> {
    /// The rows for the digits of all lanes, of entries from number `first` of the table on, into
    /// `out`.
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

    /// The rows of one number.
    #[inline(always)]
    pub(super) fn of(self, number: usize) -> Number<'a, T, B, P, E> {
        Number { rows: self, number }
    }

    /// Part `J` of `B` of looking up limb `row` of `N` numbers, from number `first` on.
    #[inline(always)]
    fn part<const J: usize, const N: usize>(&mut self, t: T, first: usize, row: usize) {
        const { assert!(N <= 2, "two are written out") };
        let numbers = &mut self.out[first..][..N];
        unrolled!(I, {
            unrolled!(K, {
                // Known at compile time, so that builds without optimisation have no code for the
                // other parts.
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

impl<T: Madd52, const B: usize, const P: usize, const E: usize> Interleaved<T>
    for Rows<'_, T, B, P, E>
{
    /// Looks up one limb of each number in a row.
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

impl<T: Madd52, const B: usize, const P: usize, const E: usize> Interleaved<T>
    for Number<'_, T, B, P, E>
{
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        self.rows.part::<J, 1>(t, self.number, row);
    }
}

/// The look-up beside a square whose columns stay in registers. Its stores are spread evenly, since
/// Intel's processors handle one masked store in three cycles.
///
/// The order of loads and stores and their addresses are the same for all digits. The mask selects
/// the lanes that a store writes.
pub(super) struct Evenly<'a, T: Madd52, const B: usize, const P: usize> {
    masks: [T::Mask; STORED],
    entries: &'a [[[T::Limb; B]; P]; STORED],
    /// Always `Some`.
    out: Option<&'a mut [[T::Limb; B]; P]>,
}

impl<'a, T: Madd52, const B: usize, const P: usize> Evenly<'a, T, B, P> {
    /// Takes the parameters of [`Rows`].
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

impl<T: Madd52, const B: usize, const P: usize> Interleaved<T> for Evenly<'_, T, B, P> {
    #[inline(always)]
    fn part<const J: usize>(&mut self, _: T, _: usize) {}

    /// Looks up limb by limb. The last two rows do nothing, so that the code after the square need
    /// not wait for a store.
    #[inline(always)]
    fn moment(&mut self, t: T, moment: usize, of: usize) {
        let (stores, of) = (STORED * P * B, of - 2 * B);
        let store = moment * stores / of;
        if store < stores && (moment + 1) * stores / of > store {
            let (number, limb) = (store / STORED % P, store / STORED / P);
            let entry = &self.entries[store % STORED][number][limb];
            // Hidden from the compiler, which would compute an address for each limb.
            let out = t.reload_mut(self.out.take().expect("the output is there"));
            t.replace(&mut out[number][limb], self.masks[store % STORED], entry);
            self.out = Some(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::LARGEST_WINDOW;

    /// Else `lanes52` would look up beside nothing, which takes longer.
    #[test]
    fn shares_cover_the_largest_windows() {
        assert!(suffice(MERGED, LARGEST_WINDOW));
        assert!(suffice(STORED, 4) && !suffice(STORED, 5));
    }
}
