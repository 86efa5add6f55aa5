//! Powers of a fixed base, one in each lane: see [`fixed_base`](batch_modexp_core::fixed_base). The
//! trait of lanes is also for products of powers.

use core::{array, iter, mem, slice};

use batch_modexp_core::fixed_base::{Rows, Table};
use batch_modexp_core::powers::FixedPowers;
use batch_modexp_core::secret::scrubbed;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use super::workspace::{Buffer, Workspace};
use super::{LaneModulus, Lanes, MAX_LANES};

/// Lanes with the look-ups for fixed bases and products of powers.
///
/// [`PowerEngine`](batch_modexp_core::powers::PowerEngine) needs them.
pub(crate) trait PowerLanes: Lanes {
    /// The largest window, in bits, with which [`select_of_row`](Self::select_of_row) costs less time
    /// than the products it saves; measured.
    const LARGEST_ROW_WINDOW: u32;

    /// Copies entry `digits[lane]` of a row that all lanes share to `out` in every lane: see
    /// [`Table::rows`](batch_modexp_core::fixed_base::Table::rows). Reads the whole row in the same
    /// order for all digits. An entry has `out.len()` limbs.
    fn select_of_row(self, out: &mut [Self::Limb], row: &[u64], digits: &[u8]);

    /// The number of limbs of an [arranged](Self::arrange) table.
    fn arranged_len(limbs: usize, window: Window) -> usize {
        window.table_len() * limbs
    }

    /// Copies a table in the order in which [`mul_and_select`](Self::mul_and_select) reads it.
    fn arrange(self, out: &mut [Self::Limb], table: &[Self::Limb], window: Window) {
        let _ = window;
        out.copy_from_slice(table);
    }

    /// Like [`mul`](Lanes::mul), and a look-up that may be done along with it.
    fn mul_and_select(
        self,
        out: &mut [Self::Limb],
        a: &[Self::Limb],
        b: &[Self::Limb],
        modulus: LaneModulus<'_, Self::Limb>,
        scratch: &mut [Self::Limb],
        selection: Selection<'_, Self::Limb>,
    ) {
        let arranged_len = Self::arranged_len(selection.out.len(), selection.window);
        debug_assert_eq!(selection.table.len(), arranged_len);
        self.mul(out, a, b, modulus, scratch);
        self.select(selection.out, selection.table, selection.digits);
    }
}

/// A look-up: see [`Lanes::select`].
pub(crate) struct Selection<'a, L> {
    pub(crate) out: &'a mut [L],
    /// An [arranged](PowerLanes::arrange) table.
    pub(crate) table: &'a [L],
    pub(crate) window: Window,
    pub(crate) digits: &'a [u8],
}

/// How many groups of lanes are computed together, row by row. Each row is read from memory once
/// for all of them: with many groups, most look-ups find it in the second-level cache.
const AT_A_TIME: usize = 128;

/// Fills a table, with one row in each lane. Entries of row 0 are `first`, an ordinary number,
/// times a power of `base`.
pub(crate) fn fill<L: Lanes>(lanes: L, table: &mut Table, base: &[Limb], first: &[Limb]) {
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let limbs = table.form().limbs;
        let (mut rows, modulus) = table.rows_mut();
        let mut workspace = Workspace::new(lanes, limbs);
        workspace.prepare_for_powers(slice::from_ref(&modulus));
        let mut bases = Buffer::zeros(rows.count().div_ceil(L::COUNT) * limbs);
        workspace.row_bases(base, rows.window_bits(), rows.count(), &mut bases);

        let mut entry_0 = Buffer::zeros(limbs);
        for (group, base) in bases.chunks_exact(limbs).enumerate() {
            workspace.first_entries(first, group == 0, &mut entry_0);
            workspace.operands().value.copy_from_slice(&entry_0);
            for entry in 0..rows.entries() {
                for (i, digit) in workspace.reduced_value().iter().enumerate() {
                    let (limb, row) = (i / L::COUNT, group * L::COUNT + i % L::COUNT);
                    if row < rows.count() {
                        rows.set(row, entry, limb, *digit);
                    }
                }
                let mut x = workspace.operands();
                x.multiply(base);
                x.end();
            }
        }
    });
}

impl<L: Lanes> Workspace<'_, L> {
    /// Writes `base^(2^(window_bits * row))` of each row to its lane, in Montgomery form.
    fn row_bases(&mut self, base: &[Limb], window_bits: u32, rows: usize, bases: &mut [L::Limb]) {
        let limbs = self.limbs();
        self.load(|_| base);
        let mut x = self.operands();
        x.convert_to_montgomery();
        x.end();
        for row in 0..rows {
            let group = &mut bases[row / L::COUNT * limbs..][..limbs];
            let digits = self.reduced_value().chunks_exact(L::COUNT);
            for (limb, digits) in group.iter_mut().zip(digits) {
                L::set_lane(limb, row % L::COUNT, digits[0]);
            }
            let mut x = self.operands();
            x.square(window_bits);
            x.end();
        }
    }

    /// The entry for the digit 0: one in Montgomery form, and `first` in the lane of row 0.
    fn first_entries(&mut self, first: &[Limb], has_row_0: bool, entry: &mut [L::Limb]) {
        let mut x = self.operands();
        x.set_one();
        entry.copy_from_slice(x.value);
        if has_row_0 {
            self.load(|_| first);
            let digits = self.reduced_value().chunks_exact(L::COUNT);
            for (limb, digits) in entry.iter_mut().zip(digits) {
                L::set_lane(limb, 0, digits[0]);
            }
        }
    }
}

/// Computes the powers of a request by a table of these lanes.
pub(crate) fn powers<L: PowerLanes>(lanes: L, powers: FixedPowers<'_, '_>) {
    let FixedPowers {
        table,
        exponents,
        exponent_bits,
        out,
    } = powers;
    if exponents.is_empty() {
        return;
    }
    scrubbed(|| {
        let mut workspace = Workspace::new(lanes, table.form().limbs);
        workspace.import_moduli(&[table.modulus()]);
        let most = exponents.len().div_ceil(L::COUNT).min(AT_A_TIME);
        let mut groups = Groups::new(table, exponent_bits, most, workspace);
        let parts = exponents.chunks(most * L::COUNT);
        for (exponents, out) in parts.zip(out.chunks_mut(most * L::COUNT)) {
            groups.load(exponents);
            groups.multiply(exponents.len().div_ceil(L::COUNT));
            groups.store(out);
        }
    });
}

/// Copies the entry of each lane's public digit to the lane. By [`gather`](super::convert::gather), a
/// power of 1024 bits takes 6 % longer on a Zen 5.
fn copy_entries<L: Lanes>(out: &mut [L::Limb], rows: &Rows<&[u64]>, row: usize, digits: &[u8]) {
    let limbs = out.len();
    let entries: [_; MAX_LANES] = array::from_fn(|lane| match digits.get(lane) {
        Some(digit) => &rows.entry(row, *digit)[..limbs],
        None => &[],
    });
    // Limb by limb, so that consecutive stores go to one cache line.
    for (i, limb) in out.iter_mut().enumerate() {
        for (lane, entry) in entries[..L::COUNT].iter().enumerate() {
            L::set_lane(limb, lane, entry[i]);
        }
    }
}

/// Groups of lanes that are computed together, row by row.
struct Groups<'a, L: PowerLanes> {
    table: &'a Table,
    exponent_bits: u32,
    /// For each group and each row, the digits of all lanes.
    digits: Buffer<u8>,
    /// The digits of one exponent.
    recoded: Buffer<u8>,
    /// One number for each group.
    values: Buffer<L::Limb>,
    /// The place for the next product; swapped with `values`. Nothing is copied: see
    /// [`Lanes::step`].
    spare: Buffer<L::Limb>,
    workspace: Workspace<'a, L>,
}

impl<'a, L: PowerLanes> Groups<'a, L> {
    fn new(
        table: &'a Table,
        exponent_bits: u32,
        groups: usize,
        workspace: Workspace<'a, L>,
    ) -> Self {
        let (rows, limbs) = (table.digit_count(exponent_bits), table.form().limbs);
        Self {
            table,
            exponent_bits,
            digits: Buffer::zeros(groups * rows * L::COUNT),
            recoded: Buffer::zeros(rows),
            values: Buffer::zeros(groups * limbs),
            spare: Buffer::zeros(groups * limbs),
            workspace,
        }
    }

    /// Recodes exponents, one for each lane; unused lanes repeat the last one.
    fn load(&mut self, exponents: &[&[Limb]]) {
        let rows = self.recoded.len();
        let last = iter::repeat(exponents[exponents.len() - 1]);
        let groups = exponents.len().div_ceil(L::COUNT);
        let exponents = exponents.iter().copied().chain(last);
        for (i, exponent) in exponents.take(groups * L::COUNT).enumerate() {
            let (group, lane) = (i / L::COUNT, i % L::COUNT);
            self.table
                .recode(exponent, self.exponent_bits, &mut self.recoded);
            let digits = self.digits[group * rows * L::COUNT..].chunks_exact_mut(L::COUNT);
            for (digits, digit) in digits.zip(&*self.recoded) {
                digits[lane] = *digit;
            }
        }
    }

    /// Multiplies an entry of each row, from the last row to row 0.
    fn multiply(&mut self, groups: usize) {
        let (rows, limbs) = (self.recoded.len(), self.table.form().limbs);
        let table = self.table.rows();
        let (lanes, x) = (self.workspace.lanes, self.workspace.operands());
        for row in (0..rows).rev() {
            let is_first = row + 1 == rows;
            for group in 0..groups {
                let of_row = |row| &self.digits[(group * rows + row) * L::COUNT..][..L::COUNT];
                let digits = of_row(row);
                if table.are_public() && row > 0 {
                    // A large table is in no near cache. It is loaded while products are computed.
                    for digit in of_row(row - 1) {
                        prefetch(table.entry(row - 1, *digit));
                    }
                }
                let number = group * limbs..(group + 1) * limbs;
                let (value, out) = (&self.values[number.clone()], &mut self.spare[number]);
                let factor = if is_first { &mut *out } else { &mut *x.entry };
                if !table.are_public() {
                    lanes.select_of_row(factor, table.row(row), digits);
                } else if is_first || row == 0 || digits.iter().any(|digit| *digit != 0) {
                    copy_entries::<L>(factor, &table, row, digits);
                } else {
                    // Except in row 0, the entry of a digit 0 is 1.
                    out.copy_from_slice(value);
                    continue;
                }
                if !is_first {
                    lanes.mul(out, value, x.entry, x.modulus, x.scratch);
                }
            }
            mem::swap(&mut self.values, &mut self.spare);
        }
    }

    /// Exports a power to each place.
    fn store(&mut self, out: &mut [&mut [Limb]]) {
        let limbs = self.table.form().limbs;
        let values = self.values.chunks_exact(limbs);
        for (value, out) in values.zip(out.chunks_mut(L::COUNT)) {
            self.workspace.operands().value.copy_from_slice(value);
            self.workspace.store(out.iter_mut().map(|out| &mut **out));
        }
    }
}

/// Words in a cache line of x86-64.
#[cfg(target_arch = "x86_64")]
const LINE_WORDS: usize = 8;

/// Starts to load words into the second-level cache, on x86-64. Results never depend on it. The
/// addresses must be public.
#[inline]
#[allow(unsafe_code)]
fn prefetch(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    for word in words.iter().step_by(LINE_WORDS).chain(words.last()) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has SSE. The address is that of a word.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(core::ptr::from_ref(word).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = words;
}
