//! The buffers of one exponentiation, all secret: moduli, bases, digits, tables.

use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "sign")]
use core::ops::Range;

use crypto_bigint::Limb;

use super::convert::{
    MAX_COUNT, bits_at, cut, join, pack, reduce_once, store, to_digits, transpose,
};
use super::run::Params;
use super::{Lanes, Modulus, window};
use crate::secret::Secret;
use crate::window::{Window, recode_into};

/// Buffers for operands of `limbs` limbs and exponents of `exponent_bits` bits, reused from block to
/// block of a batch and wiped on drop.
pub(super) struct Workspace<L: Lanes> {
    pub(super) lanes: L,
    pub(super) window: Window,
    exponent_bits: u32,
    limbs: usize,
    /// Modulus.
    modulus: Secret<Vec<L::Limb>>,
    /// The same as digits: see `convert`.
    modulus_digits: Secret<Vec<u64>>,
    /// `-1 / modulus mod 2^RADIX_BITS`.
    neg_inv: Secret<[L::Limb; 1]>,
    /// What else the multiplication needs of the modulus.
    constants: Secret<Vec<L::Limb>>,
    /// `R^2 mod modulus`, below `BOUND * modulus`.
    r2: Secret<Vec<L::Limb>>,
    /// First the bases, then the powers, in the end the results.
    value: Secret<Vec<L::Limb>>,
    /// What the next operation writes; changes places with `value`.
    spare: Secret<Vec<L::Limb>>,
    /// A second factor.
    factor: Secret<Vec<L::Limb>>,
    /// `base^0 .. base^(2^w - 1)` in Montgomery form.
    table: Secret<Vec<L::Limb>>,
    scratch: Secret<Vec<L::Limb>>,
    /// For numbers on their way out, and what else that needs.
    plain_digits: Secret<[Vec<u64>; 2]>,
    /// The digits of one lane, least significant first.
    recoded: Secret<Vec<u8>>,
    /// The least significant digits of all lanes, then the next ones.
    digits: Secret<Vec<u8>>,
}

/// The parts of a [`Workspace`] that the ladder works on.
pub(super) struct Parts<'a, L: Lanes> {
    pub(super) modulus: Modulus<'a, L::Limb>,
    pub(super) r2: &'a [L::Limb],
    pub(super) value: &'a mut [L::Limb],
    pub(super) spare: &'a mut [L::Limb],
    pub(super) factor: &'a mut [L::Limb],
    pub(super) table: &'a mut [L::Limb],
    pub(super) scratch: &'a mut [L::Limb],
    pub(super) digits: &'a [u8],
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
            modulus_digits: Secret::new(vec![0; L::COUNT * limbs]),
            neg_inv: Secret::new([L::ZERO]),
            constants: zeros(L::constants_len(limbs)),
            r2: zeros(limbs),
            value: zeros(limbs),
            spare: zeros(limbs),
            factor: zeros(limbs),
            table: zeros(limbs * window.table_len()),
            scratch: zeros(L::scratch_len(limbs)),
            plain_digits: Secret::new([(); 2].map(|()| vec![0; L::COUNT * limbs])),
            recoded: Secret::new(vec![0; digit_count]),
            digits: Secret::new(vec![0; L::COUNT * digit_count]),
        }
    }

    /// Imports the modulus of every lane, all equally wide, and computes their Montgomery constants.
    pub(super) fn prepare_moduli(&mut self, moduli: &[Params<'_>; MAX_COUNT]) {
        let bits = moduli[0].bits();
        self.import_moduli(moduli);
        import::<L>(
            |lane| moduli[lane].r2,
            0,
            words_of::<L>(&mut self.plain_digits, bits),
            &mut self.r2,
        );
        self.raise_r2(bits);
    }

    /// The same without `R^2`, which products in Montgomery form need not have.
    pub(super) fn import_moduli(&mut self, moduli: &[Params<'_>; MAX_COUNT]) {
        import::<L>(
            |lane| moduli[lane].modulus,
            0,
            words_of::<L>(&mut self.plain_digits, moduli[0].bits()),
            &mut self.modulus,
        );
        for (lane, params) in moduli[..L::COUNT].iter().enumerate() {
            let inverse = Secret::new(u64::from(*params.mod_inv));
            let neg_inv = inverse.wrapping_neg() & ((1 << L::RADIX_BITS) - 1);
            L::set_lane(&mut self.neg_inv[0], lane, neg_inv);
        }
        to_digits::<L>(&self.modulus, &mut self.modulus_digits);
        self.lanes.prepare(
            &mut self.constants,
            &self.modulus,
            &self.neg_inv[0],
            &mut self.scratch,
        );
    }

    /// Turns `r2`, which holds `2^(2 * width) mod modulus`, into `R^2 mod modulus`, where
    /// `R = 2^r_bits` and `2^width < R < 2^(2 * width)`.
    ///
    /// Seen as `R * 2^f`, it starts at `f = 2 * width - r_bits`, and a Montgomery square doubles `f`. As
    /// soon as `f` has reached `r_bits`, a Montgomery product with a power of two takes away the excess.
    fn raise_r2(&mut self, width: u32) {
        let r_bits = self.limbs as u32 * L::RADIX_BITS;
        let modulus = Modulus {
            limbs: &self.modulus,
            neg_inv: &self.neg_inv[0],
            constants: &self.constants,
        };
        let mut f = 2 * width - r_bits;
        while f < r_bits {
            self.lanes
                .square(&mut self.value, &self.r2, modulus, &mut self.scratch);
            self.r2.copy_from_slice(&self.value);
            f *= 2;
        }
        if f > r_bits {
            let power = 2 * r_bits - f;
            self.factor.fill(L::ZERO);
            let limb = &mut self.factor[(power / L::RADIX_BITS) as usize];
            for lane in 0..L::COUNT {
                L::set_lane(limb, lane, 1 << (power % L::RADIX_BITS));
            }
            self.lanes.mul(
                &mut self.value,
                &self.r2,
                &self.factor,
                modulus,
                &mut self.scratch,
            );
            self.r2.copy_from_slice(&self.value);
        }
    }

    /// Imports the bases of a block and recodes its exponents.
    pub(super) fn load(&mut self, block: &[[&[Limb]; 2]; MAX_COUNT]) {
        for (lane, [base, exponent]) in block[..L::COUNT].iter().enumerate() {
            load_lane::<L>(&mut self.value, lane, base);
            recode_into(exponent, self.exponent_bits, self.window, &mut self.recoded);
            let digits = self.digits.iter_mut().skip(lane).step_by(L::COUNT);
            for (digit, recoded) in digits.zip(self.recoded.iter()) {
                *digit = *recoded;
            }
        }
    }

    /// Exports the results of a block.
    pub(super) fn store(&mut self, out: &mut [&mut [Limb]; MAX_COUNT]) {
        let digits = self.reduced_value();
        for (lane, out) in out[..L::COUNT].iter_mut().enumerate() {
            pack::<L>(digits, lane, out);
        }
    }

    /// The digits of the number in every lane, which is below `BOUND * modulus` or, where the multiplication before
    /// was by one, at most `(BOUND - 1) * modulus` (see the end of `pow`), reduced.
    pub(super) fn reduced_value(&mut self) -> &[u64] {
        let [digits, spare] = &mut *self.plain_digits;
        reduced::<L>(&self.value, &self.modulus_digits, digits, spare);
        digits
    }

    /// What the ladder works on.
    pub(super) fn parts(&mut self) -> Parts<'_, L> {
        Parts {
            modulus: Modulus {
                limbs: &self.modulus,
                neg_inv: &self.neg_inv[0],
                constants: &self.constants,
            },
            r2: &self.r2,
            value: &mut self.value,
            spare: &mut self.spare,
            factor: &mut self.factor,
            table: &mut self.table,
            scratch: &mut self.scratch,
            digits: &self.digits,
        }
    }
}

/// For products: see `mul`.
impl<L: Lanes> Workspace<L> {
    /// Imports factors of up to `width` bits, one of each pair to `value`, the other one, times `2^shift`, to `factor`.
    pub(super) fn load_factors_of(
        &mut self,
        block: &[[&[Limb]; 2]; MAX_COUNT],
        width: u32,
        shift: u32,
    ) {
        for (i, shift, limbs) in [(0, 0, &mut self.value), (1, shift, &mut self.factor)] {
            import::<L>(
                |lane| block[lane][i],
                shift,
                words_of::<L>(&mut self.plain_digits, width),
                limbs,
            );
        }
    }

    /// Exports `value`, reduced, to numbers of `width` bits.
    pub(super) fn store_products(&mut self, width: u32, out: &mut [&mut [Limb]; MAX_COUNT]) {
        self.reduced_value();
        let [digits, words] = &mut *self.plain_digits;
        let words = &mut words[..width.div_ceil(64) as usize * L::COUNT];
        join::<L>(digits, words);
        for (lane, out) in out[..L::COUNT].iter_mut().enumerate() {
            store::<L>(words, lane, out);
        }
    }
}

/// For numbers in flat buffers: see `products`.
#[cfg(feature = "sign")]
impl<L: Lanes> Workspace<L> {
    /// Buffers for numbers of `size` limbs of crypto-bigint, without exponents.
    pub(super) fn for_numbers(lanes: L, size: usize) -> Self {
        Self::with_limbs(lanes, L::limb_count(size as u32 * Limb::BITS))
    }

    /// Buffers for operands of `limbs` limbs, without exponents.
    pub(super) fn with_limbs(lanes: L, limbs: usize) -> Self {
        Self::new(lanes, limbs, 0)
    }

    /// The limbs of an operand.
    pub(super) fn limbs(&self) -> usize {
        self.limbs
    }

    /// Imports numbers of `size` limbs of crypto-bigint, one for each lane; lanes to spare repeat the last one.
    pub(super) fn load_numbers(&mut self, numbers: &[Limb], size: usize) {
        load_all::<L>(&mut self.value, numbers, size, 0..size);
    }

    /// The same for the second factor.
    pub(super) fn load_factors(&mut self, numbers: &[Limb], size: usize) {
        load_all::<L>(&mut self.factor, numbers, size, 0..size);
    }

    /// Exports `value` to the lanes that have a place here, reduced.
    pub(super) fn store_value(&mut self, size: usize, numbers: &mut [Limb]) {
        pack_all::<L>(self.reduced_value(), size, numbers);
    }
}

/// The digits of the number in every lane, below `BOUND * modulus`, reduced.
fn reduced<L: Lanes>(limbs: &[L::Limb], modulus: &[u64], digits: &mut [u64], spare: &mut [u64]) {
    to_digits::<L>(limbs, digits);
    for _ in 1..L::BOUND {
        reduce_once::<L>(digits, modulus, spare);
    }
}

/// Space for numbers of `width` bits of all lanes, cut into words: what holds digits on their way out.
fn words_of<L: Lanes>(plain_digits: &mut [Vec<u64>; 2], width: u32) -> &mut [u64] {
    &mut plain_digits[1][..width.div_ceil(64) as usize * L::COUNT]
}

/// Cuts a number for each lane into limbs, times `2^shift`, by way of `words`.
fn import<'a, L: Lanes>(
    number: impl Fn(usize) -> &'a [Limb],
    shift: u32,
    words: &mut [u64],
    limbs: &mut [L::Limb],
) {
    transpose::<L>(number, words);
    cut::<L>(words, shift, limbs);
}

/// Cuts `value` into the limbs of one lane.
fn load_lane<L: Lanes>(limbs: &mut [L::Limb], lane: usize, value: &[Limb]) {
    for (i, limb) in (0u32..).zip(limbs) {
        L::set_lane(limb, lane, bits_at(value, i * L::RADIX_BITS, L::RADIX_BITS));
    }
}

/// Cuts those limbs `of` each number of `size` limbs into the limbs of its lane; lanes to spare repeat the last number.
#[cfg(feature = "sign")]
pub(super) fn load_all<L: Lanes>(
    limbs: &mut [L::Limb],
    numbers: &[Limb],
    size: usize,
    of: Range<usize>,
) {
    let last = numbers.len() / size - 1;
    let mut of_lane = [&[][..]; MAX_COUNT];
    for (lane, number) in of_lane.iter_mut().enumerate() {
        *number = &numbers[lane.min(last) * size..][..size][of.clone()];
    }
    for (i, limb) in (0..).zip(limbs) {
        let low = i * L::RADIX_BITS;
        for (lane, number) in of_lane[..L::COUNT].iter().enumerate() {
            L::set_lane(limb, lane, bits_at(number, low, L::RADIX_BITS));
        }
    }
}

/// The numbers of the first lanes, `size` limbs each.
#[cfg(feature = "sign")]
fn pack_all<L: Lanes>(digits: &[u64], size: usize, numbers: &mut [Limb]) {
    for (lane, number) in numbers.chunks_exact_mut(size).enumerate() {
        pack::<L>(digits, lane, number);
    }
}
