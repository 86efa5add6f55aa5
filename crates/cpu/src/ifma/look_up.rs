//! The table look-up, alone or a few entries beside each row of a reduction.
//!
//! All entries are read in the same order for all digits. They are merged under masks that select
//! the lanes whose digit is the entry. Loads merge into registers; masked stores would be faster on
//! some of Intel's processors, but take a time that depends on the masks (`docs/ifma.md`).

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use core::slice;

use super::kernel::{self, Beside, Interleaved, unrolled};
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

/// The number of limbs of a table of `entries` entries in the order of [`arrange`].
pub(super) fn arranged_len(limbs: usize, entries: usize) -> usize {
    entries.div_ceil(SECTION_LEN) * SECTION_LEN * limbs
}

/// Copies a table of entries of `limbs` limbs in the order in which [`SelectBeside`] reads it:
/// section by section, and for each limb the entries of the section. The last section repeats some
/// entries.
pub(super) fn arrange<L: Copy>(out: &mut [L], table: &[L], limbs: usize) {
    let entries = table.len() / limbs;
    for (section, out) in out.chunks_exact_mut(SECTION_LEN * limbs).enumerate() {
        let table = &table[first_of(section, entries) * limbs..];
        for (number, entry) in table.chunks_exact(limbs).take(SECTION_LEN).enumerate() {
            for (out, limb) in out.as_chunks_mut::<SECTION_LEN>().0.iter_mut().zip(entry) {
                out[number] = *limb;
            }
        }
    }
}

/// A look-up beside a multiplication, in a table that was [arranged](arrange) for it: memory is read
/// from the start to the end.
pub(super) struct SelectBeside<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    /// The number of entries.
    pub(super) entries: usize,
    pub(super) digits: [u8; MAX_LANES],
}

impl<L: Limb> Beside<L> for SelectBeside<'_, L> {
    const NUMBERS: usize = 1;

    #[inline(always)]
    fn interleaved<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) -> impl Interleaved<T> {
        self.out.fill(L::ZERO);
        let tiles = self.out.len() / B;
        let mut table = self.table.as_chunks().0.as_chunks().0.iter();
        Scan::<T, B> {
            digits: self.digits,
            entries: self.entries,
            current: table.next().expect("a table with entries"),
            rest: table,
            out: self.out.as_chunks_mut().0,
            place: 0,
            section: 0,
            tiles,
            rows: tiles,
            of_last_row: (0..PART).step_by(tiles).map(|limb| 1 << limb).sum(),
            of_row: 0,
            masks: masks_from(t, self.digits, 0),
        }
    }
}

/// How many limbs of a section are looked up in as many rows as there are tiles, so that five
/// sections are in the rows of a multiplication. Divides the length of a tile.
const PART: usize = 5;

/// Some limbs of the entries of a section.
type Part<L> = [[L; SECTION_LEN]; PART];

/// The work of a [`SelectBeside`].
struct Scan<'a, T: Madd52, const B: usize> {
    digits: [u8; MAX_LANES],
    /// The number of entries.
    entries: usize,
    current: &'a Part<T::Limb>,
    /// The parts after the current one.
    rest: slice::Iter<'a, Part<T::Limb>>,
    out: &'a mut [[T::Limb; PART]],
    /// The place of the current part in `out`.
    place: usize,
    section: usize,
    /// The number of tiles of `out`.
    tiles: usize,
    /// After how many rows the current part is complete.
    rows: usize,
    /// A bit for each limb of the part that its last row looks up. In the row before, these are the
    /// limbs after them.
    of_last_row: u32,
    /// Such bits for the current row.
    of_row: u32,
    /// The lanes whose digits are the entries of the section.
    masks: [T::Mask; SECTION_LEN],
}

impl<'a, T: Madd52, const B: usize> Scan<'a, T, B> {
    /// Looks up limb `i` of the current part if this row is to.
    #[inline(always)]
    fn limb(&mut self, t: T, i: usize) {
        if self.of_row & 1 << i != 0 {
            let out = &mut self.out[self.place][i];
            let mut picked = t.load(out);
            unrolled!(SECTION_LEN, K, {
                picked = t.merge(picked, self.masks[K], &self.current[i][K]);
            });
            t.store(out, picked);
        }
    }

    #[inline(always)]
    fn go_to(&mut self, t: T, part: &'a Part<T::Limb>) {
        self.current = part;
        self.place += 1;
        if self.place == self.out.len() {
            self.place = 0;
            self.section += 1;
            self.masks = masks_from(t, self.digits, first_of(self.section, self.entries));
        }
    }
}

impl<T: Madd52, const B: usize> Interleaved<T> for Scan<'_, T, B> {
    #[inline(always)]
    fn begin(&mut self, _: T, _: usize) {}

    #[inline(always)]
    fn part<const J: usize>(&mut self, t: T, _: usize) {
        if J == 0 {
            if self.rows == 0 {
                self.rows = self.tiles;
                match self.rest.next() {
                    Some(next) => self.go_to(t, next),
                    None => self.of_last_row = 0,
                }
            }
            self.rows -= 1;
            self.of_row = self.of_last_row << self.rows;
        }
        unrolled!(P, {
            // Known at compile time, as in `Rows`.
            if const { P * B / PART == J } {
                self.limb(t, P);
            }
        }, 0 1 2 3 4);
    }
}

/// For each of the entries from number `first` on, the lanes whose digit it is.
#[inline(always)]
fn masks_from<T: Madd52>(t: T, digits: [u8; MAX_LANES], first: usize) -> [T::Mask; SECTION_LEN] {
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

impl<'a, L: Limb, const P: usize> Section<'a, L, P> {
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
impl<L: Limb, const P: usize> Beside<L> for Section<'_, L, P> {
    const NUMBERS: usize = P;

    #[inline(always)]
    fn interleaved<T: Madd52<Limb = L>, const B: usize>(&mut self, t: T) -> impl Interleaved<T> {
        self.tiles::<T, B>(t, 0)
    }
}

/// The number of the first entry that squaring `squaring` reads. The last squaring may read some
/// entries a second time, which has no effect.
#[inline(always)]
fn first_of(squaring: usize, entries: usize) -> usize {
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
