//! Test cases and references for the unit tests of lane types.

mod squarings;

use alloc::vec;
use alloc::vec::Vec;
use core::iter;

use batch_modexp_core::window::Window;
use num_bigint::BigUint;

pub(crate) use self::squarings::check_squarings;
use super::fixed_base::Selection;
use super::ladder::window;
use super::{LARGEST_WINDOW, LaneModulus, Lanes, Operands, PowerLanes};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): reproducible test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A limb of `bits` bits; one in four has all bits equal, so that carries run far.
    pub(crate) fn limb(&mut self, bits: u32) -> u64 {
        let mask = (1 << bits) - 1;
        match self.next() % 8 {
            0 => 0,
            1 => mask,
            _ => self.next() & mask,
        }
    }
}

/// Packs numbers into the limbs of a lane type, `numbers[lane]` into lane `lane`.
pub(crate) fn pack<L: Lanes>(numbers: &[BigUint], limbs: usize) -> Vec<L::Limb> {
    let mut packed = vec![L::ZERO; limbs];
    let mask = BigUint::from((1u64 << L::RADIX_BITS) - 1);
    for (lane, number) in numbers.iter().enumerate() {
        for (i, limb) in packed.iter_mut().enumerate() {
            let digit = (number >> (i * L::RADIX_BITS as usize)) & &mask;
            L::set_lane(limb, lane, digit.try_into().unwrap());
        }
    }
    packed
}

/// The number in one lane.
pub(crate) fn unpack<L: Lanes>(limbs: &[L::Limb], lane: usize) -> BigUint {
    limbs.iter().rev().fold(BigUint::ZERO, |number, limb| {
        (number << L::RADIX_BITS) + L::lane(limb, lane)
    })
}

/// A number of at most `bits` bits; its limbs are often all zeros or all ones.
pub(crate) fn number<L: Lanes>(random: &mut Random, bits: u32) -> BigUint {
    let limbs = bits.div_ceil(L::RADIX_BITS);
    let number = (0..limbs).fold(BigUint::ZERO, |number, _| {
        (number << L::RADIX_BITS) + random.limb(L::RADIX_BITS)
    });
    number & ((BigUint::from(1u8) << bits) - 1u8)
}

/// `-1 / modulus mod 2^RADIX_BITS` of every lane.
pub(crate) fn neg_inv<L: Lanes>(moduli: &[BigUint]) -> L::Limb {
    let mut limb = L::ZERO;
    for (lane, modulus) in moduli.iter().enumerate() {
        let radix = BigUint::from(1u8) << L::RADIX_BITS;
        let inverse = modulus.modinv(&radix).unwrap();
        L::set_lane(&mut limb, lane, (radix - inverse).try_into().unwrap());
    }
    limb
}

/// The moduli of all lanes, with the constants of [`Lanes::prepare`].
struct Prepared<L: Lanes> {
    limbs: Vec<L::Limb>,
    neg_inv: L::Limb,
    constants: Vec<L::Limb>,
}

impl<L: Lanes> Prepared<L> {
    fn new(lanes: L, moduli: &[BigUint], limbs: usize, scratch: &mut [L::Limb]) -> Self {
        let mut prepared = Self {
            limbs: pack::<L>(moduli, limbs),
            neg_inv: neg_inv::<L>(moduli),
            constants: vec![L::ZERO; L::constants_len(limbs)],
        };
        lanes.prepare(
            &mut prepared.constants,
            &prepared.limbs,
            &prepared.neg_inv,
            scratch,
        );
        prepared
    }

    fn modulus(&self) -> LaneModulus<'_, L::Limb> {
        LaneModulus {
            limbs: &self.limbs,
            neg_inv: &self.neg_inv,
            constants: &self.constants,
        }
    }
}

/// Multiplies and squares numbers up to the bound of the lane type, for random and for extreme
/// moduli and factors. Compares with big integers: the residue, and that the result stays below the
/// bound.
pub(crate) fn check_products<L: Lanes>(lanes: L, bits: u32, rounds: usize) {
    let limbs = L::limb_count(bits);
    let r = BigUint::from(1u8) << (limbs as u32 * L::RADIX_BITS);
    let mut random = Random(u64::from(bits));
    let mut scratch = vec![L::ZERO; L::scratch_len(limbs)];
    let mut out = vec![L::ZERO; limbs];
    let one = BigUint::from(1u8);
    let ones = (&one << bits) - 1u8;
    for round in 0..rounds {
        let moduli: Vec<BigUint> = (0..L::COUNT)
            .map(|lane| match (round + lane) % 4 {
                0 => ones.clone(),
                1 => number::<L>(&mut random, bits) | &one | &one << (bits - 1),
                2 => number::<L>(&mut random, bits) | &one,
                _ => BigUint::from(2 * (random.next() >> 40) + 1),
            })
            .collect();
        let mut factors = || -> Vec<BigUint> {
            moduli
                .iter()
                .map(|modulus| {
                    let bound: BigUint = modulus * L::BOUND;
                    if random.next().is_multiple_of(2) {
                        bound - 1u8
                    } else {
                        number::<L>(&mut random, bits + 2) % bound
                    }
                })
                .collect()
        };
        let (a, b) = (factors(), factors());
        let (packed_a, packed_b) = (pack::<L>(&a, limbs), pack::<L>(&b, limbs));
        let prepared = Prepared::new(lanes, &moduli, limbs, &mut scratch);
        let modulus = prepared.modulus();

        lanes.mul(&mut out, &packed_a, &packed_b, modulus, &mut scratch);
        for lane in 0..L::COUNT {
            let m = &moduli[lane];
            let product = unpack::<L>(&out, lane);
            assert!(
                product < m * L::BOUND,
                "{bits} bits, lane {lane}: out of range"
            );
            assert_eq!(
                product * &r % m,
                &a[lane] * &b[lane] % m,
                "{bits} bits, lane {lane}"
            );
        }

        lanes.square(&mut out, &packed_a, modulus, &mut scratch);
        for lane in 0..L::COUNT {
            let m = &moduli[lane];
            let square = unpack::<L>(&out, lane);
            assert!(
                square < m * L::BOUND,
                "{bits} bits, lane {lane}: out of range"
            );
            assert_eq!(
                square * &r % m,
                &a[lane] * &a[lane] % m,
                "{bits} bits, lane {lane}"
            );
        }
    }
}

/// Looks up every digit in every lane.
pub(crate) fn check_select<L: Lanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let mut random = Random(3);
    for entries in [2, 4, 8, 16, 32, 64] {
        let numbers: Vec<Vec<BigUint>> = (0..entries)
            .map(|_| {
                (0..L::COUNT)
                    .map(|_| number::<L>(&mut random, bits))
                    .collect()
            })
            .collect();
        let table: Vec<L::Limb> = numbers
            .iter()
            .flat_map(|entry| pack::<L>(entry, limbs))
            .collect();
        let mut out = vec![L::ZERO; limbs];
        for first in 0..entries {
            let digits: Vec<u8> = (0..L::COUNT)
                .map(|lane| ((first + 5 * lane) % entries) as u8)
                .collect();
            lanes.select(&mut out, &table, &digits);
            for (lane, digit) in digits.iter().enumerate() {
                assert_eq!(unpack::<L>(&out, lane), numbers[usize::from(*digit)][lane]);
            }
        }
    }
}

/// Looks up every entry of a shared row, in some lane.
pub(crate) fn check_select_of_row<L: PowerLanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let mut random = Random(4);
    for entries in [8usize, 16, 32, 64, 128, 256] {
        let row: Vec<u64> = (0..limbs * entries)
            .map(|_| random.limb(L::RADIX_BITS))
            .collect();
        let mut out = vec![L::ZERO; limbs];
        for first in 0..entries {
            let digits: Vec<u8> = (0..L::COUNT)
                .map(|lane| ((first + 5 * lane) % entries) as u8)
                .collect();
            lanes.select_of_row(&mut out, &row, &digits);
            for (limb, words) in out.iter().zip(row.chunks_exact(entries)) {
                for (lane, digit) in digits.iter().enumerate() {
                    assert_eq!(L::lane(limb, lane), words[usize::from(*digit)]);
                }
            }
        }
    }
}

/// Takes steps of the ladder with windows of all sizes, and compares with big integers.
pub(crate) fn check_step<L: Lanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let r = BigUint::from(1u8) << (limbs as u32 * L::RADIX_BITS);
    let mut random = Random(u64::from(bits) + 1);
    let one = BigUint::from(1u8);
    let moduli: Vec<BigUint> = (0..L::COUNT)
        .map(|_| number::<L>(&mut random, bits) | &one | &one << (bits - 1))
        .collect();
    let inverse = |m: &BigUint| (&r % m).modinv(m).unwrap();
    let r_inv: Vec<_> = moduli.iter().map(inverse).collect();
    let mut numbers = || -> Vec<BigUint> {
        let number = |modulus: &BigUint| number::<L>(&mut random, bits + 2) % (modulus * L::BOUND);
        moduli.iter().map(number).collect()
    };
    let mut scratch = vec![L::ZERO; L::scratch_len(limbs)];
    let prepared = Prepared::new(lanes, &moduli, limbs, &mut scratch);
    let modulus = prepared.modulus();
    for squarings in 1..=6 {
        let entries: Vec<Vec<BigUint>> = (0..1 << squarings).map(|_| numbers()).collect();
        let mut table: Vec<L::Limb> = entries
            .iter()
            .flat_map(|entry| pack::<L>(entry, limbs))
            .collect();
        // Every digit occurs in some lane.
        for first in (0..entries.len()).step_by(L::COUNT) {
            let digits: Vec<usize> = (0..L::COUNT)
                .map(|lane| (first + lane) % entries.len())
                .collect();
            let start = numbers();
            let mut x = Operands {
                lanes,
                modulus,
                s2: &[],
                r2: &mut [],
                value: &mut pack::<L>(&start, limbs),
                spare: &mut vec![L::ZERO; limbs],
                factor: &mut [],
                // The old content must not matter.
                entry: &mut pack::<L>(&numbers(), limbs),
                table: &mut table,
                scratch: &mut scratch,
            };
            let of_lanes: Vec<u8> = digits.iter().map(|digit| *digit as u8).collect();
            lanes.step(squarings, &of_lanes, &mut x);
            for lane in 0..L::COUNT {
                let m = &moduli[lane];
                let r_inv = &r_inv[lane];
                let squared = (0..squarings).fold(start[lane].clone(), |number, _| {
                    &number * &number * r_inv % m
                });
                let expected = squared * &entries[digits[lane]][lane] * r_inv % m;
                let power = unpack::<L>(x.value, lane);
                assert!(power < m * L::BOUND, "{bits} bits, {squarings} squarings");
                assert_eq!(power % m, expected, "{bits} bits, {squarings} squarings");
            }
        }
    }
}

/// Fills tables for windows of all sizes, looks up every digit, alone and beside a multiplication,
/// and takes a step with another one. Compares with big integers: the residue, and that numbers stay
/// below the bound.
pub(crate) fn check_ladder<L: PowerLanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let r = BigUint::from(1u8) << (limbs as u32 * L::RADIX_BITS);
    let mut random = Random(u64::from(bits) + 2);
    let one = BigUint::from(1u8);
    let ones = (&one << bits) - 1u8;
    let moduli: Vec<BigUint> = (0..L::COUNT)
        .map(|lane| match lane % 2 {
            0 => ones.clone(),
            _ => number::<L>(&mut random, bits) | &one | &one << (bits - 1),
        })
        .collect();
    let bases: Vec<BigUint> = (0..L::COUNT)
        .map(|lane| {
            let bound: BigUint = &moduli[lane] * L::BOUND;
            match lane % 3 {
                0 => bound - 1u8,
                _ => number::<L>(&mut random, bits + 2) % bound,
            }
        })
        .collect();
    let mut scratch = vec![L::ZERO; L::scratch_len(limbs)];
    let prepared = Prepared::new(lanes, &moduli, limbs, &mut scratch);
    let modulus = prepared.modulus();
    let r2: Vec<BigUint> = moduli.iter().map(|m| &r * &r % m).collect();
    // The exponents of one digit. A power by `modpow` would take ten times as long.
    let powers = bases.iter().zip(&moduli).map(|(base, m)| {
        let powers = iter::successors(Some(one.clone()), |power| Some(power * base % m));
        powers.take(1 << LARGEST_WINDOW).collect()
    });
    let powers: Vec<Vec<BigUint>> = powers.collect();
    let check = |limbs: &[L::Limb], lane: usize, exponent: usize| {
        let m = &moduli[lane];
        let powers = &powers[lane];
        let (high, low) = (exponent / powers.len(), exponent % powers.len());
        let square = |power: BigUint, _| &power * &power % m;
        let high = (0..LARGEST_WINDOW).fold(powers[high].clone(), square);
        let expected = high * &powers[low] * &r % m;
        let power = unpack::<L>(limbs, lane);
        assert!(
            &power * 2u8 < m * (2 * L::BOUND + 1),
            "{bits} bits, exponent {exponent}"
        );
        assert_eq!(power % m, expected, "{bits} bits, exponent {exponent}");
    };
    // Only one window for long numbers, to save time: the work for each entry is the same for all
    // windows.
    let shortest = if bits > 2048 {
        LARGEST_WINDOW
    } else {
        Window::MIN_BITS
    };
    for window in (shortest..=LARGEST_WINDOW).map(|bits| Window::new(bits).unwrap()) {
        let (entries, entry_len) = (window.table_len(), lanes.entry_len(limbs, window));
        let mut x = Operands {
            lanes,
            modulus,
            s2: &[],
            r2: &mut pack::<L>(&r2, limbs),
            value: &mut pack::<L>(&bases, limbs),
            spare: &mut vec![L::ZERO; limbs],
            factor: &mut vec![L::ZERO; limbs],
            // The old content must not matter.
            entry: &mut vec![prepared.limbs[0]; entry_len],
            table: &mut vec![L::ZERO; entries * entry_len],
            scratch: &mut scratch,
        };
        x.fill_table();
        let powers = x.table.chunks_exact(entry_len);
        let powers: Vec<_> = powers.flat_map(|entry| &entry[..limbs]).copied().collect();
        let mut arranged = vec![prepared.limbs[0]; L::arranged_len(limbs, window)];
        lanes.arrange(&mut arranged, &powers, window);
        lanes.extend_entries(&mut x);
        for first in 0..entries {
            let digits = |step: usize| -> Vec<u8> {
                let digit = |lane| ((first + step * lane) % entries) as u8;
                (0..L::COUNT).map(digit).collect()
            };
            let (top, next) = (digits(1), digits(3));
            lanes.select(x.entry, x.table, &top);
            x.value.copy_from_slice(&x.entry[..limbs]);
            for (lane, digit) in top.iter().enumerate() {
                check(x.value, lane, usize::from(*digit));
            }
            let mut product = vec![L::ZERO; limbs];
            let entry = &x.entry[..limbs];
            lanes.mul(&mut product, x.value, entry, modulus, x.scratch);
            let selection = Selection {
                out: x.factor,
                table: &arranged,
                window,
                digits: &next,
            };
            lanes.mul_and_select(x.spare, x.value, entry, modulus, x.scratch, selection);
            lanes.select(x.entry, x.table, &next);
            for lane in 0..L::COUNT {
                let numbers = [&*x.spare, &*x.factor].map(|number| unpack::<L>(number, lane));
                let expected = [&product, &x.entry[..limbs]];
                assert_eq!(numbers, expected.map(|number| unpack::<L>(number, lane)));
            }
            lanes.step(window.bits(), &next, &mut x);
            for lane in 0..L::COUNT {
                let exponent = (usize::from(top[lane]) << window.bits()) + usize::from(next[lane]);
                check(x.value, lane, exponent);
            }
        }
    }
}

/// Compares the windows of exponents: pairs of a length and a window, both in bits. The cases of
/// memcheck have exponents on both sides of each change, so a change here also concerns them.
pub(crate) fn check_windows<L: Lanes>(expected: &[(u32, u32)]) {
    for &(bits, expected) in expected {
        let window = window::<L>(bits).bits();
        assert_eq!(window, expected, "exponents of {bits} bits");
    }
}
