//! The look-ups for fixed bases, and for products of powers beside the multiplications.

#![allow(clippy::out_of_bounds_indexing)] // In bodies of `unrolled!` that are left out.

use core::slice;

use batch_modexp_core::window::Window;

use super::kernel::{self, Beside, Interleaved};
use super::lanes52::{Lanes52, of_lanes};
use super::look_up::{SECTION_LEN, first_of, masks_from, sections_suffice};
use super::madd52::{self, Kernel, LaneLimb, Madd52, unrolled};
use super::tiles::Mul;
use crate::lanes::{LaneModulus, Lanes, MAX_LANES, PowerLanes, Selection};

impl<T: Madd52> PowerLanes for Lanes52<T> {
    const LARGEST_ROW_WINDOW: u32 = 6;

    fn select_of_row(self, out: &mut [T::Limb], row: &[u64], digits: &[u8]) {
        let limbs = out.len();
        let mut select = SelectOfRow {
            out,
            row,
            digits: of_lanes::<T>(digits),
        };
        madd52::dispatch(self.0, limbs, &mut select);
    }

    fn arranged_len(limbs: usize, window: Window) -> usize {
        let entries = window.table_len();
        match selects_beside::<T>(limbs, window) {
            true => entries.next_multiple_of(SECTION_LEN) * limbs,
            false => entries * limbs,
        }
    }

    /// Section by section, and for each limb the entries of the section. The last section repeats
    /// some entries.
    fn arrange(self, out: &mut [T::Limb], table: &[T::Limb], window: Window) {
        let entries = window.table_len();
        let limbs = table.len() / entries;
        if !selects_beside::<T>(limbs, window) {
            return out.copy_from_slice(table);
        }
        for (section, out) in out.chunks_exact_mut(SECTION_LEN * limbs).enumerate() {
            let table = &table[first_of(section, entries) * limbs..];
            for (number, entry) in table.chunks_exact(limbs).take(SECTION_LEN).enumerate() {
                for (out, limb) in out.as_chunks_mut::<SECTION_LEN>().0.iter_mut().zip(entry) {
                    out[number] = *limb;
                }
            }
        }
    }

    fn mul_and_select(
        self,
        out: &mut [T::Limb],
        a: &[T::Limb],
        b: &[T::Limb],
        modulus: LaneModulus<'_, T::Limb>,
        scratch: &mut [T::Limb],
        selection: Selection<'_, T::Limb>,
    ) {
        let (limbs, window) = (selection.out.len(), selection.window);
        if !selects_beside::<T>(limbs, window) {
            self.mul(out, a, b, modulus, scratch);
            return self.select(selection.out, selection.table, selection.digits);
        }
        let mut mul = Mul {
            out,
            a,
            b,
            modulus: &modulus,
            scratch,
            work: SelectBeside {
                out: selection.out,
                table: selection.table,
                entries: window.table_len(),
                digits: of_lanes::<T>(selection.digits),
            },
        };
        madd52::dispatch(self.0, limbs, &mut mul);
    }
}

/// Whether a number is looked up beside a multiplication, for which there is code with some tiles.
/// With short numbers more entries are read than the multiplication hides.
fn selects_beside<T: Madd52>(limbs: usize, window: Window) -> bool {
    let has_code = madd52::keeps_columns::<T>(madd52::tile_len::<T>(limbs));
    has_code && limbs >= 20 && sections_suffice(window.bits())
}

/// The look-up in a row. A vector holds one word of as many entries as there are lanes. Each lane
/// takes its word by a permutation in registers, whose time does not depend on the indices
/// (M. Hamburg, "Accelerating AES with vector permute instructions", CHES 2009). A mask tells
/// whether the lane's entry is among them.
struct SelectOfRow<'a, L> {
    out: &'a mut [L],
    row: &'a [u64],
    digits: [u8; MAX_LANES],
}

impl<L: LaneLimb> Kernel<L> for SelectOfRow<'_, L> {
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

/// A look-up beside a multiplication, in a table that was [arranged](PowerLanes::arrange) for it:
/// memory is read from the start to the end.
pub(super) struct SelectBeside<'a, L> {
    pub(super) out: &'a mut [L],
    pub(super) table: &'a [L],
    /// The number of entries.
    pub(super) entries: usize,
    pub(super) digits: [u8; MAX_LANES],
}

impl<L: LaneLimb> Beside<L> for SelectBeside<'_, L> {
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
            // Known at compile time, as in `look_up::Rows`.
            if const { P * B / PART == J } {
                self.limb(t, P);
            }
        }, 0 1 2 3 4);
    }
}
