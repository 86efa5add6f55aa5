//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order for all digits. They are merged under masks that select
//! the lanes whose digit is the entry. Loads merge into registers; masked stores would be faster on
//! some of Intel's processors, but take a time that depends on the masks (`docs/ifma.md`).

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use super::kernel::{self, Beside, Interleaved};
use super::madd52::{Kernel, LaneLimb, Madd52, unrolled};
use crate::lanes::MAX_LANES;

/// See [`Lanes::select`](crate::lanes::Lanes::select).
pub(super) struct Select<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    pub(super) digits: [u8; MAX_LANES],
}

impl<L: LaneLimb> Kernel<L> for Select<'_, L> {
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

/// For each of the entries from number `first` on, the lanes whose digit it is.
#[inline(always)]
pub(super) fn masks_from<T: Madd52>(
    t: T,
    digits: [u8; MAX_LANES],
    first: usize,
) -> [T::Mask; SECTION_LEN] {
    let digits = t.widen(digits);
    let mut masks = [t.equal(digits, first as u64); SECTION_LEN];
    unrolled!(SECTION_LEN, K, {
        masks[K] = t.equal(digits, (first + K) as u64);
    });
    masks
}

/// How many table entries one squaring reads: one for each usable mask register, and enough for a
/// window of 5 bits.
pub(super) const SECTION_LEN: usize = 7;

/// A look-up beside the squarings of a step. Each squaring reads a section of the table:
/// [`SECTION_LEN`] entries. The table has at least as many. `P` tiles of an entry are looked up
/// together.
pub(super) struct Section<'a, L, const P: usize> {
    /// Receives the entries of lanes whose digit is among these; other lanes keep their value. Zero
    /// before the first section, if [`Madd52::merge`] needs that.
    out: &'a mut [L],
    table: &'a [L],
    digits: [u8; MAX_LANES],
    /// The number of entries.
    entries: usize,
    /// The number of the squaring.
    squaring: usize,
}

/// Whether one section for each of `squarings` squarings covers the whole table.
pub(super) fn sections_suffice(squarings: u32) -> bool {
    (SECTION_LEN..=SECTION_LEN * squarings as usize).contains(&(1 << squarings))
}

impl<'a, L: LaneLimb, const P: usize> Section<'a, L, P> {
    /// The section that the squaring with number `squaring` reads of `2^squarings` entries.
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
    pub(super) fn tiles<T: Madd52<Limb = L>, const B: usize>(
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

/// The squarings read one section after the other.
impl<L: LaneLimb, const P: usize> Beside<L> for Section<'_, L, P> {
    const NUMBERS: usize = P;

    #[inline(always)]
    fn interleaved<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) -> impl Interleaved<T> {
        self.tiles::<T, B>(t, 0)
    }
}

/// The number of the first entry that squaring `squaring` reads. The last squaring may read some
/// entries a second time, which has no effect.
#[inline(always)]
pub(super) fn first_of(squaring: usize, entries: usize) -> usize {
    (squaring * SECTION_LEN).min(entries - SECTION_LEN)
}

/// The entries of a table from number `first` on, and for each of them the lanes whose digit it is.
#[inline(always)]
fn entries_from<T: Madd52, E>(
    t: T,
    digits: [u8; MAX_LANES],
    first: usize,
    table: &[E],
    stride: usize,
) -> ([T::Mask; SECTION_LEN], [&E; SECTION_LEN]) {
    let table = &table[first * stride..];
    let mut entries = [&table[0]; SECTION_LEN];
    unrolled!(SECTION_LEN, K, {
        entries[K] = &table[K * stride];
    });
    (masks_from(t, digits, first), entries)
}

/// Tiles of a [`Section`].
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
    masks: [T::Mask; SECTION_LEN],
    /// Those entries.
    entries: [&'a [[T::Limb; B]; P]; SECTION_LEN],
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
                if const {
                    let number = I * SECTION_LEN + K;
                    I < P && K < SECTION_LEN && number * B / (P * SECTION_LEN) == J
                } {
                    let out = &mut self.out[I][row];
                    if K == 0 {
                        self.picked = t.load(out);
                    }
                    self.picked = t.merge(self.picked, self.masks[K], &self.entries[K][I][row]);
                    if K + 1 == SECTION_LEN {
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
    fn sections_cover_the_largest_windows() {
        assert!(sections_suffice(LARGEST_WINDOW));
    }
}
