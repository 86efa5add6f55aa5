//! The reference for exponentiations, with num-bigint.

use batch_modexp::{BatchModExp, Error, ModExp};
use crypto_bigint::modular::{BoxedMontyParams, FixedMontyParams};
use crypto_bigint::{BoxedUint, Limb, Odd, Uint, Unsigned};
use num_bigint::BigUint;

pub trait Boxed: BatchModExp<BoxedUint, Error = Error> {}
impl<B: BatchModExp<BoxedUint, Error = Error>> Boxed for B {}

pub trait Fixed<const L: usize>: BatchModExp<Uint<L>, Error = Error> {}
impl<const L: usize, B: BatchModExp<Uint<L>, Error = Error>> Fixed<L> for B {}

/// One instance in num-bigint's types. All three are below `2^width`, unless a test says otherwise,
/// and the modulus is odd.
#[derive(Clone, Debug)]
pub struct Instance {
    pub base: BigUint,
    pub exponent: BigUint,
    pub modulus: BigUint,
}

impl Instance {
    /// The correct result.
    pub fn expected(&self, exponent_bits: u32) -> BigUint {
        let mask = (BigUint::from(1u8) << exponent_bits) - 1u8;
        self.base.modpow(&(&self.exponent & mask), &self.modulus)
    }
}

pub fn to_big<U: Unsigned>(value: &U) -> BigUint {
    let bytes: Vec<u8> = value
        .as_limbs()
        .iter()
        .flat_map(|limb| limb.0.to_le_bytes())
        .collect();
    BigUint::from_bytes_le(&bytes)
}

pub fn to_boxed(value: &BigUint, width: u32) -> BoxedUint {
    BoxedUint::from_le_slice(&value.to_bytes_le(), width).unwrap()
}

pub fn to_fixed<const L: usize>(value: &BigUint) -> Uint<L> {
    let mut fixed = Uint::ZERO;
    let boxed = to_boxed(value, L as u32 * Limb::BITS);
    fixed.as_mut_limbs().copy_from_slice(boxed.as_limbs());
    fixed
}

pub fn boxed_params(modulus: &BigUint, width: u32) -> BoxedMontyParams {
    BoxedMontyParams::new(Odd::new(to_boxed(modulus, width)).unwrap())
}

/// Runs `instances` as one batch of `width`-bit `BoxedUint`s and compares.
pub fn check_boxed<B: Boxed>(backend: &B, width: u32, exponent_bits: u32, instances: &[Instance]) {
    let values: Vec<_> = instances
        .iter()
        .map(|x| {
            (
                to_boxed(&x.base, width),
                to_boxed(&x.exponent, width),
                boxed_params(&x.modulus, width),
            )
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
    let mut out = vec![BoxedUint::max(width); batch.len()];
    backend
        .batch_mod_exp(&batch, exponent_bits, &mut out)
        .unwrap();
    compare(&out, exponent_bits, instances);
    assert!(out.iter().all(|value| value.bits_precision() == width));
}

/// Runs `instances` as one batch of `Uint<L>`s and compares.
pub fn check_fixed<const L: usize, B: Fixed<L>>(
    backend: &B,
    exponent_bits: u32,
    instances: &[Instance],
) {
    let values: Vec<_> = instances
        .iter()
        .map(|x| {
            let params = FixedMontyParams::new(Odd::new(to_fixed(&x.modulus)).unwrap());
            (to_fixed(&x.base), to_fixed(&x.exponent), params)
        })
        .collect();
    let batch: Vec<_> = values
        .iter()
        .map(|(base, exponent, params)| ModExp {
            base,
            exponent,
            params,
        })
        .collect();
    let mut out = vec![Uint::<L>::MAX; batch.len()];
    backend
        .batch_mod_exp(&batch, exponent_bits, &mut out)
        .unwrap();
    compare(&out, exponent_bits, instances);
}

fn compare<U: Unsigned>(out: &[U], exponent_bits: u32, instances: &[Instance]) {
    for (i, (result, instance)) in out.iter().zip(instances).enumerate() {
        assert_eq!(
            to_big(result),
            instance.expected(exponent_bits),
            "instance {i}, {exponent_bits} exponent bits: {instance:x?}"
        );
    }
}
