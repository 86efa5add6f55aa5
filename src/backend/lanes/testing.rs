//! Cases and references for the unit tests of lane types.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::BigUint;

use super::{Arithmetic, Lanes, LookUp, Modulus, Task};
use crate::{BatchModExp, Error, ModExp};

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

/// Numbers of one lane type: `numbers[lane]` as limbs.
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

/// A number of at most `bits` bits from limbs that are often all zeros or all ones.
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

/// Moduli of all lanes with what multiplications need.
struct Moduli<L: Lanes> {
    numbers: Vec<BigUint>,
    limbs: Vec<L::Limb>,
    neg_inv: L::Limb,
    constants: Vec<L::Limb>,
    scratch: Vec<L::Limb>,
}

/// A multiplication, or squarings with a look-up.
enum Operation<'a, L> {
    Prepare,
    Mul(&'a mut [L], &'a [L]),
    Square(&'a mut [L], u32, LookUp<'a, L>),
    LookUp(LookUp<'a, L>),
}

struct Run<'a, L: Lanes>(&'a mut Moduli<L>, Operation<'a, L::Limb>);

impl<L: Lanes> Task<L::Limb> for Run<'_, L> {
    #[inline(always)]
    fn run<A: Arithmetic<Limb = L::Limb>>(self, arithmetic: A) {
        let Self(moduli, operation) = self;
        let scratch = &mut moduli.scratch;
        if let Operation::Prepare = operation {
            let constants = &mut moduli.constants;
            return arithmetic.prepare(constants, &moduli.limbs, &moduli.neg_inv, scratch);
        }
        let modulus = Modulus {
            limbs: &moduli.limbs,
            neg_inv: &moduli.neg_inv,
            constants: &moduli.constants,
        };
        match operation {
            Operation::Prepare => {}
            Operation::Mul(a, b) => arithmetic.mul(a, b, modulus, scratch),
            Operation::Square(a, squarings, look_up) => {
                arithmetic.square_and_look_up(a, squarings, look_up, modulus, scratch);
            }
            Operation::LookUp(look_up) => arithmetic.look_up(look_up),
        }
    }
}

impl<L: Lanes> Moduli<L> {
    fn new(lanes: L, numbers: Vec<BigUint>, limbs: usize) -> Self {
        let mut moduli = Self {
            limbs: pack::<L>(&numbers, limbs),
            neg_inv: neg_inv::<L>(&numbers),
            constants: vec![L::ZERO; L::constants_len(limbs)],
            scratch: vec![L::ZERO; L::scratch_len(limbs)],
            numbers,
        };
        moduli.run(lanes, Operation::Prepare);
        moduli
    }

    fn run(&mut self, lanes: L, operation: Operation<'_, L::Limb>) {
        lanes.run(self.limbs.len(), Run::<L>(self, operation));
    }

    /// Checks that `out` is `expected / R` in every lane, and within the bound.
    fn check(&self, out: &[L::Limb], bits: u32, expected: impl Fn(usize) -> BigUint) {
        let r = BigUint::from(1u8) << (out.len() as u32 * L::RADIX_BITS);
        for (lane, modulus) in self.numbers.iter().enumerate() {
            let out = unpack::<L>(out, lane);
            assert!(
                out < modulus * L::BOUND,
                "{bits} bits, lane {lane}: out of range"
            );
            let expected = expected(lane) % modulus;
            assert_eq!(out * &r % modulus, expected, "{bits} bits, lane {lane}");
        }
    }
}

/// Entries and their numbers in all lanes: `numbers[entry][lane]`.
fn random_table<L: Lanes>(
    random: &mut Random,
    entries: usize,
    limbs: usize,
    bits: u32,
) -> (Vec<L::Limb>, Vec<Vec<BigUint>>) {
    let numbers: Vec<Vec<BigUint>> = (0..entries)
        .map(|_| (0..L::COUNT).map(|_| number::<L>(random, bits)).collect())
        .collect();
    let table = numbers
        .iter()
        .flat_map(|entry| pack::<L>(entry, limbs))
        .collect();
    (table, numbers)
}

/// Multiplies and squares numbers up to the bound of the lane type, for random and for extreme moduli and
/// factors, and compares with big integers: the residue, and that the result stays below the bound.
pub(crate) fn check_products<L: Lanes>(lanes: L, bits: u32, rounds: usize) {
    let limbs = L::limb_count(bits);
    let mut random = Random(u64::from(bits));
    let one = BigUint::from(1u8);
    let ones = (&one << bits) - 1u8;
    let table = vec![L::ZERO; 2 * limbs];
    for round in 0..rounds {
        let moduli = (0..L::COUNT)
            .map(|lane| match (round + lane) % 4 {
                0 => ones.clone(),
                1 => number::<L>(&mut random, bits) | &one | &one << (bits - 1),
                2 => number::<L>(&mut random, bits) | &one,
                _ => BigUint::from(2 * (random.next() >> 40) + 1),
            })
            .collect();
        let mut moduli = Moduli::new(lanes, moduli, limbs);
        let mut factors = || -> Vec<BigUint> {
            moduli
                .numbers
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

        let mut out = packed_a.clone();
        moduli.run(lanes, Operation::Mul(&mut out, &packed_b));
        moduli.check(&out, bits, |lane| &a[lane] * &b[lane]);
        // Once more with what came out, which a lane type need not normalise.
        let factor: Vec<_> = (0..L::COUNT).map(|lane| unpack::<L>(&out, lane)).collect();
        moduli.run(lanes, Operation::Mul(&mut out, &packed_b));
        moduli.check(&out, bits, |lane| &factor[lane] * &b[lane]);

        let mut out = packed_a.clone();
        for i in 0..2 {
            let factor: Vec<_> = (0..L::COUNT).map(|lane| unpack::<L>(&out, lane)).collect();
            if i == 0 {
                assert!(factor == a);
            }
            let look_up = LookUp {
                table: &table,
                digits: &vec![0; L::COUNT],
                out: &mut vec![L::ZERO; limbs],
            };
            moduli.run(lanes, Operation::Square(&mut out, 1, look_up));
            moduli.check(&out, bits, |lane| &factor[lane] * &factor[lane]);
        }
    }
}

/// Looks every digit up in every lane, alone and beside squarings, which must not suffer.
pub(crate) fn check_look_up<L: Lanes>(lanes: L, bits: u32) {
    let limbs = L::limb_count(bits);
    let mut random = Random(3);
    let moduli = vec![(BigUint::from(1u8) << bits) - 1u8; L::COUNT];
    let mut moduli = Moduli::new(lanes, moduli, limbs);
    for window in 2..=5 {
        let entries = 1 << window;
        let (table, numbers) = random_table::<L>(&mut random, entries, limbs, bits);
        let factor = pack::<L>(&numbers[0], limbs);
        let mut power = factor.clone();
        for _ in 0..window {
            let copy = power.clone();
            moduli.run(lanes, Operation::Mul(&mut power, &copy));
        }
        for first in 0..entries {
            let digits: Vec<u8> = (0..L::COUNT)
                .map(|lane| ((first + 5 * lane) % entries) as u8)
                .collect();
            let mut outs = [vec![L::ZERO; limbs], factor.clone()];
            let [alone, beside] = &mut outs;
            let look_up = |out| LookUp {
                table: &table,
                digits: &digits,
                out,
            };
            moduli.run(lanes, Operation::LookUp(look_up(alone)));
            let mut value = factor.clone();
            moduli.run(
                lanes,
                Operation::Square(&mut value, window, look_up(beside)),
            );
            for (lane, digit) in digits.iter().enumerate() {
                for out in &outs {
                    assert_eq!(unpack::<L>(out, lane), numbers[usize::from(*digit)][lane]);
                }
                let modulus = &moduli.numbers[lane];
                assert_eq!(
                    unpack::<L>(&value, lane) % modulus,
                    unpack::<L>(&power, lane) % modulus
                );
            }
        }
    }
}

/// Raises nine numbers, more than fill the lanes, to random and extreme powers of `exponent_bits` bits, and
/// compares with big integers.
pub(crate) fn check_powers(
    backend: &impl BatchModExp<BoxedUint, Error = Error>,
    bits: u32,
    exponent_bits: u32,
) {
    /// The numbers need not be limbs of any lane type.
    const LIMB_BITS: u32 = 52;
    let mut random = Random(u64::from(bits + exponent_bits));
    let ones = (BigUint::from(1u8) << bits) - 1u8;
    let mut number = || {
        let limbs = bits.div_ceil(LIMB_BITS);
        let number = (0..limbs).fold(BigUint::ZERO, |number, _| {
            (number << LIMB_BITS) + random.limb(LIMB_BITS)
        });
        number & &ones
    };
    let boxed = |number: &BigUint| BoxedUint::from_le_slice(&number.to_bytes_le(), bits).unwrap();
    let numbers: Vec<[BigUint; 3]> = (0..9)
        .map(|i| match i {
            0 => [ones.clone(), ones.clone(), ones.clone()],
            1 => [&ones - 1u8, ones.clone(), ones.clone()],
            2 => [number(), number(), BigUint::from(1u8)],
            _ => [number(), number(), number() | BigUint::from(1u8)],
        })
        .collect();
    let values: Vec<_> = numbers
        .iter()
        .map(|[base, exponent, modulus]| {
            let modulus = Odd::new(boxed(modulus)).unwrap();
            (boxed(base), boxed(exponent), BoxedMontyParams::new(modulus))
        })
        .collect();
    let batch: Vec<_> = values
        .iter()
        .map(|(base, exponent, params)| ModExp {
            base,
            exponent,
            params: params.as_ref(),
        })
        .collect();
    let mut out = vec![BoxedUint::zero(); batch.len()];
    backend
        .batch_mod_exp(&batch, exponent_bits, &mut out)
        .unwrap();
    let mask = (BigUint::from(1u8) << exponent_bits) - 1u8;
    for ([base, exponent, modulus], out) in numbers.iter().zip(&out) {
        let expected = base.modpow(&(exponent & &mask), modulus);
        assert_eq!(
            BigUint::from_bytes_le(&out.to_le_bytes()),
            expected,
            "{bits} bits, exponents of {exponent_bits}"
        );
    }
}
