//! The rows of a table, and look-ups in them.

use crate::window::Window;

/// The shape of all rows.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) limbs: usize,
    pub(super) window: Window,
    /// The number of rows.
    pub(super) count: usize,
    pub(super) are_public: bool,
}

impl Layout {
    /// The number of words of all rows.
    pub(super) fn words(self) -> usize {
        self.count * self.row_words()
    }

    #[inline]
    fn row_words(self) -> usize {
        self.window.table_len() * self.limbs
    }

    /// The distance in words from an entry to the next one, and from a limb to the next one.
    fn strides(self) -> [usize; 2] {
        match self.are_public {
            true => [self.limbs, 1],
            false => [1, self.window.table_len()],
        }
    }
}

/// The rows of a table: see [`Table::rows`](super::Table::rows).
pub struct Rows<W> {
    pub(super) words: W,
    pub(super) layout: Layout,
}

impl<W> Rows<W> {
    /// The number of rows.
    pub fn count(&self) -> usize {
        self.layout.count
    }

    /// The number of entries in each row.
    pub fn entries(&self) -> usize {
        self.layout.window.table_len()
    }

    /// Bits in a digit.
    pub fn window_bits(&self) -> u32 {
        self.layout.window.bits()
    }

    /// Whether digits are public. They may then be indices: see [`entry`](Rows::entry).
    #[inline]
    pub fn are_public(&self) -> bool {
        self.layout.are_public
    }
}

impl<'a> Rows<&'a [u64]> {
    /// All words of a row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [u64] {
        let len = self.layout.row_words();
        &self.words[row * len..][..len]
    }

    /// The limbs of the entry of a public digit.
    ///
    /// # Panics
    ///
    /// If digits are secret.
    #[inline]
    #[must_use]
    pub fn entry(&self, row: usize, digit: u8) -> &'a [u64] {
        assert!(self.are_public(), "a secret digit is not an index");
        let limbs = self.layout.limbs;
        &self.row(row)[usize::from(digit) * limbs..][..limbs]
    }
}

impl Rows<&mut [u64]> {
    /// Sets a limb of an entry.
    pub fn set(&mut self, row: usize, entry: usize, limb: usize, value: u64) {
        let [entry_stride, limb_stride] = self.layout.strides();
        let start = row * self.layout.row_words();
        self.words[start + entry * entry_stride + limb * limb_stride] = value;
    }
}

/// Passes each limb of entry `digit` of a row for secret digits to `put`. Reads the whole row in
/// the same order for every digit.
pub fn select(row: &[u64], entries: usize, digit: u8, mut put: impl FnMut(usize, u64)) {
    let mut masks = [0; 1 << Window::MAX_BITS];
    let masks = &mut masks[..entries];
    for (entry, mask) in (0u64..).zip(masks.iter_mut()) {
        // All ones if both are equal: only then is the difference minus 1 negative.
        let difference = entry ^ u64::from(digit);
        *mask = (difference.wrapping_sub(1) >> 63).wrapping_neg();
    }
    let masks = core::hint::black_box(masks);
    for (limb, words) in row.chunks_exact(entries).enumerate() {
        let pairs = words.iter().zip(&*masks);
        put(
            limb,
            pairs.fold(0, |picked, (word, mask)| picked | word & mask),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn every_entry_is_selected_by_its_digit() {
        for entries in [8usize, 64, 256] {
            let row: Vec<u64> = (0..3 * entries as u64).collect();
            for digit in 0..entries {
                let mut picked = Vec::new();
                select(&row, entries, digit as u8, |limb, word| {
                    picked.push((limb, word));
                });
                let expected = [0, 1, 2].map(|limb| (limb, (limb * entries + digit) as u64));
                assert_eq!(picked, expected);
            }
        }
    }

    #[test]
    fn both_layouts_return_what_was_set() {
        for are_public in [false, true] {
            let layout = Layout {
                limbs: 5,
                window: Window::new(3).unwrap(),
                count: 2,
                are_public,
            };
            let value = |row, entry, limb| (row * 1000 + entry * 10 + limb) as u64;
            let mut words = vec![0; layout.words()];
            let mut rows = Rows {
                words: &mut words[..],
                layout,
            };
            for (row, entry, limb) in places() {
                rows.set(row, entry, limb, value(row, entry, limb));
            }
            let rows = Rows {
                words: &words[..],
                layout,
            };
            for (row, entry, limb) in places() {
                let mut picked = 0;
                match are_public {
                    true => picked = rows.entry(row, entry as u8)[limb],
                    false => select(rows.row(row), 8, entry as u8, |of, word| {
                        if of == limb {
                            picked = word;
                        }
                    }),
                }
                assert_eq!(picked, value(row, entry, limb));
            }
        }
    }

    fn places() -> impl Iterator<Item = (usize, usize, usize)> {
        (0..2 * 8 * 5).map(|place| (place / 40, place / 5 % 8, place % 5))
    }

    #[test]
    #[should_panic(expected = "a secret digit is not an index")]
    fn secret_digits_are_no_indices() {
        let layout = Layout {
            limbs: 1,
            window: Window::new(3).unwrap(),
            count: 1,
            are_public: false,
        };
        let words = &[0; 8][..];
        let _ = Rows { words, layout }.entry(0, 1);
    }
}
