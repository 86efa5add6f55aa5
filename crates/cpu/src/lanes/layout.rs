//! Buffers that are wiped as a whole, and the layout of those of a workspace. A few large
//! allocations take less time than many, which matters for few instances.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use batch_modexp_core::window::Window;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

use super::Lanes;

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

/// Numbers in the representation of the lanes.
pub(super) struct Operands<'a, L> {
    pub(super) modulus: &'a mut [L],
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
    /// The further constants of the modulus that multiplications need.
    pub(super) constants: &'a mut [L],
    /// `-1 / modulus mod 2^RADIX_BITS`.
    pub(super) neg_inv: &'a mut L,
}

/// Numbers in plain words, for import and export.
pub(super) struct Words<'a> {
    /// The modulus as digits: see `convert`.
    pub(super) modulus: &'a mut [u64],
    /// Digits for export, and scratch space for it.
    pub(super) plain: [&'a mut [u64]; 2],
}

/// Exponents.
pub(super) struct Digits<'a> {
    /// The digits of one lane, least significant first.
    pub(super) recoded: &'a mut [u8],
    /// The least significant digits of all lanes, then the next ones.
    pub(super) of_lanes: &'a mut [u8],
}

impl<'a, T> Operands<'a, T> {
    /// The total number of lane limbs, if a number has `limbs` limbs.
    pub(super) fn len<L: Lanes<Limb = T>>(lanes: L, limbs: usize, window: Window) -> usize {
        let (scratch, constants) = (L::scratch_len(limbs), L::constants_len(limbs));
        let entries = (1 + window.table_len()) * lanes.entry_len(limbs, window);
        5 * limbs + entries + scratch + constants + 1
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
            modulus: next(limbs),
            r2: next(limbs),
            value: next(limbs),
            spare: next(limbs),
            factor: next(limbs),
            entry: next(entry_len),
            table: next(window.table_len() * entry_len),
            scratch: next(L::scratch_len(limbs)),
            constants: next(L::constants_len(limbs)),
            neg_inv: &mut next(1)[0],
        }
    }
}

impl<'a> Words<'a> {
    /// The total number of words, if a number has `limbs` limbs in `lanes` lanes.
    pub(super) fn len(limbs: usize, lanes: usize) -> usize {
        3 * limbs * lanes
    }

    /// Divides a buffer of that length.
    pub(super) fn new(mut buffer: &'a mut [u64]) -> Self {
        let third = buffer.len() / 3;
        let mut next = || part(&mut buffer, third);
        Self {
            modulus: next(),
            plain: [next(), next()],
        }
    }

    /// Space for numbers of `width` bits in `lanes` lanes, as words. It is the space of digits for
    /// export.
    pub(super) fn of(&mut self, width: u32, lanes: usize) -> &mut [u64] {
        &mut self.plain[1][..width.div_ceil(64) as usize * lanes]
    }
}

impl<'a> Digits<'a> {
    /// The total number of digits, if an exponent has `count` digits.
    pub(super) fn len(count: usize, lanes: usize) -> usize {
        (1 + lanes) * count
    }

    /// Divides a buffer of that length.
    pub(super) fn new(buffer: &'a mut [u8], lanes: usize) -> Self {
        let (recoded, of_lanes) = buffer.split_at_mut(buffer.len() / (1 + lanes));
        Self { recoded, of_lanes }
    }
}

/// Splits the next `len` elements off a buffer.
fn part<'a, T>(buffer: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    buffer
        .split_off_mut(..len)
        .expect("a buffer of the length that was asked for")
}
