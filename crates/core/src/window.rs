//! Constant-time recoding of exponents into digits of a fixed window.
//!
//! The fixed-window (2^w-ary) method is algorithm 14.82 of the Handbook of Applied Cryptography. An
//! exponent of a public length is cut into digits of `w` bits. Every digit, 0 included, costs `w`
//! squarings and one multiplication by a table entry. The number of digits depends only on the
//! public length and on `w`.

use crypto_bigint::Limb;

use crate::limbs::bits_at;

/// A window size: the number of exponent bits in each digit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window(u32);

impl Window {
    /// The smallest window, in bits.
    pub const MIN_BITS: u32 = 1;
    /// The largest window, in bits.
    pub const MAX_BITS: u32 = 8;

    /// A window of `bits` bits, or `None` unless `bits` is in `1..=8`.
    #[must_use]
    pub const fn new(bits: u32) -> Option<Self> {
        if bits >= Self::MIN_BITS && bits <= Self::MAX_BITS {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// Bits in one digit, `1..=8`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Entries in a table of powers `base^0 ..= base^(2^bits - 1)`.
    #[must_use]
    pub const fn table_len(self) -> usize {
        1 << self.0
    }

    /// Digits in an exponent of `exponent_bits` bits. The most significant one may be short.
    #[must_use]
    pub const fn digit_count(self, exponent_bits: u32) -> usize {
        exponent_bits.div_ceil(self.0) as usize
    }
}

/// Recodes the low `exponent_bits` bits of `exponent` (limbs, least significant first) into
/// `digits`, least significant first: `exponent mod 2^exponent_bits = sum of digits[i] * 2^(i *
/// window.bits())`.
///
/// `exponent_bits` and the window are public; the exponent is secret. No branch and no address
/// depends on it.
///
/// # Panics
///
/// If `exponent_bits` is larger than the width of `exponent`, or `digits` is not
/// [`window.digit_count(exponent_bits)`](Window::digit_count) long.
pub fn recode_into(exponent: &[Limb], exponent_bits: u32, window: Window, digits: &mut [u8]) {
    let width = exponent.len() as u64 * u64::from(Limb::BITS);
    assert!(
        u64::from(exponent_bits) <= width,
        "exponent_bits is larger than the exponent's width"
    );
    assert_eq!(
        digits.len(),
        window.digit_count(exponent_bits),
        "wrong number of digits"
    );

    let mut low = 0;
    for digit in digits {
        let bits = window.bits().min(exponent_bits - low);
        *digit = bits_at(exponent, low, bits) as u8;
        low += bits;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use crypto_bigint::{U64, U128, U256, Unsigned};

    use super::*;

    fn windows() -> impl Iterator<Item = Window> {
        (Window::MIN_BITS..=Window::MAX_BITS).filter_map(Window::new)
    }

    fn recode<U: Unsigned>(exponent: &U, exponent_bits: u32, window: Window) -> Vec<u8> {
        let mut digits = vec![0; window.digit_count(exponent_bits)];
        recode_into(exponent.as_limbs(), exponent_bits, window, &mut digits);
        digits
    }

    /// The bits of the value of the digits, straight from the definition.
    fn bits_of(digits: &[u8], window: Window) -> Vec<bool> {
        digits
            .iter()
            .flat_map(|d| (0..window.bits()).map(move |i| d >> i & 1 == 1))
            .collect()
    }

    #[test]
    fn rejects_sizes_out_of_range() {
        assert_eq!(Window::new(0), None);
        assert_eq!(Window::new(9), None);
    }

    #[test]
    fn digits_are_the_exponent_for_every_window_and_length() {
        let exponent =
            U256::from_be_hex("fedcba98765432100123456789abcdefdeadbeefcafebabe8000000000000001");
        for window in windows() {
            for exponent_bits in 0..=U256::BITS {
                let digits = recode(&exponent, exponent_bits, window);
                let bits = bits_of(&digits, window);
                assert_eq!(
                    bits.len() as u32,
                    exponent_bits.next_multiple_of(window.bits())
                );
                for (i, bit) in (0u32..).zip(bits) {
                    let expected = i < exponent_bits && exponent.bit_vartime(i);
                    assert_eq!(bit, expected, "bit {i} of {exponent_bits}, {window:?}");
                }
            }
        }
    }

    #[test]
    fn every_digit_stays_below_the_table() {
        for window in windows() {
            for digit in recode(&U128::MAX, U128::BITS, window) {
                assert!(usize::from(digit) < window.table_len());
            }
        }
    }

    #[test]
    #[should_panic(expected = "larger than the exponent's width")]
    fn more_bits_than_the_exponent_has() {
        recode(&U64::ONE, 65, windows().next().unwrap());
    }
}
