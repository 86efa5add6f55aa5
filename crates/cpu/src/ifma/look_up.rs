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

/// How many table entries one squaring reads: one for each usable mask register, and enough for a
/// window of 5 bits.
pub(super) const SHARE: usize = 7;

/// A look-up beside the squarings of a step, each of which reads [`SHARE`] entries of the table.
/// The table has at least as many.
pub(super) struct Share<'a, L> {
    /// Receives the entries of lanes whose digit is among these; other lanes keep their value. Zero
    /// before the first share, if [`Madd52::merge`] needs that.
    out: &'a mut [L],
    table: &'a [L],
    digits: [u8; MAX_LANES],
    /// The number of entries.
    entries: usize,
    /// The number of the squaring.
    squaring: usize,
}

/// Whether one share for each of `squarings` squarings covers the whole table.
pub(super) fn shares_suffice(squarings: u32) -> bool {
    (SHARE..=SHARE * squarings as usize).contains(&(1 << squarings))
}

impl<'a, L: Limb> Share<'a, L> {
    /// The share of the squaring with number `squaring` in a look-up among `2^squarings` entries.
    pub(super) fn new(
        squaring: u32,
        squarings: u32,
        out: &'a mut [L],
        table: &'a [L],
        digits: [u8; MAX_LANES],
    ) -> Self {
        Self {
            out,
            table,
            digits,
            entries: 1 << squarings,
            squaring: squaring as usize,
        }
    }

    /// Whether entries of numbers of `limbs` limbs [have halves](super::halves).
    #[inline(always)]
    pub(super) fn has_halves(&self, limbs: usize) -> bool {
        self.out.len() > limbs
    }

    /// `P` tiles of each of these entries, from tile `P * i` on.
    #[inline(always)]
    pub(super) fn tiles<T: Madd52<Limb = L>, const B: usize, const P: usize>(
        &mut self,
        t: T,
        i: usize,
    ) -> Rows<'_, T, B, P> {
        let out = self.out.as_chunks_mut::<B>().0.as_chunks_mut::<P>().0;
        let table = self.table.as_chunks::<B>().0.as_chunks::<P>().0;
        let (stride, table) = (out.len(), &table[i..]);
        let first = first_of(self.squaring, self.entries);
        let (masks, entries) = entries_from(t, self.digits, first, table, stride);
        Rows {
            digits: self.digits,
            table,
            stride,
            count: self.entries,
            masks,
            entries,
            out: &mut out[i],
            picked: t.zero(),
        }
    }
}

/// The number of the first entry that squaring `squaring` reads. The last squaring may read some
/// entries a second time, which has no effect.
#[inline(always)]
fn first_of(squaring: usize, entries: usize) -> usize {
    (squaring * SHARE).min(entries - SHARE)
}

/// The entries of a table from number `first` on, and for each of them the lanes whose digit it is.
#[inline(always)]
fn entries_from<T: Madd52, E>(
    t: T,
    digits: [u8; MAX_LANES],
    first: usize,
    table: &[E],
    stride: usize,
) -> ([T::Mask; SHARE], [&E; SHARE]) {
    let (digits, table) = (t.widen(digits), &table[first * stride..]);
    let mut masks = [t.equal(digits, first as u64); SHARE];
    let mut entries = [&table[0]; SHARE];
    unrolled!(SHARE, K, {
        masks[K] = t.equal(digits, (first + K) as u64);
        entries[K] = &table[K * stride];
    });
    (masks, entries)
}

/// Tiles of a [`Share`].
pub(super) struct Rows<'a, T: Madd52, const B: usize, const P: usize> {
    digits: [u8; MAX_LANES],
    /// From the first of these tiles on.
    table: &'a [[[T::Limb; B]; P]],
    /// The distance from an entry to the next one.
    stride: usize,
    /// The number of entries.
    count: usize,
    out: &'a mut [[T::Limb; B]; P],
    /// The lanes whose digits are the entries of the current squaring.
    masks: [T::Mask; SHARE],
    /// Those entries.
    entries: [&'a [[T::Limb; B]; P]; SHARE],
    /// The merged value of the current limb.
    picked: T::Vector,
}

impl<T: Madd52, const B: usize, const P: usize> Interleaved<T> for Rows<'_, T, B, P> {
    #[inline(always)]
    fn begin(&mut self, t: T, squaring: usize) {
        let first = first_of(squaring, self.count);
        (self.masks, self.entries) = entries_from(t, self.digits, first, self.table, self.stride);
    }

    /// Looks up limb `row` of each tile, in `B` parts.
    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, row: usize) {
        const { assert!(P <= 2, "two are written out") };
        unrolled!(I, {
            unrolled!(K, {
                // Known at compile time, so that builds without optimisation have no code for the
                // other parts.
                if const { I < P && K < SHARE && (I * SHARE + K) * B / (P * SHARE) == J } {
                    let out = &mut self.out[I][row];
                    if K == 0 {
                        self.picked = t.load(out);
                    }
                    self.picked = t.merge(self.picked, self.masks[K], &self.entries[K][I][row]);
                    if K + 1 == SHARE {
                        t.store(out, self.picked);
                    }
                }
            }, 0 1 2 3 4 5 6);
        }, 0 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::LARGEST_WINDOW;

    /// Else steps would look up beside nothing, which takes longer.
    #[test]
    fn shares_cover_the_largest_windows() {
        assert!(shares_suffice(LARGEST_WINDOW));
    }
}
