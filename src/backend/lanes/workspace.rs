//! The buffers of one exponentiation, all secret: moduli, bases, digits, tables.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{Limb, Unsigned};
use zeroize::Zeroize;

use super::constants::Prepare;
use super::convert::{bits_at, from_digits, reduce_once};
use super::pow::Ladder;
use super::{Lanes, Modulus, lanes_of, modulus_bits, window};
use crate::ModExp;
use crate::backend::width;
use crate::secret::Secret;
use crate::window::{Window, recode_into};

/// Buffers for operands of `limbs` limbs and exponents of `exponent_bits` bits, reused from block to
/// block of a batch and wiped on drop.
pub(super) struct Workspace<L: Lanes> {
    lanes: L,
    window: Window,
    exponent_bits: u32,
    limbs: usize,
    /// Modulus.
    modulus: Secret<Vec<L::Limb>>,
    /// `-1 / modulus mod 2^RADIX_BITS`.
    neg_inv: Secret<[L::Limb; 1]>,
    /// What else the multiplication needs of the modulus.
    constants: Secret<Vec<L::Limb>>,
    /// `R^2 mod modulus`, below `BOUND * modulus`.
    r2: Secret<Vec<L::Limb>>,
    /// First the bases, then the powers, in the end the results.
    value: Secret<Vec<L::Limb>>,
    /// A second factor.
    factor: Secret<Vec<L::Limb>>,
    /// `base^0 .. base^(2^w - 1)` in Montgomery form.
    table: Secret<Vec<L::Limb>>,
    scratch: Secret<Vec<L::Limb>>,
    /// The digits of one lane, least significant first.
    recoded: Secret<Vec<u8>>,
    /// The least significant digits of all lanes, then the next ones.
    digits: Secret<Vec<u8>>,
}

impl<L: Lanes> Workspace<L> {
    pub(super) fn new(lanes: L, limbs: usize, exponent_bits: u32) -> Self {
        let window = window::window::<L>(exponent_bits);
        let digit_count = window.digit_count(exponent_bits);
        let zeros = |len| Secret::new(vec![L::ZERO; len]);
        Self {
            lanes,
            window,
            exponent_bits,
            limbs,
            modulus: zeros(limbs),
            neg_inv: Secret::new([L::ZERO]),
            constants: zeros(L::constants_len(limbs)),
            r2: zeros(limbs),
            value: zeros(limbs),
            factor: zeros(limbs),
            table: zeros(limbs * window.table_len()),
            scratch: zeros(L::scratch_len(limbs)),
            recoded: Secret::new(vec![0; digit_count]),
            digits: Secret::new(vec![0; L::COUNT * digit_count]),
        }
    }

    /// Imports the moduli of a block and computes their Montgomery constants.
    pub(super) fn prepare_moduli<U: Unsigned>(&mut self, block: &[ModExp<'_, U>]) {
        for (lane, instance) in lanes_of(block, L::COUNT) {
            let params = instance.params;
            load_lane::<L>(
                &mut self.modulus,
                lane,
                params.modulus().as_ref().as_limbs(),
            );
            load_lane::<L>(&mut self.r2, lane, params.r2().as_limbs());
            let inverse = Secret::new(u64::from(*params.mod_inv()));
            let neg_inv = inverse.wrapping_neg() & ((1 << L::RADIX_BITS) - 1);
            L::set_lane(&mut self.neg_inv[0], lane, neg_inv);
        }
        let prepare = Prepare::<L> {
            width: modulus_bits(&block[0]),
            modulus: &self.modulus,
            neg_inv: &self.neg_inv[0],
            constants: &mut self.constants,
            r2: &mut self.r2,
            factor: &mut self.factor,
            scratch: &mut self.scratch,
        };
        self.lanes.run(self.limbs, prepare);
    }

    /// Imports the bases of a block and recodes its exponents.
    pub(super) fn load<U: Unsigned>(&mut self, block: &[ModExp<'_, U>]) {
        for (lane, instance) in lanes_of(block, L::COUNT) {
            load_lane::<L>(&mut self.value, lane, instance.base.as_limbs());
            let exponent = instance.exponent.as_limbs();
            recode_into(exponent, self.exponent_bits, self.window, &mut self.recoded);
            let digits = self.digits.iter_mut().skip(lane).step_by(L::COUNT);
            for (digit, recoded) in digits.zip(self.recoded.iter()) {
                *digit = *recoded;
            }
        }
    }

    /// Exports the results of a block.
    pub(super) fn store<U: Unsigned>(&self, block: &[ModExp<'_, U>], out: &mut [U]) {
        for (lane, (instance, out)) in block.iter().zip(out).enumerate() {
            let modulus = instance.params.modulus().as_ref();
            if width(out) != width(modulus) {
                out.as_mut_limbs().zeroize();
                *out = modulus.clone();
            }
            let digit = |i: usize| self.value.get(i).map_or(0, |limb| L::lane(limb, lane));
            let mut high = from_digits(out.as_mut_limbs(), L::RADIX_BITS, digit);
            // At most `(BOUND - 1) * modulus`, see the end of the ladder.
            for _ in 1..L::BOUND {
                reduce_once(out.as_mut_limbs(), &mut high, modulus.as_limbs());
            }
        }
    }

    /// Turns the bases into powers, at most `(BOUND - 1) * modulus`.
    pub(super) fn pow(&mut self) {
        let ladder = Ladder::<L> {
            window_bits: self.window.bits(),
            modulus: Modulus {
                limbs: &self.modulus,
                neg_inv: &self.neg_inv[0],
                constants: &self.constants,
            },
            r2: &self.r2,
            value: &mut self.value,
            factor: &mut self.factor,
            table: &mut self.table,
            scratch: &mut self.scratch,
            digits: &self.digits,
        };
        self.lanes.run(self.limbs, ladder);
    }
}

/// Cuts `value` into the limbs of one lane.
fn load_lane<L: Lanes>(limbs: &mut [L::Limb], lane: usize, value: &[Limb]) {
    for (i, limb) in (0u32..).zip(limbs) {
        L::set_lane(limb, lane, bits_at(value, i * L::RADIX_BITS, L::RADIX_BITS));
    }
}
