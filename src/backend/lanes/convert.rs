//! From the limbs of crypto-bigint to those of the lanes and back.

use crypto_bigint::Limb;

/// Bits `low .. low + bits` of `limbs`, zero beyond the end; `bits` is at most 63.
///
/// Every index and shift depends on `low` and `bits` alone, which are public.
pub(super) fn bits_at(limbs: &[Limb], low: u32, bits: u32) -> u64 {
    let limb = |index: u32| {
        limbs
            .get(index as usize)
            .map_or(0, |limb| u128::from(limb.0))
    };
    let (index, shift) = (low / Limb::BITS, low % Limb::BITS);
    let mut value = limb(index) | limb(index + 1) << Limb::BITS;
    if Limb::BITS == 32 {
        value |= limb(index + 2) << (2 * Limb::BITS);
    }
    (value >> shift) as u64 & ((1 << bits) - 1)
}

/// Writes the number with digits `digit(0)`, `digit(1)`, ... to base `2^bits` to `limbs`; a digit is at
/// most `2^bits`. What does not fit is dropped.
pub(super) fn from_digits(limbs: &mut [Limb], bits: u32, digit: impl Fn(usize) -> u64) {
    let (mut pending, mut pending_bits, mut next) = (0u128, 0, 0);
    for limb in limbs {
        while pending_bits < Limb::BITS {
            pending += u128::from(digit(next)) << pending_bits;
            pending_bits += bits;
            next += 1;
        }
        *limb = Limb(pending as _);
        pending >>= Limb::BITS;
        pending_bits -= Limb::BITS;
    }
}

/// Subtracts `modulus` from `value`, unless that would be negative: `[0, 2 * modulus)` to
/// `[0, modulus)`. Without a branch.
pub(super) fn reduce_once(value: &mut [Limb], modulus: &[Limb]) {
    let mut borrow = Limb::ZERO;
    for (limb, modulus) in value.iter_mut().zip(modulus) {
        (*limb, borrow) = limb.borrowing_sub(*modulus, borrow);
    }
    // All ones if the difference is negative: add the modulus back.
    let mut carry = Limb::ZERO;
    for (limb, modulus) in value.iter_mut().zip(modulus) {
        (*limb, carry) = limb.carrying_add(*modulus & borrow, carry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use num_bigint::BigUint;

    fn value(limbs: &[Limb]) -> BigUint {
        limbs
            .iter()
            .rev()
            .fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
    }

    #[test]
    fn there_and_back() {
        let limbs: Vec<Limb> = (1..=9u64)
            .map(|i| Limb(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i) as _))
            .collect();
        for bits in [51, 52] {
            let digits: Vec<u64> = (0..limbs.len() as u32 * Limb::BITS / bits + 2)
                .map(|i| bits_at(&limbs, i * bits, bits))
                .collect();
            let sum = digits
                .iter()
                .rev()
                .fold(BigUint::ZERO, |value, digit| (value << bits) + digit);
            assert_eq!(sum, value(&limbs));
            let mut back = vec![Limb::ZERO; limbs.len()];
            from_digits(&mut back, bits, |i| digits.get(i).copied().unwrap_or(0));
            assert_eq!(back, limbs);
        }
    }

    #[test]
    fn a_digit_may_equal_the_base() {
        // 2^51 * 2^51 + 2^51 in digits to base 2^51.
        let mut limbs = [Limb::ZERO; 128 / Limb::BITS as usize];
        from_digits(&mut limbs, 51, |i| if i < 2 { 1 << 51 } else { 0 });
        assert_eq!(value(&limbs), (BigUint::from(1u8) << 102u32) + (1u64 << 51));
    }

    #[test]
    fn reduces_to_below_the_modulus() {
        let modulus = [Limb(5), Limb(7)];
        for (v, expected) in [
            ([0, 0], [0, 0]),
            ([4, 7], [4, 7]),
            ([5, 7], [0, 0]),
            ([6, 7], [1, 0]),
            ([9, 14], [4, 7]),
        ] {
            let mut v = v.map(Limb);
            reduce_once(&mut v, &modulus);
            assert_eq!(v, expected.map(Limb));
        }
    }
}
