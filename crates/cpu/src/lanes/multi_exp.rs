//! Products of powers, one in each lane. All terms share the squarings: see
//! [`MultiPowers`](batch_modexp_core::powers::MultiPowers).

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use batch_modexp_core::powers::MultiPowers;
use batch_modexp_core::width::scrubbed;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use super::Lanes;
use super::ladder::{LARGEST_WINDOW, recode, window};
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
        let mut terms = Terms::new(lanes, L::limb_count(bits), powers.exponent_bits);
        let MultiPowers { moduli, out, .. } = powers;
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let instance = |lane: usize| start + lane.min(group.len() - 1);
            terms.workspace.prepare_for_powers(group);
            for term in 0..terms.lengths.len() {
                let count = terms.lengths.len();
                terms.load(term, |lane| powers.terms[instance(lane) * count + term]);
            }
            terms.multiply();
            let out = out[start..][..group.len()].iter_mut().map(|out| &mut **out);
            terms.workspace.store(out);
        }
    });
}

/// The terms of the products of a group of lanes.
struct Terms<'a, L: Lanes> {
    window: Window,
    /// The exponent length of each term, in bits.
    lengths: &'a [u32],
    /// The term with the longest exponent. Its table is that of the workspace, so that the ladder
    /// takes its steps as for one power.
    longest: usize,
    /// For each other term, the table of powers of its bases.
    tables: Buffer<L::Limb>,
    /// For each term and each digit position of the longest exponent, the digits of all lanes.
    digits: Buffer<u8>,
    /// The digits of one exponent.
    recoded: Buffer<u8>,
    workspace: Workspace<'a, L>,
}

impl<'a, L: Lanes> Terms<'a, L> {
    fn new(lanes: L, limbs: usize, lengths: &'a [u32]) -> Self {
        let longest = (0..lengths.len()).max_by_key(|term| lengths[*term]);
        let longest = longest.unwrap_or(0);
        let bits = lengths.get(longest).copied().unwrap_or(0);
        let window = window::<L>(bits, LARGEST_WINDOW);
        let digits = window.digit_count(bits);
        let others = lengths.len().saturating_sub(1);
        Self {
            window,
            lengths,
            longest,
            tables: Buffer::zeros(others * window.table_len() * limbs),
            digits: Buffer::zeros(lengths.len() * digits * L::COUNT),
            recoded: Buffer::zeros(digits),
            workspace: Workspace::with_table(lanes, limbs, window),
        }
    }

    /// The place of a term's table among those of the terms but the longest.
    fn table(&self, term: usize) -> Range<usize> {
        let len = self.window.table_len() * self.workspace.limbs();
        let place = term - usize::from(term > self.longest);
        place * len..(place + 1) * len
    }

    /// Fills the table of a term and recodes its exponents.
    fn load<'n>(&mut self, term: usize, numbers: impl Fn(usize) -> [&'n [Limb]; 2]) {
        let count = self.window.digit_count(self.lengths[term]);
        let recoded = &mut self.recoded[..count];
        let len = self.digits.len() / self.lengths.len();
        let digits = &mut self.digits[term * len..][..len];
        let exponent = |lane| numbers(lane)[1];
        recode::<L>(exponent, self.lengths[term], self.window, recoded, digits);

        self.workspace.load(|lane| numbers(lane)[0]);
        let (lanes, limbs) = (self.workspace.lanes, self.workspace.limbs());
        let table = self.table(term);
        let mut x = self.workspace.operands();
        if term == self.longest {
            x.fill_table();
            lanes.extend_entries(&mut x);
        } else {
            x.entry = &mut mem::take(&mut x.entry)[..limbs];
            x.table = &mut self.tables[table];
            x.fill_table();
        }
    }

    /// The ladder, from the highest digit of the longest exponent: a step for that one, and a product
    /// for each other term that has the digit. The order of operations depends only on the lengths.
    fn multiply(&mut self) {
        let digits_len = self.digits.len() / self.lengths.len().max(1);
        let tables: Vec<_> = (0..self.lengths.len())
            .map(|term| self.table(term))
            .collect();
        let (lanes, mut x) = (self.workspace.lanes, self.workspace.operands());
        x.set_one();
        for digit in (0..self.recoded.len()).rev() {
            let of_term =
                |term: usize| &self.digits[term * digits_len + digit * L::COUNT..][..L::COUNT];
            lanes.step(self.window.bits(), of_term(self.longest), &mut x);
            for (term, bits) in self.lengths.iter().enumerate() {
                if term != self.longest && digit < self.window.digit_count(*bits) {
                    let table = &self.tables[tables[term].clone()];
                    lanes.select(x.factor, table, of_term(term));
                    x.multiply_by_factor();
                }
            }
        }
        x.leave();
    }
}
