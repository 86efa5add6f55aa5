//! The buffers of a computation, all secret and wiped: moduli, operands, tables. A few large
//! allocations take less time than many, which matters for few instances.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::ops::{Deref, DerefMut};

use batch_modexp_core::PublicExponent;
use batch_modexp_core::engine::Moduli;
use batch_modexp_core::secret::Secret;
use batch_modexp_core::window::Window;
use crypto_bigint::Limb;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

use super::convert::{
    import, import_of_each, join, of_lane, reduce_once, set_power_of_two, store, to_plain,
};
use super::{LaneModulus, Lanes};

/// Buffers for operands of `limbs` limbs. They are reused from group to group of a batch, and wiped
/// on drop.
pub(super) struct Workspace<'m, L: Lanes> {
    pub(super) lanes: L,
    limbs: usize,
    /// The limbs of an entry of the table.
    entry_len: usize,
    /// The limbs of the table.
    table_len: usize,
    /// The moduli that [`prepare`](Self::prepare) imported.
    prepared: Moduli<'m>,
    /// The moduli of all lanes, `-1 / modulus mod 2^RADIX_BITS`, and the constants of
    /// [`Lanes::prepare`].
    modulus: Buffer<L::Limb>,
    /// See [`Operands`].
    operands: Buffer<L::Limb>,
    /// Numbers in plain words, for import and export: see [`thirds`].
    words: Buffer<u64>,
    /// The length of a number as wide as the moduli, in words.
    words_len: usize,
    /// See [`Operands`].
    s2: Buffer<L::Limb>,
}

impl<'m, L: Lanes> Workspace<'m, L> {
    /// Buffers without a table.
    pub(super) fn new(lanes: L, limbs: usize) -> Self {
        Self::with_lens(lanes, limbs, limbs, 0)
    }

    /// Buffers with a table of powers for this window.
    pub(super) fn with_table(lanes: L, limbs: usize, window: Window) -> Self {
        let entry_len = lanes.entry_len(limbs, window);
        Self::with_lens(lanes, limbs, entry_len, window.table_len() * entry_len)
    }

    /// Buffers for [`Operands::public_pow`], with a table of the base and its odd powers.
    pub(super) fn for_public_powers(lanes: L, limbs: usize, exponent: &PublicExponent) -> Self {
        let numbers = 1 + exponent.chain().odd_powers;
        Self::with_lens(lanes, limbs, limbs, numbers * limbs)
    }

    fn with_lens(lanes: L, limbs: usize, entry_len: usize, table_len: usize) -> Self {
        let operands = 4 * limbs + entry_len + table_len + L::scratch_len(limbs);
        Self {
            lanes,
            limbs,
            entry_len,
            table_len,
            prepared: &[],
            modulus: Buffer::zeros(limbs + 1 + L::constants_len(limbs)),
            operands: Buffer::zeros(operands),
            words: Buffer::zeros(3 * limbs * L::COUNT),
            words_len: 0,
            s2: Buffer::zeros(limbs),
        }
    }

    /// Imports the moduli of a group, which are equally wide, and `S^2`. Unused lanes repeat the last
    /// modulus.
    ///
    /// This is done once for consecutive groups whose moduli are the same references. Returns whether
    /// there was anything to do.
    pub(super) fn prepare(&mut self, group: Moduli<'m>) -> bool {
        // Moduli in unused lanes do not matter.
        let mut pairs = group.iter().zip(self.prepared);
        let is_new = group.len() > self.prepared.len() || !pairs.all(|(a, b)| a.is_same(b));
        if is_new {
            self.prepared = group;
            self.import_moduli(group);
            self.import_s2(group);
        }
        is_new
    }

    /// Like [`prepare`](Self::prepare), and computes `R^2`.
    pub(super) fn prepare_for_powers(&mut self, group: Moduli<'m>) -> bool {
        let is_new = self.prepare(group);
        if is_new {
            self.compute_r2(group[0].width());
        }
        is_new
    }

    /// Imports the moduli of a group and what every product needs.
    pub(super) fn import_moduli(&mut self, group: Moduli<'_>) {
        self.words_len = group[0].width().div_ceil(64) as usize * L::COUNT;
        let (limbs, rest) = self.modulus.split_at_mut(self.limbs);
        let (neg_inv, constants) = rest.split_at_mut(1);
        let [plain, _, words] = thirds(&mut self.words);
        let words = &mut words[..self.words_len];
        import_of_each::<L>(group, |modulus| modulus.limbs, words, limbs);
        for lane in 0..L::COUNT {
            let inverse = Secret::new(u64::from(*of_lane(group, lane).mod_inv));
            let inverse = inverse.wrapping_neg() & ((1 << L::RADIX_BITS) - 1);
            L::set_lane(&mut neg_inv[0], lane, inverse);
        }
        to_plain::<L>(limbs, plain);
        // The scratch space is the last part of the operands.
        let scratch = self.operands.len() - L::scratch_len(self.limbs);
        let scratch = &mut self.operands[scratch..];
        self.lanes.prepare(constants, limbs, &neg_inv[0], scratch);
    }

    /// Imports `S^2` modulo the moduli.
    pub(super) fn import_s2(&mut self, group: Moduli<'_>) {
        let [.., words] = thirds(&mut self.words);
        import_of_each::<L>(
            group,
            |modulus| modulus.r2,
            &mut words[..self.words_len],
            &mut self.s2,
        );
    }

    /// Computes `R^2` from `S^2`, for `S = 2^width < R < S^2`.
    ///
    /// `S^2` is `R * 2^f` for an `f` of `2 * width` less the bits of R. A Montgomery square doubles
    /// `f`. When `2^f` has reached R, a Montgomery product with a power of two removes the excess.
    pub(super) fn compute_r2(&mut self, width: u32) {
        let r_bits = self.limbs as u32 * L::RADIX_BITS;
        let lanes = self.lanes;
        let x = self.operands();
        lanes.square(x.r2, x.s2, x.modulus, x.scratch);
        let mut f = 2 * (2 * width - r_bits);
        while f < r_bits {
            lanes.square(x.value, x.r2, x.modulus, x.scratch);
            x.r2.copy_from_slice(x.value);
            f *= 2;
        }
        if f > r_bits {
            set_power_of_two::<L>(x.factor, 2 * r_bits - f);
            lanes.mul(x.value, x.r2, x.factor, x.modulus, x.scratch);
            x.r2.copy_from_slice(x.value);
        }
    }

    /// Imports a number for each lane to `value`.
    pub(super) fn load<'n>(&mut self, number: impl Fn(usize) -> &'n [Limb]) {
        let (x, words) = self.operands_and_words();
        import::<L>(number, 0, words, x.value);
    }

    /// Exports `value` to the places of the first lanes, below the modulus. `value` is below
    /// `BOUND * modulus`, or at most `(BOUND - 1) * modulus` after a multiplication by one: see
    /// [`Operands::retrieve`].
    pub(super) fn store<'o>(&mut self, out: impl Iterator<Item = &'o mut [Limb]>) {
        self.store_below(L::BOUND, out);
    }

    /// Like [`store`](Self::store), for a `value` below `bound * modulus`.
    pub(super) fn store_below<'o>(&mut self, bound: u8, out: impl Iterator<Item = &'o mut [Limb]>) {
        self.reduce(bound);
        let [_, plain, words] = thirds(&mut self.words);
        let words = &mut words[..self.words_len];
        join::<L>(plain, words);
        for (lane, out) in out.take(L::COUNT).enumerate() {
            store::<L>(words, lane, out);
        }
    }

    /// The plain limbs of `value` in every lane, below the modulus: see [`store`](Self::store).
    pub(super) fn reduced_value(&mut self) -> &[u64] {
        self.reduce(L::BOUND)
    }

    fn reduce(&mut self, bound: u8) -> &[u64] {
        let (x, [modulus, plain, spare]) = self.split();
        to_plain::<L>(x.value, plain);
        for _ in 1..bound {
            reduce_once::<L>(plain, modulus, spare);
        }
        plain
    }

    /// The operands of a computation.
    pub(super) fn operands(&mut self) -> Operands<'_, L> {
        self.split().0
    }

    /// The operands, and space for a number in words, as wide as the moduli: see [`import`].
    pub(super) fn operands_and_words(&mut self) -> (Operands<'_, L>, &mut [u64]) {
        let words_len = self.words_len;
        let (x, [.., words]) = self.split();
        (x, &mut words[..words_len])
    }

    /// The operands, and the [`thirds`] of the words.
    fn split(&mut self) -> (Operands<'_, L>, [&mut [u64]; 3]) {
        let (lanes, limbs) = (self.lanes, self.limbs);
        let (modulus, rest) = self.modulus.split_at(limbs);
        let mut buffer = &mut self.operands[..];
        let mut next = |len| part(&mut buffer, len);
        let operands = Operands {
            lanes,
            modulus: LaneModulus {
                limbs: modulus,
                neg_inv: &rest[0],
                constants: &rest[1..],
            },
            s2: &self.s2,
            r2: next(limbs),
            value: next(limbs),
            spare: next(limbs),
            factor: next(limbs),
            entry: next(self.entry_len),
            table: next(self.table_len),
            scratch: next(L::scratch_len(limbs)),
        };
        (operands, thirds(&mut self.words))
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
pub(crate) struct Operands<'a, L: Lanes> {
    pub(super) lanes: L,
    pub(crate) modulus: LaneModulus<'a, L::Limb>,
    /// `S^2 mod modulus`, below the modulus: `S = 2^width` is crypto-bigint's Montgomery radix. See
    /// [`Workspace::prepare`].
    pub(super) s2: &'a [L::Limb],
    /// `R^2 mod modulus`, below `BOUND * modulus`: see [`Workspace::prepare_for_powers`].
    pub(super) r2: &'a mut [L::Limb],
    /// First the bases, then the powers, finally the results.
    pub(crate) value: &'a mut [L::Limb],
    /// The place for the next result; swapped with `value`.
    pub(crate) spare: &'a mut [L::Limb],
    /// A second factor.
    pub(super) factor: &'a mut [L::Limb],
    /// An entry of the table for each lane.
    pub(crate) entry: &'a mut [L::Limb],
    /// `base^0 .. base^(2^w - 1)` in Montgomery form, each as [`Lanes::entry_len`] says. Public powers
    /// use it otherwise.
    pub(crate) table: &'a mut [L::Limb],
    pub(crate) scratch: &'a mut [L::Limb],
}

impl<L: Lanes> Operands<'_, L> {
    /// Multiplies `value` by a number outside the workspace.
    pub(super) fn multiply(&mut self, factor: &[L::Limb]) {
        let lanes = self.lanes;
        lanes.mul(self.spare, self.value, factor, self.modulus, self.scratch);
        mem::swap(&mut self.value, &mut self.spare);
    }

    /// Squares `value` `count` times.
    pub(super) fn square(&mut self, count: u32) {
        let (value, spare) = (&mut self.value, &mut self.spare);
        let lanes = self.lanes;
        lanes.square_times(value, spare, count, self.modulus, self.scratch);
    }

    /// Converts `value` to Montgomery form.
    pub(super) fn convert_to_montgomery(&mut self) {
        let r2 = mem::take(&mut self.r2);
        self.multiply(r2);
        self.r2 = r2;
    }

    /// Sets `value` to one in Montgomery form.
    pub(super) fn set_one(&mut self) {
        let lanes = self.lanes;
        set_power_of_two::<L>(self.factor, 0);
        lanes.mul(self.value, self.r2, self.factor, self.modulus, self.scratch);
    }

    /// Multiplies `value` by `factor`.
    pub(super) fn multiply_by_factor(&mut self) {
        let factor = mem::take(&mut self.factor);
        self.multiply(factor);
        self.factor = factor;
    }

    /// Converts `value` from Montgomery form, as the last operation.
    ///
    /// A product `T` is reduced below `T / R + (BOUND - 1) * modulus`. For any `T` below R it is at
    /// most `(BOUND - 1) * modulus`.
    pub(super) fn retrieve(&mut self) {
        set_power_of_two::<L>(self.factor, 0);
        self.multiply_by_factor();
        self.end();
    }

    /// Copies `value`, the result, to `spare`. They may have been swapped, so either may be the one
    /// that the workspace exports.
    pub(super) fn end(&mut self) {
        self.spare.copy_from_slice(self.value);
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

/// The moduli as plain limbs, plain limbs for export, and space for words or further plain limbs:
/// see `convert`.
fn thirds(words: &mut [u64]) -> [&mut [u64]; 3] {
    let third = words.len() / 3;
    let (first, rest) = words.split_at_mut(third);
    let (second, last) = rest.split_at_mut(third);
    [first, second, last]
}

/// Splits the next `len` elements off a buffer.
fn part<'a, T>(buffer: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    buffer
        .split_off_mut(..len)
        .expect("a buffer of the length that was asked for")
}
