//! The ladder: fixed window, every digit multiplied, the digit 0 too.

use super::convert::MAX_COUNT;
use super::workspace::{Parts, Workspace, set_one};
use super::{Lanes, Step, Table};

impl<L: Lanes> Workspace<L> {
    /// From bases to powers, both in ordinary form. The powers are at most `(BOUND - 1) * modulus`.
    ///
    /// The order of all operations and addresses depends on the length of the exponent alone.
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
        // Without digits it is entry 0, that of one.
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

        // Leave Montgomery form. A product `T` comes out below `T / R + (BOUND - 1) * modulus`, so with
        // `T < (BOUND + 1/2) * modulus < R` it is at most `(BOUND - 1) * modulus`.
        set_one::<L>(factor);
        lanes.mul(spare, value, factor, modulus, scratch);
        // Both buffers get the result, since they may have changed places.
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
