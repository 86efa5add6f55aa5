//! Tables of powers of one base. Every further power is a product of entries.
//!
//! An exponent is cut into digits of `w` bits, `e = sum of e_j * 2^(w * j)`. Row `j` of the table
//! has the powers `base^(d * 2^(w * j))` for every digit `d`. So `base^e` is the product of one
//! entry of each row: one multiplication per digit and no squaring. Source: E. F. Brickell, D. M.
//! Gordon, K. S. McCurley and D. B. Wilson, "Fast exponentiation with precomputation", EUROCRYPT
//! '92; Handbook of Applied Cryptography, 14.109.
//!
//! Entries are in the Montgomery form of the engine that made the table. Those of row 0 are
//! ordinary numbers. A product of Montgomery forms and one ordinary number is an ordinary number,
//! so the result needs no conversion.

mod rows;

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::Borrow;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Choice, CtEq, Limb, Unsigned};

use self::rows::Layout;
pub use self::rows::{Rows, select};
use crate::Error;
use crate::monty::{Modulus, ModulusRef, parts};
use crate::secret::{Secret, scrubbed};
use crate::width::{check_exponent, width};
use crate::window::{Window, recode_into};

/// How an engine represents numbers in tables, and the windows it supports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TableForm {
    /// Bits in a limb of the engine.
    pub radix_bits: u32,
    /// Limbs in a number.
    pub limbs: usize,
    /// The largest window for secret exponents, in bits, with which a look-up costs less time than
    /// the products it saves.
    pub largest_window: u32,
}

/// The exponents that a table serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exponents {
    /// The length of the longest ones.
    pub(crate) bits: u32,
    /// Whether they are in two's complement.
    pub(crate) are_signed: bool,
    /// Whether their digits may be indices.
    pub(crate) are_public: bool,
}

/// The smallest window of a table, in bits. A row with fewer entries than SIMD lanes would not fill
/// a vector.
const SMALLEST_WINDOW: u32 = 3;

/// The largest window for public exponents, in bits: a digit is an octet. A look-up costs the same
/// with every window, so only memory and the time to fill the table limit it.
const LARGEST_PUBLIC_WINDOW: u32 = Window::MAX_BITS;

/// The table of a [`FixedBase`](crate::FixedBase) or a
/// [`FixedBaseVartime`](crate::FixedBaseVartime), independent of the caller's number type.
pub struct Table {
    form: TableForm,
    window: Window,
    exponents: Exponents,
    modulus: Modulus,
    /// See [`rows`](Self::rows). Has spare words so that rows can start at a multiple of 64 octets.
    words: Secret<Vec<u64>>,
}

impl Table {
    /// A table of at most `max_bytes` octets, all zero. Fails with the size of the smallest table,
    /// in octets.
    pub(crate) fn zeros<U: Unsigned>(
        params: &MontyParams<U>,
        form: TableForm,
        exponents: Exponents,
        max_bytes: usize,
    ) -> Result<Self, usize> {
        let window = window(form, exponents, max_bytes)?;
        let len = bytes(form, window, exponents.bits) / size_of::<u64>();
        Ok(Self {
            form,
            window,
            exponents,
            modulus: ModulusRef::of(params).into(),
            words: Secret::new(vec![0; len]),
        })
    }

    /// The length, in bits, of the longest exponents that the table serves.
    #[must_use]
    pub fn exponent_bits(&self) -> u32 {
        self.exponents.bits
    }

    /// Whether exponents are in two's complement.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.exponents.are_signed
    }

    /// Bits in a digit of an exponent, 3 to 6 for secret exponents and 3 to 8 for public ones. Each
    /// digit costs one product.
    #[must_use]
    pub fn window_bits(&self) -> u32 {
        self.window.bits()
    }

    /// The size of the table in octets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// The number representation of the engine that made the table.
    #[must_use]
    pub fn form(&self) -> TableForm {
        self.form
    }

    /// The modulus.
    #[must_use]
    pub fn modulus(&self) -> ModulusRef<'_> {
        self.modulus.by_ref()
    }

    /// The entries as 64-bit words, row by row.
    ///
    /// For secret exponents a row has, for each limb from the lowest, that limb of all entries in
    /// turn. A vector of words thus holds one limb of several entries. For public exponents the
    /// limbs of each entry stand together, so that a look-up reads few cache lines.
    #[must_use]
    pub fn rows(&self) -> Rows<&[u64]> {
        let (layout, start) = (self.layout(), self.start());
        Rows {
            words: &self.words[start..][..layout.words()],
            layout,
        }
    }

    /// The same rows for writing, and the modulus.
    pub fn rows_mut(&mut self) -> (Rows<&mut [u64]>, ModulusRef<'_>) {
        let (layout, start) = (self.layout(), self.start());
        let rows = Rows {
            words: &mut self.words[start..][..layout.words()],
            layout,
        };
        (rows, self.modulus.by_ref())
    }

    /// The number of digits of exponents of `exponent_bits` bits, at least 1: row 0 is always used.
    #[must_use]
    pub fn digit_count(&self, exponent_bits: u32) -> usize {
        self.window.digit_count(exponent_bits).max(1)
    }

    /// Writes the digits of an exponent of `exponent_bits` bits, least significant first.
    ///
    /// An exponent in two's complement is first raised by half of its range, so that it is not
    /// negative. Row 0 compensates.
    pub fn recode(&self, exponent: &[Limb], exponent_bits: u32, digits: &mut [u8]) {
        if exponent_bits == 0 {
            return digits.fill(0);
        }
        recode_into(exponent, exponent_bits, self.window, digits);
        if let Some(top) = digits.last_mut().filter(|_| self.is_signed()) {
            *top ^= 1 << ((exponent_bits - 1) % self.window.bits());
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            limbs: self.form.limbs,
            window: self.window,
            count: self.digit_count(self.exponents.bits),
            are_public: self.exponents.are_public,
        }
    }

    /// The index of the first word at a multiple of 64 octets. Only running times depend on it.
    fn start(&self) -> usize {
        self.words.as_ptr().align_offset(64).min(ALIGNMENT_WORDS)
    }
}

/// Spare words so that rows can start at a cache line.
const ALIGNMENT_WORDS: usize = 7;

/// Checks exponents of `exponent_bits` bits for a table. `table_bits` is the length of the longest
/// exponents that it serves, and whether they are signed.
///
/// # Errors
///
/// [`Error::TableExponentBits`] and [`Error::ExponentBits`].
pub fn check_exponents<U: Unsigned, E: Borrow<U>>(
    exponents: &[E],
    exponent_bits: u32,
    (table_bits, is_signed): (u32, bool),
) -> Result<(), Error> {
    if exponent_bits > table_bits || is_signed && exponent_bits != table_bits {
        return Err(Error::TableExponentBits {
            exponent_bits,
            table_bits,
        });
    }
    for (index, exponent) in exponents.iter().enumerate() {
        check_exponent(index, width(exponent.borrow()), exponent_bits)?;
    }
    Ok(())
}

/// The factor in row 0 of a table for signed exponents.
///
/// Writes `inverse^(2^squarings) mod modulus` to `out`, or 1 without squarings. Returns whether
/// `base * inverse` is 1.
pub(crate) fn power_of_inverse(
    modulus: ModulusRef<'_>,
    base: &[Limb],
    inverse: &[Limb],
    squarings: Option<u32>,
    out: &mut [Limb],
) -> Choice {
    let mut numbers = Secret::new(vec![Limb::ZERO; 4 * modulus.limbs.len()]);
    let [mut power, mut spare, base_form, one] = parts(&mut numbers);
    scrubbed(|| {
        modulus.to_montgomery(base, base_form);
        modulus.to_montgomery(inverse, power);
        modulus.to_montgomery(&[Limb::ONE], one);
        modulus.mul(base_form, power, spare);
        let is_inverse = spare.ct_eq(one);
        match squarings {
            None => power.copy_from_slice(one),
            Some(squarings) => modulus.square_times(squarings, &mut power, &mut spare),
        }
        modulus.mul(&[Limb::ONE], power, out);
        is_inverse
    })
}

/// The size in octets of a table with this window, or the largest number if that overflows.
fn bytes(form: TableForm, window: Window, exponent_bits: u32) -> usize {
    let rows = window.digit_count(exponent_bits).max(1);
    let words = rows
        .saturating_mul(window.table_len())
        .saturating_mul(form.limbs)
        .saturating_add(ALIGNMENT_WORDS);
    words.saturating_mul(size_of::<u64>())
}

/// The smallest window with the fewest digits among those whose table has at most `max_bytes`
/// octets. Fails with the size of the smallest table.
fn window(form: TableForm, exponents: Exponents, max_bytes: usize) -> Result<Window, usize> {
    let largest = match exponents.are_public {
        true => LARGEST_PUBLIC_WINDOW,
        false => form.largest_window,
    };
    let windows = (SMALLEST_WINDOW..=largest).filter_map(Window::new);
    let bytes = |window: Window| bytes(form, window, exponents.bits);
    let smallest = Window::new(SMALLEST_WINDOW).map(bytes);
    windows
        .filter(|window| bytes(*window) <= max_bytes.min(usize::MAX - 1))
        .min_by_key(|window| window.digit_count(exponents.bits))
        .ok_or(smallest.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: TableForm = TableForm {
        radix_bits: 64,
        limbs: 32,
        largest_window: 6,
    };

    #[test]
    fn the_budget_decides_the_window() {
        for (bits, are_public, max_bytes, expected) in [
            (2048, false, usize::MAX, Ok(6)),
            (2048, true, usize::MAX, Ok(8)),
            // 342 rows of 64 entries of 256 octets each.
            (2048, true, 342 * 64 * 256 + 56, Ok(6)),
            (2048, true, 342 * 64 * 256 + 55, Ok(5)),
            (2048, false, 342 * 64 * 256 + 55, Ok(5)),
            // The smallest window with as few digits as the largest one.
            (10, false, usize::MAX, Ok(5)),
            (21, true, usize::MAX, Ok(7)),
            (0, true, usize::MAX, Ok(3)),
            (2048, false, 1 << 20, Err(683 * 8 * 256 + 56)),
        ] {
            let exponents = Exponents {
                bits,
                are_signed: false,
                are_public,
            };
            let window = window(FORM, exponents, max_bytes).map(Window::bits);
            assert_eq!(window, expected, "{bits} bits in {max_bytes} octets");
        }
    }
}
