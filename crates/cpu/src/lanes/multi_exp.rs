//! Products of powers, one in each lane. All terms share the squarings: see
//! [`MultiPowers`](batch_modexp_core::powers::MultiPowers).

use core::mem;

use batch_modexp_core::powers::MultiPowers;
use batch_modexp_core::width::scrubbed;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use super::Lanes;
use super::pow::{LARGEST_WINDOW, recode, window};
use super::workspace::{Buffer, Workspace};

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
            terms.workspace.prepare_powers(group);
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
    workspace: Workspace<'a, L>,
}

impl<'a, L: Lanes> Terms<'a, L> {
    fn new(lengths: &'a [u32], workspace: Workspace<'a, L>) -> Self {
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

        self.workspace.load(|lane| numbers(lane)[0], width, 0);
        let len = self.tables.len() / self.lengths.len();
        let mut x = self.workspace.operands();
        x.table = &mut self.tables[term * len..][..len];
        x.fill_table();
    }

    /// The ladder, from the highest digit of the longest exponent: squarings, and a product for
    /// each term that has the digit. The order of operations depends only on the lengths.
    fn multiply(&mut self) {
        let count = self.lengths.len().max(1);
        let (table_len, digits_len) = (self.tables.len() / count, self.digits.len() / count);
        let (lanes, mut x) = (self.workspace.lanes, self.workspace.operands());
        x.set_one();
        for digit in (0..self.recoded.len()).rev() {
            x.square(self.window.bits());
            for (term, bits) in self.lengths.iter().enumerate() {
                if digit < self.window.digit_count(*bits) {
                    let table = &self.tables[term * table_len..][..table_len];
                    let digits = &self.digits[term * digits_len + digit * L::COUNT..][..L::COUNT];
                    lanes.select(x.entry, table, digits);
                    lanes.mul(x.spare, x.value, x.entry, x.modulus, x.scratch);
                    mem::swap(&mut x.value, &mut x.spare);
                }
            }
        }
        x.leave();
    }
}
