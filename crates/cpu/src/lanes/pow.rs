//! The ladder: a fixed window, with a multiplication for every digit, 0 included.

use core::ops::Range;

use batch_modexp_core::width::scrubbed;
use batch_modexp_core::window::Window;

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
    scrubbed::<16, _>(|| {
        let limbs = L::limb_count(run.bits());
        let mut workspace = Workspace::new(lanes, limbs, exponent_bits);
        let mut prepared = 0..0;
        for block in blocks(range, L::COUNT) {
            if !run.same_moduli(block.clone(), prepared.clone()) {
                workspace.prepare_moduli(&run.moduli(block.clone()));
                prepared = block.clone();
            }
            workspace.load(&run.numbers(block.clone()));
            workspace.pow();
            workspace.store(&mut run.results(block));
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
        lanes.close(value);

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

/// The largest window of the ladder, in bits. Lane types choose theirs up to it (`max_window`).
pub(crate) const LARGEST_WINDOW: u32 = 5;

/// `(largest exponent_bits, window bits)`: the cheapest window. A window of `w` bits costs
/// `2^w - 2` multiplications for the table. It then costs `ceil(exponent_bits / w) - 1`
/// multiplications, each with a look-up among `2^w` entries.
const WINDOWS: [(u32, u32); 3] = [(4, 1), (24, 2), (100, 3)];

/// The window for exponents of `exponent_bits` bits, which is public. Above 100 bits it is 4 bits,
/// and above [`LONG_EXPONENT_BITS`](Lanes::LONG_EXPONENT_BITS) `largest`.
pub(super) fn window<L: Lanes>(exponent_bits: u32, largest: u32) -> Window {
    let longest = if exponent_bits <= L::LONG_EXPONENT_BITS {
        4
    } else {
        largest
    };
    let bits = WINDOWS
        .iter()
        .find(|(longest_exponent, _)| exponent_bits <= *longest_exponent)
        .map_or(longest, |(_, bits)| *bits);
    Window::new(bits).expect("a window of 1 to 5 bits")
}
