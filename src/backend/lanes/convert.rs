//! From the limbs of crypto-bigint to those of the lanes and back.

use core::hint::black_box;

use crypto_bigint::Limb;
use zeroize::Zeroize;

use super::Lanes;
#[cfg(test)]
use super::Modulus;

/// The most lanes that a vector has.
pub(super) const MAX_COUNT: usize = 8;

/// Bits `low .. low + bits` of `limbs`, zero beyond the end; `bits` is at most 63.
///
/// Every index and shift depends on `low` and `bits` alone, which are public.
#[inline(always)]
pub(super) fn bits_at(limbs: &[Limb], low: u32, bits: u32) -> u64 {
    let limb = |index: u32| limbs.get(index as usize).map_or(0, |limb| limb.0);
    let (index, shift) = (low / Limb::BITS, low % Limb::BITS);
    // A shift by one more than `BITS - 1 - shift` is one by `BITS` where `shift` is 0.
    let pair = |index| limb(index) >> shift | limb(index + 1) << 1 << (Limb::BITS - 1 - shift);
    #[allow(clippy::unnecessary_cast)] // A limb has 32 bits on some targets.
    let value = match Limb::BITS {
        32 => (pair(index) as u64) | (pair(index + 1) as u64) << 32,
        _ => pair(index) as u64,
    };
    value & ((1 << bits) - 1)
}

/// The limbs of all lanes as digits to base `2^RADIX_BITS` in plain words: those of one place in all lanes, then those
/// of the next. A limb may equal the base; a digit is below it.
pub(super) fn to_digits<L: Lanes>(limbs: &[L::Limb], digits: &mut [u64]) {
    let mask = (1 << L::RADIX_BITS) - 1;
    let mut carry = [0; MAX_COUNT];
    for (limb, digits) in limbs.iter().zip(digits.chunks_exact_mut(L::COUNT)) {
        for lane in 0..L::COUNT {
            let sum = L::lane(limb, lane) + carry[lane];
            digits[lane] = sum & mask;
            carry[lane] = sum >> L::RADIX_BITS;
        }
    }
    carry.zeroize();
}

/// Subtracts `modulus` from the number in each lane, unless that would be negative. Without a branch. `spare` is as
/// long and holds the differences afterwards.
pub(super) fn reduce_once<L: Lanes>(digits: &mut [u64], modulus: &[u64], spare: &mut [u64]) {
    let mask = (1 << L::RADIX_BITS) - 1;
    let mut borrow = [0; MAX_COUNT];
    let places = digits
        .chunks_exact(L::COUNT)
        .zip(modulus.chunks_exact(L::COUNT));
    for ((digits, modulus), spare) in places.zip(spare.chunks_exact_mut(L::COUNT)) {
        for lane in 0..L::COUNT {
            let difference = digits[lane].wrapping_sub(modulus[lane]);
            let difference = difference.wrapping_sub(borrow[lane]);
            spare[lane] = difference & mask;
            borrow[lane] = difference >> 63;
        }
    }
    // All ones if the difference is negative. The compiler does not get to know that there are two cases: it would make
    // a branch of them.
    let mut keep = black_box(borrow.map(|borrow: u64| borrow.wrapping_neg()));
    let places = digits.chunks_exact_mut(L::COUNT);
    for (digits, spare) in places.zip(spare.chunks_exact(L::COUNT)) {
        for lane in 0..L::COUNT {
            digits[lane] = digits[lane] & keep[lane] | spare[lane] & !keep[lane];
        }
    }
    keep.zeroize();
}

/// Writes the number of one lane, which fits, to `limbs`.
pub(super) fn pack<L: Lanes>(digits: &[u64], lane: usize, limbs: &mut [Limb]) {
    let digit = |place: u32| {
        let index = place as usize * L::COUNT + lane;
        digits.get(index).copied().unwrap_or(0)
    };
    for (limb, low) in limbs.iter_mut().zip((0..).step_by(Limb::BITS as usize)) {
        let (mut place, shift) = (low / L::RADIX_BITS, low % L::RADIX_BITS);
        let mut bits = digit(place) >> shift;
        let mut count = L::RADIX_BITS - shift;
        while count < Limb::BITS {
            place += 1;
            bits |= digit(place) << count;
            count += L::RADIX_BITS;
        }
        *limb = Limb(bits as _);
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use crate::backend::lanes::testing::{Random, number, pack as pack_lanes, unpack};
    use alloc::vec;
    use alloc::vec::Vec;
    use num_bigint::BigUint;

    /// Four lanes of plain words in a radix of which a limb may equal the base.
    #[derive(Clone, Copy)]
    struct Plain;

    impl Lanes for Plain {
        type Limb = [u64; 4];
        const COUNT: usize = 4;
        const RADIX_BITS: u32 = 51;
        const BOUND: u8 = 2;
        const ZERO: [u64; 4] = [0; 4];

        fn limb_count(bits: u32) -> usize {
            (bits + 2).div_ceil(51) as usize
        }

        fn scratch_len(_: usize) -> usize {
            0
        }

        fn set_lane(limb: &mut [u64; 4], lane: usize, value: u64) {
            limb[lane] = value;
        }

        fn lane(limb: &[u64; 4], lane: usize) -> u64 {
            limb[lane]
        }

        fn mul(
            self,
            _: &mut [[u64; 4]],
            _: &[[u64; 4]],
            _: &[[u64; 4]],
            _: Modulus<'_, [u64; 4]>,
            _: &mut [[u64; 4]],
        ) {
            unreachable!("numbers are only converted")
        }

        fn square(
            self,
            _: &mut [[u64; 4]],
            _: &[[u64; 4]],
            _: Modulus<'_, [u64; 4]>,
            _: &mut [[u64; 4]],
        ) {
            unreachable!("numbers are only converted")
        }

        fn select(self, _: &mut [[u64; 4]], _: &[[u64; 4]], _: &[u8]) {
            unreachable!("numbers are only converted")
        }
    }

    fn value(limbs: &[Limb]) -> BigUint {
        limbs
            .iter()
            .rev()
            .fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
    }

    #[test]
    fn limbs_become_digits() {
        let limbs: Vec<Limb> = (1..=9u64)
            .map(|i| Limb(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i) as _))
            .collect();
        for bits in [51, 52] {
            let digits = (0..limbs.len() as u32 * Limb::BITS / bits + 2)
                .rev()
                .map(|i| bits_at(&limbs, i * bits, bits));
            let sum = digits.fold(BigUint::ZERO, |value, digit| (value << bits) + digit);
            assert_eq!(sum, value(&limbs));
        }
    }

    #[test]
    fn numbers_of_all_lanes_are_reduced_and_packed() {
        let mut random = Random(1);
        for bits in [64, 512, 1024, 1088] {
            let limbs = Plain::limb_count(bits);
            let moduli: Vec<_> = (0..4)
                .map(|_| number::<Plain>(&mut random, bits) | BigUint::from(1u8) << (bits - 1))
                .collect();
            let one = BigUint::from(1u8);
            for numbers in [
                moduli.clone(),
                moduli.iter().map(|m| m - &one).collect(),
                moduli.iter().map(|m| m + &one).collect(),
                moduli.iter().map(|m| (m << 1u8) - &one).collect(),
                vec![BigUint::ZERO; 4],
            ] {
                let [mut digits, mut modulus, mut spare] = [(); 3].map(|()| vec![0; 4 * limbs]);
                to_digits::<Plain>(&pack_lanes::<Plain>(&numbers, limbs), &mut digits);
                to_digits::<Plain>(&pack_lanes::<Plain>(&moduli, limbs), &mut modulus);
                reduce_once::<Plain>(&mut digits, &modulus, &mut spare);
                for lane in 0..4 {
                    let mut packed = vec![Limb::MAX; (bits / Limb::BITS) as usize];
                    pack::<Plain>(&digits, lane, &mut packed);
                    assert_eq!(
                        value(&packed),
                        &numbers[lane] % &moduli[lane],
                        "{bits} bits"
                    );
                }
            }
        }
    }

    #[test]
    fn a_limb_may_equal_the_base() {
        // 2^51 * 2^51 + 2^51 to base 2^51.
        let limbs = [[1 << 51; 4], [1 << 51; 4], [0; 4]];
        let mut digits = [0; 12];
        to_digits::<Plain>(&limbs, &mut digits);
        let mut packed = [Limb::ZERO; 128 / Limb::BITS as usize];
        pack::<Plain>(&digits, 3, &mut packed);
        assert_eq!(value(&packed), unpack::<Plain>(&limbs, 3));
    }
}
