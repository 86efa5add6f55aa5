//! Products of powers, one in each lane. All terms share the squarings: see
//! [`MultiPowers`](batch_modexp_core::powers::MultiPowers).

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use batch_modexp_core::powers::MultiPowers;
use batch_modexp_core::secret::scrubbed;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;

use super::fixed_base::{PowerLanes, Selection};
use super::ladder::{recode, window};
use super::workspace::{Buffer, Workspace};

/// Computes the products of a request. Source: E. G. Straus, "Addition chains of vectors", American
/// Mathematical Monthly 71, 1964; Handbook of Applied Cryptography, algorithm 14.88, with a table
/// for each base instead of one for all.
pub(crate) fn powers<L: PowerLanes>(lanes: L, powers: MultiPowers<'_, '_>) {
    let Some(first) = powers.moduli.first() else {
        return;
    };
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let bits = first.width();
        let mut terms = Terms::new(lanes, L::limb_count(bits), powers.exponent_bits);
        let MultiPowers { moduli, out, .. } = powers;
        for (group, start) in moduli.chunks(L::COUNT).zip((0..).step_by(L::COUNT)) {
            let instance = |lane: usize| start + lane.min(group.len() - 1);
            terms.workspace.prepare_for_powers(group);
            let count = terms.lengths.len();
            // The table of the longest term stays in the workspace.
            let longest = terms.longest;
            let others = (0..count).filter(|term| *term != longest);
            for term in others.chain((0..count).filter(|term| *term == longest)) {
                terms.load(term, |lane| powers.terms[instance(lane) * count + term]);
            }
            terms.multiply();
            let out = out[start..][..group.len()].iter_mut().map(|out| &mut **out);
            terms.workspace.store(out);
        }
    });
}

/// The terms of the products of a group of lanes.
struct Terms<'a, L: PowerLanes> {
    window: Window,
    /// The exponent length of each term, in bits.
    lengths: &'a [u32],
    /// The term with the longest exponent. Its table is that of the workspace, so that the ladder
    /// takes its steps as for one power.
    longest: usize,
    /// For each other term, the [arranged](PowerLanes::arrange) table of powers of its bases.
    tables: Buffer<L::Limb>,
    /// For each term and each digit position of the longest exponent, the digits of all lanes.
    digits: Buffer<u8>,
    /// The digits of one exponent.
    recoded: Buffer<u8>,
    /// An entry of a table for each lane.
    entry: Buffer<L::Limb>,
    workspace: Workspace<'a, L>,
}

impl<'a, L: PowerLanes> Terms<'a, L> {
    fn new(lanes: L, limbs: usize, lengths: &'a [u32]) -> Self {
        let longest = (0..lengths.len()).max_by_key(|term| lengths[*term]);
        let longest = longest.unwrap_or(0);
        let bits = lengths.get(longest).copied().unwrap_or(0);
        let window = window::<L>(bits);
        let digits = window.digit_count(bits);
        let others = lengths.len().saturating_sub(1);
        Self {
            window,
            lengths,
            longest,
            tables: Buffer::zeros(others * L::arranged_len(limbs, window)),
            digits: Buffer::zeros(lengths.len() * digits * L::COUNT),
            recoded: Buffer::zeros(digits),
            entry: Buffer::zeros(limbs),
            workspace: Workspace::with_table(lanes, limbs, window),
        }
    }

    /// The place of a term's table among those of the terms but the longest.
    fn table(&self, term: usize) -> Range<usize> {
        let len = L::arranged_len(self.workspace.limbs(), self.window);
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
            x.table = &mut mem::take(&mut x.table)[..self.window.table_len() * limbs];
            x.fill_table();
            lanes.arrange(&mut self.tables[table], x.table, self.window);
        }
    }

    /// The ladder, from the highest digit of the longest exponent: a step for that one, and a product
    /// for each other term that has the digit. Each product looks up the entry for the next one. The
    /// order of operations depends only on the lengths.
    fn multiply(&mut self) {
        let Self {
            window, lengths, ..
        } = *self;
        let digits_len = self.digits.len() / lengths.len().max(1);
        let digits_of = |term: usize| {
            let count = window.digit_count(lengths[term]);
            &self.digits[term * digits_len..][..count * L::COUNT]
        };
        let table_len = L::arranged_len(self.workspace.limbs(), window);
        let others: Vec<_> = (0..lengths.len())
            .filter(|term| *term != self.longest)
            .zip(self.tables.chunks_exact(table_len))
            .map(|(term, table)| (table, digits_of(term)))
            .collect();
        let mut look_ups = (0..digits_len / L::COUNT).rev().flat_map(|digit| {
            others.iter().filter_map(move |(table, digits)| {
                let digits = digits.chunks_exact(L::COUNT).nth(digit)?;
                Some((digit, *table, digits))
            })
        });
        let longest = &self.digits[self.longest * digits_len..][..digits_len];
        let (lanes, mut x) = (self.workspace.lanes, self.workspace.operands());
        let mut entry = &mut self.entry[..];
        let mut look_up = look_ups.next();
        x.set_one();
        if let Some((_, table, digits)) = look_up {
            let selection = Selection {
                out: &mut *entry,
                table,
                window,
                digits,
            };
            // Only the entry is used, not the product.
            let (out, a, b) = (&mut *x.spare, &*x.value, &*x.factor);
            lanes.mul_and_select(out, a, b, x.modulus, x.scratch, selection);
            mem::swap(&mut x.factor, &mut entry);
        }
        for (digit, digits) in longest.chunks_exact(L::COUNT).enumerate().rev() {
            lanes.step(window.bits(), digits, &mut x);
            while look_up.is_some_and(|(of, ..)| of == digit) {
                look_up = look_ups.next();
                let (out, a, b) = (&mut *x.spare, &*x.value, &*x.factor);
                match look_up {
                    Some((_, table, digits)) => {
                        let selection = Selection {
                            out: &mut *entry,
                            table,
                            window,
                            digits,
                        };
                        lanes.mul_and_select(out, a, b, x.modulus, x.scratch, selection);
                    }
                    None => lanes.mul(out, a, b, x.modulus, x.scratch),
                }
                mem::swap(&mut x.value, &mut x.spare);
                mem::swap(&mut x.factor, &mut entry);
            }
        }
        x.retrieve();
    }
}
