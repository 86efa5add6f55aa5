//! Conversions of plain words, compared with num-bigint.

use super::*;
use crate::lanes::LaneModulus;
use crate::lanes::testing::{Random, number, pack as pack_lanes, unpack};
use alloc::vec;
use alloc::vec::Vec;
use num_bigint::BigUint;

/// Four lanes of plain words in a radix where a limb may equal the base.
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
        _: LaneModulus<'_, [u64; 4]>,
        _: &mut [[u64; 4]],
    ) {
        unreachable!("numbers are only converted")
    }

    fn square(
        self,
        _: &mut [[u64; 4]],
        _: &[[u64; 4]],
        _: LaneModulus<'_, [u64; 4]>,
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
            let [mut plain, mut modulus, mut spare] = [(); 3].map(|()| vec![0; 4 * limbs]);
            to_plain::<Plain>(&pack_lanes::<Plain>(&numbers, limbs), &mut plain);
            to_plain::<Plain>(&pack_lanes::<Plain>(&moduli, limbs), &mut modulus);
            reduce_once::<Plain>(&mut plain, &modulus, &mut spare);
            let mut words = vec![u64::MAX; 4 * bits.div_ceil(64) as usize];
            join::<Plain>(&plain, &mut words);
            for lane in 0..4 {
                let mut stored = vec![Limb::MAX; (bits / Limb::BITS) as usize];
                store::<Plain>(&words, lane, &mut stored);
                assert_eq!(
                    value(&stored),
                    &numbers[lane] % &moduli[lane],
                    "{bits} bits"
                );
            }
        }
    }
}

#[test]
fn numbers_of_all_lanes_are_cut_and_joined() {
    let mut random = Random(2);
    for size in [1, 2, 3, 4, 8, 17, 64] {
        let numbers: [Vec<Limb>; 4] = array::from_fn(|lane| {
            // Shorter numbers are padded with zeros.
            let len = (size - lane % 2).max(1);
            (0..len).map(|_| Limb(random.limb(63) as _)).collect()
        });
        let bits = size as u32 * Limb::BITS;
        let rows = bits.div_ceil(64) as usize;
        let mut words = vec![u64::MAX; 4 * rows];
        transpose::<Plain>(|lane| &numbers[lane], &mut words);
        for shift in [0, 1, 51, 63, 64, 65, 200] {
            let mut limbs = vec![[u64::MAX; 4]; (bits + shift).div_ceil(51) as usize];
            cut::<Plain>(&words, shift, &mut limbs);
            for (lane, number) in numbers.iter().enumerate() {
                let expected = value(number) << shift;
                assert_eq!(unpack::<Plain>(&limbs, lane), expected, "{size} limbs");
            }
        }
        let mut limbs = vec![[0; 4]; bits.div_ceil(51) as usize + 1];
        cut::<Plain>(&words, 0, &mut limbs);
        let mut joined = vec![u64::MAX; 4 * rows];
        join::<Plain>(limbs.as_flattened(), &mut joined);
        assert_eq!(joined, words);
        for (lane, number) in numbers.iter().enumerate() {
            let mut stored = vec![Limb::MAX; size];
            store::<Plain>(&joined, lane, &mut stored);
            assert_eq!(value(&stored), value(number));
        }
    }
}

#[test]
fn a_limb_may_equal_the_base() {
    // 2^51 * 2^51 + 2^51 in base 2^51.
    let limbs = [[1 << 51; 4], [1 << 51; 4], [0; 4]];
    let mut plain = [0; 12];
    to_plain::<Plain>(&limbs, &mut plain);
    let (mut words, mut stored) = ([0; 8], [Limb::ZERO; 128 / Limb::BITS as usize]);
    join::<Plain>(&plain, &mut words);
    store::<Plain>(&words, 3, &mut stored);
    assert_eq!(value(&stored), unpack::<Plain>(&limbs, 3));
}
