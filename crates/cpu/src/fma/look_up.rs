//! The look-ups: in a table with an entry for each lane, and in a row that all lanes share.

use core::array;

use super::fma51::{Fma51, Kernel, Limb};

/// The number of limbs that are looked up together.
const AT_A_TIME: usize = 8;

/// See [`Lanes::select`](crate::lanes::Lanes::select).
pub(super) struct Select<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) table: &'a [Limb],
    pub(super) digits: &'a Limb,
}

impl Kernel for Select<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let digits = t.load_sums(self.digits);
        let limbs = self.out.len();
        let (groups, rest) = self.out.as_chunks_mut::<AT_A_TIME>();
        let mut start = 0;
        for out in groups {
            select(t, out, &self.table[start..], limbs, digits);
            start += AT_A_TIME;
        }
        for out in rest {
            select(t, array::from_mut(out), &self.table[start..], limbs, digits);
            start += 1;
        }
    }
}

/// Picks `G` limbs from entries of `limbs` limbs, by the digit of each lane.
#[inline(always)]
fn select<T: Fma51, const G: usize>(
    t: T,
    out: &mut [Limb; G],
    table: &[Limb],
    limbs: usize,
    digits: T::Sums,
) {
    let mut picked = [t.splat(0); G];
    for (entry, rest) in (0..).zip(table.chunks(limbs)) {
        let group: &[Limb; G] = rest.first_chunk().expect("an entry has all its limbs");
        for (picked, limb) in picked.iter_mut().zip(group) {
            *picked = t.pick(*picked, limb, digits, entry);
        }
    }
    for (out, picked) in out.iter_mut().zip(picked) {
        t.store_sums(out, picked);
    }
}

/// See [`PowerLanes::select_of_row`](crate::lanes::PowerLanes::select_of_row). Each word is copied to all
/// lanes, and kept in those whose digit is its entry.
pub(super) struct SelectOfRow<'a> {
    pub(super) out: &'a mut [Limb],
    pub(super) row: &'a [u64],
    pub(super) digits: &'a Limb,
}

impl Kernel for SelectOfRow<'_> {
    #[inline(always)]
    fn run<T: Fma51>(self, t: T) {
        let digits = t.load_sums(self.digits);
        let entries = self.row.len() / self.out.len();
        let (groups, rest) = self.out.as_chunks_mut::<AT_A_TIME>();
        let (rows, rest_of_row) = self.row.split_at(groups.len() * AT_A_TIME * entries);
        for (out, words) in groups
            .iter_mut()
            .zip(rows.chunks_exact(AT_A_TIME * entries))
        {
            select_of_row(t, out, words, digits);
        }
        for (out, words) in rest.iter_mut().zip(rest_of_row.chunks_exact(entries)) {
            select_of_row(t, array::from_mut(out), words, digits);
        }
    }
}

/// Picks `G` limbs, one from each of `G` parts of a row.
#[inline(always)]
fn select_of_row<T: Fma51, const G: usize>(
    t: T,
    out: &mut [Limb; G],
    words: &[u64],
    digits: T::Sums,
) {
    let entries = words.len() / G;
    let mut picked = [t.splat(0); G];
    for entry in 0..entries {
        for (limb, picked) in picked.iter_mut().enumerate() {
            let word = Limb([words[limb * entries + entry]; 4]);
            *picked = t.pick(*picked, &word, digits, entry as u64);
        }
    }
    for (out, picked) in out.iter_mut().zip(picked) {
        t.store(out, t.limb(picked));
    }
}
