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

/// Writes the number with digits `digit(0)`, `digit(1)`, ... to base `2^bits` to `limbs`, and returns the
/// limb above them. A digit is at most `2^bits`, and the number fits into `limbs` and that limb.
pub(super) fn from_digits(limbs: &mut [Limb], bits: u32, digit: impl Fn(usize) -> u64) -> Limb {
    let (mut pending, mut pending_bits, mut next) = (0u128, 0, 0);
    let mut take = || {
        while pending_bits < Limb::BITS {
            pending += u128::from(digit(next)) << pending_bits;
            pending_bits += bits;
            next += 1;
        }
        let limb = Limb(pending as _);
        pending >>= Limb::BITS;
        pending_bits -= Limb::BITS;
        limb
    };
    for limb in limbs {
        *limb = take();
    }
    take()
}

/// Subtracts `modulus` from `value` and the limb `high` above it, unless that would be negative. Without
/// a branch.
pub(super) fn reduce_once(value: &mut [Limb], high: &mut Limb, modulus: &[Limb]) {
    let mut borrow = Limb::ZERO;
    for (limb, modulus) in value.iter_mut().zip(modulus) {
        (*limb, borrow) = limb.borrowing_sub(*modulus, borrow);
    }
    (*high, borrow) = high.borrowing_sub(Limb::ZERO, borrow);
    // All ones if the difference is negative: add the modulus back.
    let mut carry = Limb::ZERO;
    for (limb, modulus) in value.iter_mut().zip(modulus) {
        (*limb, carry) = limb.carrying_add(*modulus & borrow, carry);
    }
    *high = high.wrapping_add(carry);
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
            let high = from_digits(&mut back, bits, |i| digits.get(i).copied().unwrap_or(0));
            assert_eq!((back, high), (limbs.clone(), Limb::ZERO));
        }
    }

    #[test]
    fn a_digit_may_equal_the_base() {
        // 2^51 * 2^51 + 2^51 in digits to base 2^51.
        let mut limbs = [Limb::ZERO; 128 / Limb::BITS as usize];
        let high = from_digits(&mut limbs, 51, |i| if i < 2 { 1 << 51 } else { 0 });
        assert_eq!(high, Limb::ZERO);
        assert_eq!(value(&limbs), (BigUint::from(1u8) << 102u32) + (1u64 << 51));
    }

    #[test]
    fn what_does_not_fit_is_returned() {
        for bits in [51, 52] {
            let mut limbs = [Limb::ZERO; 3];
            let one_bit_more = |i: usize| {
                let (digit, bit) = (3 * Limb::BITS / bits, 3 * Limb::BITS % bits);
                if i as u32 == digit { 1 << bit } else { 0 }
            };
            let high = from_digits(&mut limbs, bits, one_bit_more);
            assert_eq!((limbs, high), ([Limb::ZERO; 3], Limb::ONE));
        }
    }

    #[test]
    fn reduces_to_below_the_modulus() {
        let modulus = [Limb(5), Limb::MAX];
        for (v, expected) in [
            ([0, 0, 0], [0, 0, 0]),
            ([4, Limb::MAX.0, 0], [4, Limb::MAX.0, 0]),
            ([5, Limb::MAX.0, 0], [0, 0, 0]),
            ([6, Limb::MAX.0, 0], [1, 0, 0]),
            ([0, 0, 1], [Limb::MAX.0 - 4, 0, 0]),
            ([9, Limb::MAX.0 - 1, 1], [4, Limb::MAX.0, 0]),
        ] {
            let [mut low, mut middle, mut high] = v.map(Limb);
            let mut value = [low, middle];
            reduce_once(&mut value, &mut high, &modulus);
            [low, middle] = value;
            assert_eq!([low, middle, high], expected.map(Limb));
        }
    }
}
