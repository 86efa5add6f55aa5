//! Products, powers and inverses of every unit, against num-bigint.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::Odd;
use crypto_bigint::modular::BoxedMontyParams;
use num_bigint::BigUint;

use super::*;

type Mul<'a> = &'a dyn Fn(Moduli<'_>, Exponent<'_>, &[Limb], Option<&[Limb]>, &mut [Limb]);
type Invert<'a> = &'a dyn Fn(&MontyParams<BoxedUint>, &[Limb], &mut [Limb]) -> Option<()>;

/// Something that has both.
pub(crate) struct Unit<'a> {
    pub(crate) mul_public_power: Mul<'a>,
    pub(crate) invert: Invert<'a>,
}

/// All units that this machine has, and those that are emulated.
pub(crate) fn for_each_unit(mut f: impl FnMut(&str, &Unit<'_>)) {
    f(
        "scalar",
        &Unit {
            mul_public_power: &scalar::mul_public_power,
            invert: &scalar::invert,
        },
    );
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    {
        use crate::backend::{Ifma, ifma};
        let portable = ifma::on_portable_unit();
        f(
            "portable ifma",
            &Unit {
                mul_public_power: &|moduli, exponent, bases, factors, out| {
                    portable.mul_public_power(moduli, exponent, bases, factors, out);
                },
                invert: &|modulus, values, out| portable.invert(modulus, values, out),
            },
        );
        if let Some(ifma) = Ifma::new() {
            f(
                "ifma",
                &Unit {
                    mul_public_power: &|moduli, exponent, bases, factors, out| {
                        ifma.mul_public_power(moduli, exponent, bases, factors, out);
                    },
                    invert: &|modulus, values, out| ifma.invert(modulus, values, out),
                },
            );
        }
    }
    #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use crate::backend::Fma;
        if let Some(fma) = Fma::new() {
            f(
                "fma",
                &Unit {
                    mul_public_power: &|moduli, exponent, bases, factors, out| {
                        fma.mul_public_power(moduli, exponent, bases, factors, out);
                    },
                    invert: &|modulus, values, out| fma.invert(modulus, values, out),
                },
            );
        }
    }
}

/// What [`for_each_unit`] leaves out.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[test]
fn units_that_this_processor_lacks() {
    use crate::backend::{Fma, Ifma};
    crate::need::available("ifma", Ifma::new().ok_or("no AVX-512 IFMA"));
    crate::need::available("fma", Fma::new().ok_or("no AVX2 and FMA"));
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): reproducible test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn limbs(&mut self, count: usize) -> Vec<Limb> {
        (0..count).map(|_| Limb(self.next() as _)).collect()
    }

    /// An odd modulus of `limbs` limbs, whose highest `zeros` bits are zero.
    pub(crate) fn modulus(&mut self, limbs: usize, zeros: u32) -> BoxedMontyParams {
        let mut number = BoxedUint::zero_with_precision(limbs as u32 * Limb::BITS);
        number.as_mut_limbs().copy_from_slice(&self.limbs(limbs));
        let top = &mut number.as_mut_limbs()[limbs - 1];
        *top = Limb((top.0 | 1 << (Limb::BITS - 1)) >> zeros);
        number.as_mut_limbs()[0] |= Limb::ONE;
        BoxedMontyParams::new(Odd::new(number).unwrap())
    }
}

fn value(limbs: &[Limb]) -> BigUint {
    let limbs = limbs.iter().rev();
    limbs.fold(BigUint::ZERO, |value, limb| (value << Limb::BITS) + limb.0)
}

fn modulus_of(params: &MontyParams<BoxedUint>) -> BigUint {
    value(params.modulus().as_ref().as_limbs())
}

/// Numbers of lanes, and which of two moduli each has.
fn lanes(count: usize, moduli: &[BoxedMontyParams; 2]) -> Vec<&MontyParams<BoxedUint>> {
    let of = |lane| moduli[usize::from(lane % 7 == 3 || lane >= 12)].as_ref();
    (0..count).map(of).collect()
}

#[test]
fn products_with_public_powers() {
    let mut random = Random(1);
    let exponents = [1u64, 2, 3, 65_537, u64::MAX].map(BoxedUint::from);
    let widths = [(1, 0), (4, 1), (16, 0), (17, 40), (33, 5)];
    for (limbs, zeros) in widths {
        let moduli = [(); 2].map(|()| random.modulus(limbs, zeros));
        for (exponent, count) in exponents.iter().zip([1, 3, 8, 17, 9]) {
            let moduli = lanes(count, &moduli);
            let mut bases = random.limbs(count * limbs);
            let mut factors = random.limbs(count * limbs);
            // Edges: 0, 1, all ones, n - 1.
            bases[..limbs].fill(Limb::ZERO);
            factors[(count - 1) * limbs..].fill(Limb::MAX);
            bases[(count - 1) * limbs..].fill(Limb::MAX);
            for_each_unit(|name, unit| {
                for factors in [None, Some(&factors[..])] {
                    let mut out = vec![Limb::MAX; count * limbs];
                    let power = Exponent::new(exponent);
                    (unit.mul_public_power)(&moduli, power, &bases, factors, &mut out);
                    for lane in 0..count {
                        let number = |limbs_: &[Limb]| value(&limbs_[lane * limbs..][..limbs]);
                        let n = modulus_of(moduli[lane]);
                        let power = number(&bases).modpow(&value(exponent.as_limbs()), &n);
                        let expected = power * factors.map_or(BigUint::from(1u8), number) % &n;
                        assert_eq!(number(&out), expected, "{name}, {limbs} limbs, lane {lane}");
                    }
                }
            });
        }
    }
}

/// Counts up to a number that has an inverse.
fn make_invertible(number: &mut [Limb], n: &BigUint) {
    while value(number).modinv(n).is_none() {
        number[0] = number[0].wrapping_add(Limb::ONE);
    }
}

#[test]
fn inverses() {
    let mut random = Random(2);
    for (limbs, zeros) in [(1, 0), (4, 1), (16, 0), (33, 9)] {
        let params = random.modulus(limbs, zeros);
        let n = modulus_of(params.as_ref());
        for count in [1, 2, 15, 16, 17, 40] {
            let mut values = random.limbs(count * limbs);
            let numbers = values.chunks_exact_mut(limbs);
            numbers.for_each(|number| make_invertible(number, &n));
            for_each_unit(|name, unit| {
                let mut out = vec![Limb::MAX; count * limbs];
                (unit.invert)(params.as_ref(), &values, &mut out).unwrap();
                for lane in 0..count {
                    let number = |limbs_: &[Limb]| value(&limbs_[lane * limbs..][..limbs]);
                    let expected = number(&values).modinv(&n).unwrap();
                    assert_eq!(number(&out), expected, "{name}, {count}, lane {lane}");
                }
            });
        }
    }
}

/// One number without an inverse, wherever it stands, is enough.
#[test]
fn what_has_no_inverse_is_said() {
    let mut random = Random(3);
    let params = random.modulus(4, 0);
    for (count, bad) in [(1, 0), (5, 4), (40, 0), (40, 39), (40, 17)] {
        let mut values = random.limbs(count * 4);
        values[bad * 4..][..4].fill(Limb::ZERO);
        for_each_unit(|name, unit| {
            let mut out = vec![Limb::ZERO; values.len()];
            let inverted = (unit.invert)(params.as_ref(), &values, &mut out);
            assert!(inverted.is_none(), "{name}, {count}, {bad}");
        });
    }
}

/// Runs of several moduli go through the same call.
#[test]
fn the_fastest_unit_takes_runs() {
    let mut random = Random(4);
    let moduli = [(); 2].map(|()| random.modulus(5, 0));
    let moduli: Vec<_> = (0..30).map(|lane| moduli[lane / 20].as_ref()).collect();
    let mut values = random.limbs(30 * 5);
    for (number, modulus) in values.chunks_exact_mut(5).zip(&moduli) {
        make_invertible(number, &modulus_of(modulus));
    }
    let [mut inverses, mut products] = [(); 2].map(|()| vec![Limb::ZERO; 30 * 5]);
    let numbers = Numbers::fastest();
    numbers.invert(&moduli, &values, &mut inverses).unwrap();
    let one = BoxedUint::one();
    numbers.mul_public_power(&moduli, &one, &values, Some(&inverses), &mut products);
    for product in products.chunks_exact(5) {
        assert_eq!(value(product), BigUint::from(1u8));
    }
    numbers.mul_public_power(&[], &one, &[], None, &mut []);
    numbers.invert(&[], &[], &mut []).unwrap();
}
