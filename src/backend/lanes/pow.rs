//! The ladder: fixed window, every digit multiplied, the digit 0 too.

use super::workspace::{Parts, Workspace};
use super::{Lanes, Step};

impl<L: Lanes> Workspace<L> {
    /// From bases to powers, both in ordinary form. The powers are at most `(BOUND - 1) * modulus`.
    ///
    /// The order of all operations and addresses depends on the length of the exponent alone.
    pub(super) fn pow(&mut self) {
        let (lanes, window_bits) = (self.lanes, self.window.bits());
        self.fill_table();
        let Parts {
            modulus,
            value,
            spare,
            factor,
            table,
            scratch,
            digits,
            ..
        } = self.parts();

        let mut digits = digits.rchunks(L::COUNT);
        match digits.next() {
            Some(top) => lanes.select(value, table, top),
            None => value.copy_from_slice(&table[..value.len()]),
        }
        for digit in digits {
            let step = Step {
                squarings: window_bits,
                table,
                digits: digit,
                factor,
                value,
                spare,
            };
            lanes.step(step, modulus, scratch);
        }

        // Leave Montgomery form. A product `T` comes out below `T / R + (BOUND - 1) * modulus`, so with
        // `T < BOUND * modulus < R` it is at most `(BOUND - 1) * modulus`.
        set_one::<L>(factor);
        lanes.mul(spare, value, factor, modulus, scratch);
        value.copy_from_slice(spare);
    }

    /// Fills the table with `base^0, base^1, ..` in Montgomery form.
    fn fill_table(&mut self) {
        let (lanes, table_len) = (self.lanes, self.window.table_len());
        let Parts {
            modulus,
            r2,
            value: base,
            factor,
            table,
            scratch,
            ..
        } = self.parts();
        let limbs = base.len();

        set_one::<L>(factor);
        lanes.mul(&mut table[..limbs], r2, factor, modulus, scratch);
        lanes.mul(&mut table[limbs..2 * limbs], r2, base, modulus, scratch);
        for i in 2..table_len {
            let (powers, rest) = table.split_at_mut(i * limbs);
            let power = |i: usize| &powers[i * limbs..][..limbs];
            let out = &mut rest[..limbs];
            if i % 2 == 0 {
                lanes.square(out, power(i / 2), modulus, scratch);
            } else {
                lanes.mul(out, power(i - 1), power(1), modulus, scratch);
            }
        }
    }
}

/// Sets every lane of a number to one.
pub(super) fn set_one<L: Lanes>(limbs: &mut [L::Limb]) {
    limbs.fill(L::ZERO);
    for lane in 0..L::COUNT {
        L::set_lane(&mut limbs[0], lane, 1);
    }
}
