//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order for all digits. They are merged under masks that select
//! the lanes whose digit is the entry. Loads merge into registers; masked stores would be faster on
//! some of Intel's processors, but take a time that depends on the masks (`docs/ifma.md`).

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::kernel::{self, Interleaved, unrolled};
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

/// How many table entries one squaring reads: one for each usable mask register, and enough for a
/// window of 5 bits.
pub(super) const SHARE: usize = 7;

/// The part of a table that one squaring reads: [`SHARE`] entries. The table has at least as many.
pub(super) struct Share<'a, L> {
    /// Receives the entries of lanes whose digit is among these; other lanes keep their value. Zero
    /// before the first share, if [`Madd52::merge`] needs that.
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
    /// The number of the first entry.
    first: usize,
}

/// Whether one share for each of `squarings` squarings covers the whole table.
pub(super) fn shares_suffice(squarings: u32) -> bool {
    (SHARE..=SHARE * squarings as usize).contains(&(1 << squarings))
}

impl<'a, L: Limb> Share<'a, L> {
    /// The share of the squaring with number `squaring`.
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

    /// Tile `i` of these entries, each of `P` numbers.
    #[inline(always)]
    pub(super) fn tile<T: Madd52<Limb = L>, const B: usize, const P: usize>(
        &mut self,
        t: T,
        i: usize,
    ) -> Rows<'_, T, B, P> {
        let out = self.out.as_chunks_mut::<B>().0.as_chunks_mut::<P>().0;
        let table = self.table.as_chunks::<B>().0.as_chunks::<P>().0;
        let table = &table[self.first * out.len() + i..];
        let mut entries = [&table[0]; SHARE];
        unrolled!(SHARE, K, { entries[K] = &table[K * out.len()] });
        Rows::new(t, self.digits, self.first, entries, &mut out[i])
    }
}

/// The table entries that squaring `squaring` reads, and the number of the first of them.
#[inline(always)]
pub(super) fn share_of<L>(table: &[L], squaring: usize) -> (usize, &[L; SHARE]) {
    let first = first_of(squaring, table.len());
    let entries = table[first..].first_chunk();
    (first, entries.expect("so many are left"))
}

/// The number of the first entry that squaring `squaring` reads. The last squaring may read some
/// entries a second time, which has no effect.
#[inline(always)]
fn first_of(squaring: usize, entries: usize) -> usize {
    (squaring * SHARE).min(entries - SHARE)
}

/// The lanes whose digits are the entries from number `first` on, one mask for each entry.
#[inline(always)]
fn masks<T: Madd52>(t: T, digits: [u8; MAX_LANES], first: usize) -> [T::Mask; SHARE] {
    let digits = t.widen(digits);
    let mut masks = [t.equal(digits, first as u64); SHARE];
    unrolled!(SHARE, K, { masks[K] = t.equal(digits, (first + K) as u64) });
    masks
}

/// One tile of a [`Share`], for each number of the entries.
pub(super) struct Rows<'a, T: Madd52, const B: usize, const P: usize> {
    masks: [T::Mask; SHARE],
    entries: [&'a [[T::Limb; B]; P]; SHARE],
    out: &'a mut [[T::Limb; B]; P],
    /// The merged value of the current limb.
    picked: T::Vector,
}

impl<'a, T: Madd52, const B: usize, const P: usize> Rows<'a, T, B, P> {
    /// The rows for the digits of all lanes, of entries from number `first` of the table on, into
    /// `out`.
    #[inline(always)]
    pub(super) fn new(
        t: T,
        digits: [u8; MAX_LANES],
        first: usize,
        entries: [&'a [[T::Limb; B]; P]; SHARE],
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
    pub(super) fn of(self, number: usize) -> Number<'a, T, B, P> {
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
                if const { I < N && K < SHARE && (I * SHARE + K) * B / (N * SHARE) == J } {
                    let out = &mut numbers[I][row];
                    let limb = &self.entries[K][first + I][row];
                    if K == 0 {
                        self.picked = t.load(out);
                    }
                    self.picked = t.merge(self.picked, self.masks[K], limb);
                    if K + 1 == SHARE {
                        t.store(out, self.picked);
                    }
                }
            }, 0 1 2 3 4 5 6);
        }, 0 1);
    }
}

impl<T: Madd52, const B: usize, const P: usize> Interleaved<T> for Rows<'_, T, B, P> {
    /// Looks up one limb of each number in a row.
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

impl<T: Madd52, const B: usize, const P: usize> Interleaved<T> for Number<'_, T, B, P> {
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        self.rows.part::<J, 1>(t, self.number, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::LARGEST_WINDOW;

    /// Else `lanes52` would look up beside nothing, which takes longer.
    #[test]
    fn shares_cover_the_largest_windows() {
        assert!(shares_suffice(LARGEST_WINDOW));
    }
}
