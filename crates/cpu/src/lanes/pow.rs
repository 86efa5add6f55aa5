//! The ladder: a fixed window, with a multiplication for every digit, 0 included.

use core::ops::Range;

use batch_modexp_core::width::scrubbed;

use super::convert::MAX_COUNT;
use super::run::{Run, blocks};
use super::workspace::{Parts, Workspace, set_one};
use super::{Lanes, Step, Table};

/// Computes the powers of the instances in `range` of a run, on `lanes`.
pub(crate) fn pow<L: Lanes>(
    lanes: L,
    exponent_bits: u32,
    run: &mut dyn Run<'_>,
    range: Range<usize>,
) {
    if range.is_empty() {
        return;
    }
    // The kernels spill column sums and limbs: a few kilobytes of stack.
    scrubbed(|| {
        let limbs = L::limb_count(run.bits());
        let mut workspace = Workspace::new(lanes, limbs, exponent_bits);
        let mut prepared = 0..0;
        for block in blocks(range, L::COUNT) {
            if !run.same_moduli(block.clone(), prepared.clone()) {
                workspace.prepare_moduli(&run.moduli(block.clone()));
                prepared = block.clone();
            }
            let numbers = run.numbers(block.clone());
            workspace.load(|lane| numbers[lane][0], run.bits(), 0);
            workspace.load_exponents(|lane| numbers[lane][1]);
            workspace.pow();
            workspace.store(run.bits(), run.results(block).into_iter());
        }
    });
}

impl<L: Lanes> Workspace<L> {
    /// Replaces bases by powers, both in ordinary form. The powers are at most
    /// `(BOUND - 1) * modulus`.
    ///
    /// The order of operations and addresses depends only on the exponent length.
    pub(super) fn pow(&mut self) {
        let (lanes, window_bits) = (self.lanes, self.window.bits());
        self.fill_table();
        let Parts {
            modulus,
            mut value,
            mut spare,
            factor,
            entry,
            table,
            scratch,
            digits,
            ..
        } = self.parts();

        let mut digits = digits.rchunks(L::COUNT);
        // Without digits, start with entry 0, which is one.
        let top = digits.next().unwrap_or(&[0; MAX_COUNT][..L::COUNT]);
        lanes.open(value, entry, table, top);
        for digit in digits {
            let step = Step {
                squarings: window_bits,
                table,
                digits: digit,
                entry,
                value,
                spare,
            };
            (value, spare) = lanes.step(step, modulus, scratch);
        }

        // Leaves Montgomery form. A product `T` is reduced below `T / R + (BOUND - 1) * modulus`.
        // With `T < (BOUND + 1/2) * modulus < R` it is at most `(BOUND - 1) * modulus`.
        set_one::<L>(factor);
        lanes.mul(spare, value, factor, modulus, scratch);
        // Both buffers get the result, since they may have been swapped.
        value.copy_from_slice(spare);
    }

    /// Fills the table with `base^0, base^1, ..` in Montgomery form.
    fn fill_table(&mut self) {
        let lanes = self.lanes;
        let Parts {
            modulus,
            r2,
            value,
            spare,
            factor,
            entry,
            table,
            scratch,
            ..
        } = self.parts();

        set_one::<L>(factor);
        lanes.mul(spare, r2, factor, modulus, scratch);
        lanes.mul(factor, r2, value, modulus, scratch);
        let table = Table {
            entries: table,
            entry_len: entry.len(),
            one: spare,
            base: factor,
            spare: value,
        };
        lanes.fill_table(table, modulus, scratch);
    }
}
