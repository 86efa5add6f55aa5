//! The buffers of a computation, all secret: moduli, bases, digits, tables.

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::window::{Window, recode_into};
use crypto_bigint::Limb;

use super::convert::{MAX_COUNT, bits_at, cut, join, reduce_once, store, to_digits, transpose};
use super::layout::{Buffer, Digits, Operands, Words};
use super::{Lanes, Modulus};

/// Buffers for operands of `limbs` limbs and exponents of `exponent_bits` bits. They are reused
/// from group to group of a batch, and wiped on drop.
pub(super) struct Workspace<L: Lanes> {
    pub(super) lanes: L,
    pub(super) window: Window,
    exponent_bits: u32,
    limbs: usize,
    /// See [`Operands`].
    operands: Buffer<L::Limb>,
    /// See [`Words`].
    words: Buffer<u64>,
    /// See [`Digits`].
    digits: Buffer<u8>,
}

/// The parts of a [`Workspace`] that the ladder works on.
pub(super) struct Parts<'a, L: Lanes> {
    pub(super) modulus: Modulus<'a, L::Limb>,
    pub(super) r2: &'a mut [L::Limb],
    pub(super) value: &'a mut [L::Limb],
    pub(super) spare: &'a mut [L::Limb],
    pub(super) factor: &'a mut [L::Limb],
    pub(super) entry: &'a mut [L::Limb],
    pub(super) table: &'a mut [L::Limb],
    pub(super) scratch: &'a mut [L::Limb],
    pub(super) digits: &'a [u8],
}

impl<L: Lanes> Workspace<L> {
    pub(super) fn new(lanes: L, limbs: usize, exponent_bits: u32) -> Self {
        let window = window::<L>(exponent_bits, LARGEST_WINDOW);
        let digit_count = window.digit_count(exponent_bits);
        Self {
            lanes,
            window,
            exponent_bits,
            limbs,
            operands: Buffer::zeros(Operands::len(lanes, limbs, window)),
            words: Buffer::zeros(Words::len(limbs, L::COUNT)),
            digits: Buffer::zeros(Digits::len(digit_count, L::COUNT)),
        }
    }

    /// Imports the moduli of all lanes, which are equally wide, and computes their Montgomery
    /// constants.
    pub(super) fn prepare_moduli(&mut self, moduli: &[ModulusRef<'_>; MAX_COUNT]) {
        self.prepare_products(moduli);
        self.raise_r2(moduli[0].bits());
    }

    /// Like [`prepare_moduli`](Self::prepare_moduli), with `S^2` in place of `R^2`, where
    /// `S = 2^width` is crypto-bigint's Montgomery radix.
    ///
    /// This saves two multiplications. It suffices for numbers that are reduced or multiplied once,
    /// since R is `S * 2^excess`: see [`excess`](Self::excess).
    pub(super) fn prepare_products(&mut self, moduli: &[ModulusRef<'_>; MAX_COUNT]) {
        self.import_moduli(moduli);
        let (operands, mut words) = self.operands_and_words();
        let words = words.of(moduli[0].bits(), L::COUNT);
        import_of_each::<L>(moduli, |params| params.r2, words, operands.r2);
    }

    /// Imports the moduli without `R^2` and `S^2`, which products in Montgomery form do not need.
    pub(super) fn import_moduli(&mut self, moduli: &[ModulusRef<'_>; MAX_COUNT]) {
        let lanes = self.lanes;
        let (operands, mut words) = self.operands_and_words();
        let plain = words.of(moduli[0].bits(), L::COUNT);
        import_of_each::<L>(moduli, |params| params.limbs, plain, operands.modulus);
        for (lane, params) in moduli[..L::COUNT].iter().enumerate() {
            let inverse = Secret::new(u64::from(*params.mod_inv));
            let neg_inv = inverse.wrapping_neg() & ((1 << L::RADIX_BITS) - 1);
            L::set_lane(operands.neg_inv, lane, neg_inv);
        }
        to_digits::<L>(operands.modulus, words.modulus);
        lanes.prepare(
            operands.constants,
            operands.modulus,
            operands.neg_inv,
            operands.scratch,
        );
    }

    /// Turns `r2`, which holds `2^(2 * width) mod modulus`, into `R^2 mod modulus`, where
    /// `R = 2^r_bits` and `2^width < R < 2^(2 * width)`.
    ///
    /// Written as `R * 2^f`, it starts with `f = 2 * width - r_bits`, and a Montgomery square
    /// doubles `f`. When `f` has reached `r_bits`, a Montgomery product with a power of two removes
    /// the excess.
    pub(super) fn raise_r2(&mut self, width: u32) {
        let r_bits = self.limbs as u32 * L::RADIX_BITS;
        let lanes = self.lanes;
        let Parts {
            modulus,
            r2,
            value,
            factor,
            scratch,
            ..
        } = self.parts();
        let mut f = 2 * width - r_bits;
        while f < r_bits {
            lanes.square(value, r2, modulus, scratch);
            r2.copy_from_slice(value);
            f *= 2;
        }
        if f > r_bits {
            set_power_of_two::<L>(factor, 2 * r_bits - f);
            lanes.mul(value, r2, factor, modulus, scratch);
            r2.copy_from_slice(value);
        }
    }

    /// Imports a number of up to `width` bits for each lane, times `2^shift`, to `value`.
    pub(super) fn load<'n>(
        &mut self,
        number: impl Fn(usize) -> &'n [Limb],
        width: u32,
        shift: u32,
    ) {
        let (operands, mut words) = self.operands_and_words();
        import::<L>(number, shift, words.of(width, L::COUNT), operands.value);
    }

    /// Like [`load`](Self::load), to `factor`.
    pub(super) fn load_factor<'n>(
        &mut self,
        number: impl Fn(usize) -> &'n [Limb],
        width: u32,
        shift: u32,
    ) {
        let (operands, mut words) = self.operands_and_words();
        import::<L>(number, shift, words.of(width, L::COUNT), operands.factor);
    }

    /// Like [`load`](Self::load), to operands outside the workspace.
    pub(super) fn import<'n>(
        &mut self,
        number: impl Fn(usize) -> &'n [Limb],
        width: u32,
        shift: u32,
        limbs: &mut [L::Limb],
    ) {
        let mut words = self.operands_and_words().1;
        import::<L>(number, shift, words.of(width, L::COUNT), limbs);
    }

    /// Recodes the exponent of each lane.
    pub(super) fn load_exponents<'n>(&mut self, exponent: impl Fn(usize) -> &'n [Limb]) {
        let (exponent_bits, window) = (self.exponent_bits, self.window);
        let Digits { recoded, of_lanes } = self.digits();
        for lane in 0..L::COUNT {
            recode_into(exponent(lane), exponent_bits, window, recoded);
            let digits = of_lanes.iter_mut().skip(lane).step_by(L::COUNT);
            for (digit, recoded) in digits.zip(&*recoded) {
                *digit = *recoded;
            }
        }
    }

    /// Exports `value` to the places of the first lanes, reduced to numbers of `width` bits.
    pub(super) fn store<'o>(&mut self, width: u32, out: impl Iterator<Item = &'o mut [Limb]>) {
        self.store_reduced(L::BOUND - 1, width, out);
    }

    /// Like [`store`](Self::store), for a `value` below `(2 * BOUND - 1) * modulus`.
    pub(super) fn store_product<'o>(
        &mut self,
        width: u32,
        out: impl Iterator<Item = &'o mut [Limb]>,
    ) {
        self.store_reduced(2 * (L::BOUND - 1), width, out);
    }

    fn store_reduced<'o>(
        &mut self,
        times: u8,
        width: u32,
        out: impl Iterator<Item = &'o mut [Limb]>,
    ) {
        self.reduce_value(times);
        let [digits, words] = self.operands_and_words().1.plain;
        let words = &mut words[..width.div_ceil(64) as usize * L::COUNT];
        join::<L>(digits, words);
        for (lane, out) in out.take(L::COUNT).enumerate() {
            store::<L>(words, lane, out);
        }
    }

    /// The digits of the number in every lane, reduced. The number is below `BOUND * modulus`, or
    /// at most `(BOUND - 1) * modulus` after a multiplication by one (see the end of `pow`).
    pub(super) fn reduced_value(&mut self) -> &[u64] {
        self.reduce_value(L::BOUND - 1)
    }

    /// The digits of the number in every lane, after subtracting the modulus up to `times` times
    /// while the result is not negative.
    fn reduce_value(&mut self, times: u8) -> &[u64] {
        let (operands, words) = self.operands_and_words();
        let [digits, spare] = words.plain;
        to_digits::<L>(operands.value, digits);
        for _ in 0..times {
            reduce_once::<L>(digits, words.modulus, spare);
        }
        digits
    }

    /// The parts that the ladder works on.
    pub(super) fn parts(&mut self) -> Parts<'_, L> {
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        Parts {
            modulus: Modulus {
                limbs: operands.modulus,
                neg_inv: operands.neg_inv,
                constants: operands.constants,
            },
            r2: operands.r2,
            value: operands.value,
            spare: operands.spare,
            factor: operands.factor,
            entry: operands.entry,
            table: operands.table,
            scratch: operands.scratch,
            digits: Digits::new(&mut self.digits, L::COUNT).of_lanes,
        }
    }

    fn operands_and_words(&mut self) -> (Operands<'_, L::Limb>, Words<'_>) {
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        let words = Words::new(&mut self.words);
        (operands, words)
    }

    fn digits(&mut self) -> Digits<'_> {
        Digits::new(&mut self.digits, L::COUNT)
    }

    /// Buffers for operands of `limbs` limbs, without exponents.
    pub(super) fn with_limbs(lanes: L, limbs: usize) -> Self {
        Self::new(lanes, limbs, 0)
    }

    /// The number of bits by which a number of `width` bits can be shifted and stay below R.
    pub(super) fn excess(&self, width: u32) -> u32 {
        self.limbs as u32 * L::RADIX_BITS - width
    }

    /// The number of limbs of an operand.
    pub(super) fn limbs(&self) -> usize {
        self.limbs
    }
}

/// Cuts a number `of` the modulus of each lane into limbs, by way of `words`. If all lanes have the
/// same modulus, as with one key, it is cut once for all.
fn import_of_each<'a, L: Lanes>(
    moduli: &[ModulusRef<'a>; MAX_COUNT],
    of: impl Fn(&ModulusRef<'a>) -> &'a [Limb],
    words: &mut [u64],
    limbs: &mut [L::Limb],
) {
    let [first, others @ ..] = &moduli[..L::COUNT] else {
        return;
    };
    if others.iter().any(|other| !first.is_same(other)) {
        return import::<L>(|lane| of(&moduli[lane]), 0, words, limbs);
    }
    let number = of(first);
    for (limb, low) in limbs.iter_mut().zip((0..).step_by(L::RADIX_BITS as usize)) {
        let digit = bits_at(number, low, L::RADIX_BITS);
        for lane in 0..L::COUNT {
            L::set_lane(limb, lane, digit);
        }
    }
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

/// The number of each lane in a flat buffer, `size` limbs each. Unused lanes repeat the last one.
pub(super) fn flat<'n>(numbers: &'n [Limb], size: usize) -> impl Fn(usize) -> &'n [Limb] {
    let last = numbers.len() / size - 1;
    move |lane| &numbers[lane.min(last) * size..][..size]
}

/// Sets every lane of a number to one.
pub(super) fn set_one<L: Lanes>(limbs: &mut [L::Limb]) {
    set_power_of_two::<L>(limbs, 0);
}

/// Sets every lane of a number to `2^bit`, which fits.
pub(super) fn set_power_of_two<L: Lanes>(limbs: &mut [L::Limb], bit: u32) {
    limbs.fill(L::ZERO);
    let limb = &mut limbs[(bit / L::RADIX_BITS) as usize];
    for lane in 0..L::COUNT {
        L::set_lane(limb, lane, 1 << (bit % L::RADIX_BITS));
    }
}

/// The largest window of the ladder, in bits.
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
