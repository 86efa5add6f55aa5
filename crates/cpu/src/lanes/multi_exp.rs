//! Products of powers, one in each lane. All terms share the squarings: see
//! [`MultiPowers`](batch_modexp_core::powers::MultiPowers).

use core::mem;

use batch_modexp_core::powers::MultiPowers;
use batch_modexp_core::width::scrubbed;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use super::pow::{LARGEST_WINDOW, recode, window};
use super::products::each_lane;
use super::workspace::{Buffer, Operands, Workspace, set_one};
use super::{Lanes, Table, fill_table};

/// Computes the products of a request. Source: E. G. Straus, "Addition chains of vectors", American
/// Mathematical Monthly 71, 1964; Handbook of Applied Cryptography, algorithm 14.88, with a table
/// for each base instead of one for all.
pub(crate) fn powers<L: Lanes>(lanes: L, powers: MultiPowers<'_, '_>) {
    let Some(first) = powers.moduli.first() else {
        return;
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let bits = first.bits();
        let workspace = Workspace::new(lanes, L::limb_count(bits));
        let mut terms = Terms::new(powers.exponent_bits, workspace);
        let MultiPowers { moduli, out, .. } = powers;
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let instance = |lane: usize| start + lane.min(group.len() - 1);
            terms.workspace.prepare_moduli(&each_lane(group));
            for term in 0..terms.lengths.len() {
                let count = terms.lengths.len();
                terms.load(term, bits, |lane| {
                    powers.terms[instance(lane) * count + term]
                });
            }
            terms.multiply();
            let out = out[start..][..group.len()].iter_mut().map(|out| &mut **out);
            terms.workspace.store(bits, out);
        }
    });
}

/// The terms of the products of a group of lanes.
struct Terms<'a, L: Lanes> {
    window: Window,
    /// The exponent length of each term, in bits.
    lengths: &'a [u32],
    /// For each term, the table of powers of its bases.
    tables: Buffer<L::Limb>,
    /// For each term and each digit position of the longest exponent, the digits of all lanes.
    digits: Buffer<u8>,
    /// The digits of one exponent.
    recoded: Buffer<u8>,
    workspace: Workspace<L>,
}

impl<'a, L: Lanes> Terms<'a, L> {
    fn new(lengths: &'a [u32], workspace: Workspace<L>) -> Self {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let window = window::<L>(longest, LARGEST_WINDOW);
        let digits = window.digit_count(longest);
        let table = window.table_len() * workspace.limbs();
        Self {
            window,
            lengths,
            tables: Buffer::zeros(lengths.len() * table),
            digits: Buffer::zeros(lengths.len() * digits * L::COUNT),
            recoded: Buffer::zeros(digits),
            workspace,
        }
    }

    /// Fills the table of a term and recodes its exponents.
    fn load<'n>(&mut self, term: usize, width: u32, numbers: impl Fn(usize) -> [&'n [Limb]; 2]) {
        let count = self.window.digit_count(self.lengths[term]);
        let recoded = &mut self.recoded[..count];
        let len = self.digits.len() / self.lengths.len();
        let digits = &mut self.digits[term * len..][..len];
        let exponent = |lane| numbers(lane)[1];
        recode::<L>(exponent, self.lengths[term], self.window, recoded, digits);

        let lanes = self.workspace.lanes;
        self.workspace.load(|lane| numbers(lane)[0], width, 0);
        let (
            modulus,
            Operands {
                r2,
                value,
                spare,
                factor,
                scratch,
                ..
            },
        ) = self.workspace.parts();
        set_one::<L>(factor);
        lanes.mul(spare, r2, factor, modulus, scratch);
        lanes.mul(factor, r2, value, modulus, scratch);
        let len = self.tables.len() / self.lengths.len();
        let table = Table {
            entries: &mut self.tables[term * len..][..len],
            entry_len: value.len(),
            one: spare,
            base: factor,
            spare: value,
        };
        fill_table(lanes, table, modulus, scratch);
    }

    /// The ladder, from the highest digit of the longest exponent: squarings, and a product for
    /// each term that has the digit. The order of operations depends only on the lengths.
    fn multiply(&mut self) {
        let lanes = self.workspace.lanes;
        let count = self.lengths.len().max(1);
        let (table_len, digits_len) = (self.tables.len() / count, self.digits.len() / count);
        let (
            modulus,
            Operands {
                r2,
                mut value,
                mut spare,
                factor,
                entry,
                scratch,
                ..
            },
        ) = self.workspace.parts();
        set_one::<L>(factor);
        lanes.mul(value, r2, factor, modulus, scratch);
        for digit in (0..self.recoded.len()).rev() {
            (value, spare) = lanes.square_times(value, spare, self.window.bits(), modulus, scratch);
            for (term, bits) in self.lengths.iter().enumerate() {
                if digit < self.window.digit_count(*bits) {
                    let table = &self.tables[term * table_len..][..table_len];
                    let digits = &self.digits[term * digits_len + digit * L::COUNT..][..L::COUNT];
                    lanes.select(entry, table, digits);
                    lanes.mul(spare, value, entry, modulus, scratch);
                    mem::swap(&mut value, &mut spare);
                }
            }
        }
        // Leaves Montgomery form.
        set_one::<L>(factor);
        lanes.mul(spare, value, factor, modulus, scratch);
        // Both buffers get the result, since they may have been swapped.
        value.copy_from_slice(spare);
    }
}
