//! The ladder: fixed window, every digit multiplied, the digit 0 too.

use super::window::ENTRIES_PER_SQUARING;
use super::{Arithmetic, Lanes, LookUp, Modulus, Task};

/// An exponentiation, from bases to powers, both in ordinary form.
pub(super) struct Ladder<'a, L: Lanes> {
    pub(super) window_bits: u32,
    pub(super) modulus: Modulus<'a, L::Limb>,
    /// `R^2 mod modulus`, below `BOUND * modulus`.
    pub(super) r2: &'a [L::Limb],
    /// First the bases, in the end the powers, at most `(BOUND - 1) * modulus`.
    pub(super) value: &'a mut [L::Limb],
    /// Space for a second factor.
    pub(super) factor: &'a mut [L::Limb],
    /// Space for `base^0 .. base^(2^w - 1)` in Montgomery form.
    pub(super) table: &'a mut [L::Limb],
    pub(super) scratch: &'a mut [L::Limb],
    /// The least significant digits of all lanes, then the next ones.
    pub(super) digits: &'a [u8],
}

impl<L: Lanes> Task<L::Limb> for Ladder<'_, L> {
    /// The order of all operations and addresses depends on the length of the exponent alone.
    #[inline(always)]
    fn run<A: Arithmetic<Limb = L::Limb>>(mut self, arithmetic: A) {
        let entries = self.table.len() / self.value.len();
        debug_assert!(entries <= self.window_bits as usize * ENTRIES_PER_SQUARING);
        self.fill_table(arithmetic);
        let Self {
            window_bits,
            modulus,
            value,
            factor,
            table,
            scratch,
            digits,
            ..
        } = self;

        let mut digits = digits.rchunks_exact(L::COUNT);
        match digits.next() {
            Some(digits) => arithmetic.look_up(LookUp {
                table,
                digits,
                out: value,
            }),
            None => value.copy_from_slice(&table[..value.len()]),
        }
        for digits in digits {
            let look_up = LookUp {
                table,
                digits,
                out: factor,
            };
            arithmetic.square_and_look_up(value, window_bits, look_up, modulus, scratch);
            arithmetic.mul(value, factor, modulus, scratch);
        }

        // Leave Montgomery form. A product `T` comes out below `T / R + (BOUND - 1) * modulus`, so with
        // `T < BOUND * modulus < R` it is at most `(BOUND - 1) * modulus`.
        set_one::<L>(factor);
        arithmetic.mul(value, factor, modulus, scratch);
    }
}

impl<L: Lanes> Ladder<'_, L> {
    /// Fills the table.
    #[inline(always)]
    fn fill_table<A: Arithmetic<Limb = L::Limb>>(&mut self, arithmetic: A) {
        let Self {
            modulus,
            r2,
            value,
            factor,
            table,
            scratch,
            ..
        } = self;
        arithmetic.mul(value, r2, *modulus, scratch);
        factor.copy_from_slice(value);
        let (one, powers) = table.split_at_mut(value.len());
        set_one::<L>(one);
        arithmetic.mul(one, r2, *modulus, scratch);
        for (i, entry) in powers.chunks_exact_mut(value.len()).enumerate() {
            if i > 0 {
                arithmetic.mul(value, factor, *modulus, scratch);
            }
            entry.copy_from_slice(value);
        }
    }
}

/// Sets every lane of a number to one.
fn set_one<L: Lanes>(limbs: &mut [L::Limb]) {
    limbs.fill(L::ZERO);
    for lane in 0..L::COUNT {
        L::set_lane(&mut limbs[0], lane, 1);
    }
}
