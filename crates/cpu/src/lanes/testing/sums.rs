//! Checks of lane operations other than single products: repeated squarings, sums of products,
//! short reductions.

use alloc::vec;
use alloc::vec::Vec;

use num_bigint::BigUint;

use super::{Prepared, Random, number, pack, unpack};
use crate::lanes::Lanes;

/// Applies each operation to numbers up to the bound of the lane type. Compares with big integers:
/// the residue, and that the result stays below its bound.
pub(crate) fn check_sums<L: Lanes>(lanes: L, bits: u32) {
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
    let mut scratch = vec![L::ZERO; L::scratch_len(limbs)];
    let prepared = Prepared::new(lanes, &moduli, limbs, &mut scratch);
    let modulus = prepared.modulus();
    let mut numbers = || -> Vec<BigUint> {
        let each = moduli.iter().enumerate();
        each.map(|(lane, modulus)| {
            let bound: BigUint = modulus * L::BOUND;
            match lane % 3 {
                0 => bound - 1u8,
                _ => number::<L>(&mut random, bits + 2) % bound,
            }
        })
        .collect()
    };
    let [a, b, c, d] = [numbers(), numbers(), numbers(), numbers()];
    let [mut out, mut spare] = [(); 2].map(|()| vec![L::ZERO; limbs]);

    for count in 0..=5 {
        let mut value = pack::<L>(&a, limbs);
        let (value, _) = lanes.square_times(&mut value, &mut spare, count, modulus, &mut scratch);
        for (lane, m) in moduli.iter().enumerate() {
            let r_inv = (&r % m).modinv(m).unwrap_or_default();
            let expected = (0..count).fold(&a[lane] % m, |x, _| &x * &x * &r_inv % m);
            let power = unpack::<L>(value, lane);
            assert!(power < m * L::BOUND, "{bits} bits, {count} squarings");
            assert_eq!(power % m, expected, "{bits} bits, {count} squarings");
        }
    }

    let [x, y, z, w] = [&a, &b, &c, &d].map(|numbers| pack::<L>(numbers, limbs));
    let factors = [[&x[..], &y], [&z[..], &w]];
    lanes.add_products(&mut out, factors, modulus, &mut spare, &mut scratch);
    for (lane, m) in moduli.iter().enumerate() {
        let expected = &a[lane] * &c[lane] + &b[lane] * &d[lane];
        let sum = unpack::<L>(&out, lane);
        let bound = &expected / &r + m * (2 * L::BOUND - 2) + 1u8;
        assert!(sum < bound, "{bits} bits, lane {lane}");
        assert_eq!(sum * &r % m, expected % m, "{bits} bits, lane {lane}");
    }

    for count in 0..=3u32.min(limbs as u32) {
        let mut value = pack::<L>(&b, limbs);
        lanes.reduce_lowest(&mut value, count, modulus);
        let by = &one << (count * L::RADIX_BITS);
        for (lane, m) in moduli.iter().enumerate() {
            let reduced = unpack::<L>(&value, lane);
            let bound: BigUint = &b[lane] / &by + m;
            assert!(reduced <= bound, "{bits} bits, {count} limbs");
            assert_eq!(
                reduced * &by % m,
                &b[lane] % m,
                "{bits} bits, {count} limbs"
            );
        }
    }
}
