//! Checks of repeated squarings.

use alloc::vec;
use alloc::vec::Vec;

use num_bigint::BigUint;

use super::{Prepared, Random, number, pack, unpack};
use crate::lanes::Lanes;

/// Squares numbers up to the bound of the lane type. Compares with big integers: the residue, and
/// that the result stays below its bound.
pub(crate) fn check_squarings<L: Lanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let r = BigUint::from(1u8) << (limbs as u32 * L::RADIX_BITS);
    let mut random = Random(u64::from(bits) + 3);
    let one = BigUint::from(1u8);
    let moduli: Vec<BigUint> = (0..L::COUNT)
        .map(|lane| match lane % 4 {
            0 => (&one << bits) - 1u8,
            3 => BigUint::from(2 * (random.next() >> 40) + 1),
            _ => number::<L>(&mut random, bits) | &one | &one << (bits - 1),
        })
        .collect();
    let inverse = |m: &BigUint| (&r % m).modinv(m).unwrap_or_default();
    let r_inv: Vec<_> = moduli.iter().map(inverse).collect();
    let mut scratch = vec![L::ZERO; L::scratch_len(limbs)];
    let prepared = Prepared::new(lanes, &moduli, limbs, &mut scratch);
    let modulus = prepared.modulus();
    let each = moduli.iter().enumerate();
    let numbers = each.map(|(lane, modulus)| {
        let bound: BigUint = modulus * L::BOUND;
        match lane % 3 {
            0 => bound - 1u8,
            _ => number::<L>(&mut random, bits + 2) % bound,
        }
    });
    let numbers: Vec<_> = numbers.collect();

    for count in 0..=5 {
        let (mut value, mut spare) = (pack::<L>(&numbers, limbs), vec![L::ZERO; limbs]);
        let (value, spare) = (&mut &mut value[..], &mut &mut spare[..]);
        lanes.square_times(value, spare, count, modulus, &mut scratch);
        for (lane, m) in moduli.iter().enumerate() {
            let r_inv = &r_inv[lane];
            let expected = (0..count).fold(&numbers[lane] % m, |x, _| &x * &x * r_inv % m);
            let power = unpack::<L>(value, lane);
            assert!(power < m * L::BOUND, "{bits} bits, {count} squarings");
            assert_eq!(power % m, expected, "{bits} bits, {count} squarings");
        }
    }
}
