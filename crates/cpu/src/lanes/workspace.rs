//! The buffers of a computation, all secret and wiped: moduli, operands, tables. A few large
//! allocations take less time than many, which matters for few instances.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

use super::convert::{MAX_COUNT, bits_at, cut, join, reduce_once, store, to_digits, transpose};
use super::{Lanes, Modulus};

/// Buffers for operands of `limbs` limbs. They are reused from group to group of a batch, and wiped
/// on drop.
pub(super) struct Workspace<L: Lanes> {
    pub(super) lanes: L,
    /// The window of the table.
    window: Window,
    limbs: usize,
    /// The moduli of all lanes, `-1 / modulus mod 2^RADIX_BITS`, and the constants of
    /// [`Lanes::prepare`].
    modulus: Buffer<L::Limb>,
    /// See [`Operands`].
    operands: Buffer<L::Limb>,
    /// Numbers in plain words, for import and export: see [`thirds`].
    words: Buffer<u64>,
}

impl<L: Lanes> Workspace<L> {
    /// Buffers without a table of powers, only with the space of one for two numbers.
    pub(super) fn new(lanes: L, limbs: usize) -> Self {
        let window = Window::new(1).expect("1 bit is a window");
        Self::with_table(lanes, limbs, window)
    }

    /// Buffers with a table of powers for this window.
    pub(super) fn with_table(lanes: L, limbs: usize, window: Window) -> Self {
        Self {
            lanes,
            window,
            limbs,
            modulus: Buffer::zeros(limbs + 1 + L::constants_len(limbs)),
            operands: Buffer::zeros(Operands::len(lanes, limbs, window)),
            words: Buffer::zeros(3 * limbs * L::COUNT),
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
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        let [.., words] = thirds(&mut self.words);
        let words = &mut words[..words_len::<L>(moduli[0].bits())];
        import_of_each::<L>(moduli, |params| params.r2, words, operands.r2);
    }

    /// Imports the moduli without `R^2` and `S^2`, which products in Montgomery form do not need.
    pub(super) fn import_moduli(&mut self, moduli: &[ModulusRef<'_>; MAX_COUNT]) {
        let lanes = self.lanes;
        let (limbs, rest) = self.modulus.split_at_mut(self.limbs);
        let [neg_inv, constants @ ..] = rest else {
            return;
        };
        let [digits, _, words] = thirds(&mut self.words);
        let words = &mut words[..words_len::<L>(moduli[0].bits())];
        import_of_each::<L>(moduli, |params| params.limbs, words, limbs);
        for (lane, params) in moduli[..L::COUNT].iter().enumerate() {
            let inverse = Secret::new(u64::from(*params.mod_inv));
            let inverse = inverse.wrapping_neg() & ((1 << L::RADIX_BITS) - 1);
            L::set_lane(neg_inv, lane, inverse);
        }
        to_digits::<L>(limbs, digits);
        let operands = Operands::new(lanes, &mut self.operands, self.limbs, self.window);
        lanes.prepare(constants, limbs, neg_inv, operands.scratch);
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
        let (
            modulus,
            Operands {
                r2,
                value,
                factor,
                scratch,
                ..
            },
        ) = self.parts();
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
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        let [.., words] = thirds(&mut self.words);
        let words = &mut words[..words_len::<L>(width)];
        import::<L>(number, shift, words, operands.value);
    }

    /// Like [`load`](Self::load), to `factor`.
    pub(super) fn load_factor<'n>(
        &mut self,
        number: impl Fn(usize) -> &'n [Limb],
        width: u32,
        shift: u32,
    ) {
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        let [.., words] = thirds(&mut self.words);
        let words = &mut words[..words_len::<L>(width)];
        import::<L>(number, shift, words, operands.factor);
    }

    /// Like [`load`](Self::load), to operands outside the workspace.
    pub(super) fn import<'n>(
        &mut self,
        number: impl Fn(usize) -> &'n [Limb],
        width: u32,
        shift: u32,
        limbs: &mut [L::Limb],
    ) {
        let [.., words] = thirds(&mut self.words);
        import::<L>(number, shift, &mut words[..words_len::<L>(width)], limbs);
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
        let [_, digits, words] = thirds(&mut self.words);
        let words = &mut words[..words_len::<L>(width)];
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
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        let [modulus, digits, spare] = thirds(&mut self.words);
        to_digits::<L>(operands.value, digits);
        for _ in 0..times {
            reduce_once::<L>(digits, modulus, spare);
        }
        digits
    }

    /// The moduli, and the operands of a computation.
    pub(super) fn parts(&mut self) -> (Modulus<'_, L::Limb>, Operands<'_, L::Limb>) {
        let (limbs, rest) = self.modulus.split_at(self.limbs);
        let modulus = Modulus {
            limbs,
            neg_inv: &rest[0],
            constants: &rest[1..],
        };
        let operands = Operands::new(self.lanes, &mut self.operands, self.limbs, self.window);
        (modulus, operands)
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

/// The numbers of a computation, in the representation of the lanes.
pub(super) struct Operands<'a, L> {
    /// `R^2 mod modulus`, below `BOUND * modulus`.
    pub(super) r2: &'a mut [L],
    /// First the bases, then the powers, finally the results.
    pub(super) value: &'a mut [L],
    /// The place for the next result; swapped with `value`.
    pub(super) spare: &'a mut [L],
    /// A second factor.
    pub(super) factor: &'a mut [L],
    /// An entry of the table for each lane.
    pub(super) entry: &'a mut [L],
    /// `base^0 .. base^(2^w - 1)` in Montgomery form, each as [`Lanes::entry_len`] says.
    pub(super) table: &'a mut [L],
    pub(super) scratch: &'a mut [L],
}

impl<'a, T> Operands<'a, T> {
    /// The total number of lane limbs, if a number has `limbs` limbs.
    pub(super) fn len<L: Lanes<Limb = T>>(lanes: L, limbs: usize, window: Window) -> usize {
        let entries = (1 + window.table_len()) * lanes.entry_len(limbs, window);
        4 * limbs + entries + L::scratch_len(limbs)
    }

    /// Divides a buffer of that length.
    pub(super) fn new<L: Lanes<Limb = T>>(
        lanes: L,
        mut buffer: &'a mut [T],
        limbs: usize,
        window: Window,
    ) -> Self {
        let entry_len = lanes.entry_len(limbs, window);
        let mut next = |len| part(&mut buffer, len);
        Self {
            r2: next(limbs),
            value: next(limbs),
            spare: next(limbs),
            factor: next(limbs),
            entry: next(entry_len),
            table: next(window.table_len() * entry_len),
            scratch: next(L::scratch_len(limbs)),
        }
    }
}

/// A vector of fixed length, wiped on drop, on unwinding too.
///
/// Memory is filled at once, with the processor's fastest means. A
/// [`Secret`](batch_modexp_core::secret::Secret) of a vector is wiped word by word, which for a
/// table of powers takes as long as several of the multiplications that filled it. The default of
/// `T` must be zero.
pub(super) struct Buffer<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Buffer<T> {
    pub(super) fn zeros(len: usize) -> Self {
        Self(vec![T::default(); len])
    }
}

impl<T: Copy + Default> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.0.fill(T::default());
        optimization_barrier(&self.0[..]);
    }
}

impl<T: Copy + Default> ZeroizeOnDrop for Buffer<T> {}

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

/// The moduli as digits, digits for export, and space for words or further digits: see `convert`.
fn thirds(words: &mut [u64]) -> [&mut [u64]; 3] {
    let third = words.len() / 3;
    let (first, rest) = words.split_at_mut(third);
    let (second, last) = rest.split_at_mut(third);
    [first, second, last]
}

/// The number of words for a number of `width` bits in each lane.
fn words_len<L: Lanes>(width: u32) -> usize {
    width.div_ceil(64) as usize * L::COUNT
}

/// Splits the next `len` elements off a buffer.
fn part<'a, T>(buffer: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    buffer
        .split_off_mut(..len)
        .expect("a buffer of the length that was asked for")
}
