//! The reference for products, with num-bigint.

use batch_modexp::{BatchModMul, Error, ModMul};
use crypto_bigint::modular::{FixedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Odd, Uint, Unsigned};
use num_bigint::BigUint;

use crate::reference::{boxed_params, to_big, to_boxed, to_fixed};

pub trait Boxed: BatchModMul<BoxedUint, Error = Error> {}
impl<B: BatchModMul<BoxedUint, Error = Error>> Boxed for B {}

pub trait Fixed<const L: usize>: BatchModMul<Uint<L>, Error = Error> {}
impl<const L: usize, B: BatchModMul<Uint<L>, Error = Error>> Fixed<L> for B {}

/// One instance in num-bigint's types. All three are below `2^width`, and the modulus is odd.
#[derive(Clone, Debug)]
pub struct Instance {
    pub a: BigUint,
    pub b: BigUint,
    pub modulus: BigUint,
}

impl Instance {
    /// The ordinary product.
    pub fn expected(&self) -> BigUint {
        &self.a * &self.b % &self.modulus
    }

    /// Whether a number is the product in Montgomery form, with the radix `2^width`. Needs no
    /// inverse, which would take longer than all else.
    pub fn is_in_montgomery_form(&self, number: &BigUint, width: u32) -> bool {
        *number < self.modulus && (number << width) % &self.modulus == self.expected()
    }

    /// Copies with the first and with the second factor below the modulus, as Montgomery forms are.
    pub fn reduced(&self) -> [Self; 2] {
        let (mut first, mut second) = (self.clone(), self.clone());
        first.a %= &self.modulus;
        second.b %= &self.modulus;
        [first, second]
    }
}

/// Runs `instances` as one batch of `width`-bit `BoxedUint`s, in both forms, and compares.
pub fn check_boxed<B: Boxed>(backend: &B, width: u32, instances: &[Instance]) {
    let params: Vec<_> = instances
        .iter()
        .map(|x| boxed_params(&x.modulus, width))
        .collect();
    let params: Vec<_> = params.iter().map(AsRef::as_ref).collect();
    let out = check(backend, width, instances, &params, |x| to_boxed(x, width));
    assert!(out.iter().all(|value| value.bits_precision() == width));
}

/// Runs `instances` as one batch of `Uint<L>`s, in both forms, and compares.
pub fn check_fixed<const L: usize, B: Fixed<L>>(backend: &B, instances: &[Instance]) {
    let params: Vec<_> = instances
        .iter()
        .map(|x| FixedMontyParams::new(Odd::new(to_fixed(&x.modulus)).unwrap()))
        .collect();
    let params: Vec<_> = params.iter().collect();
    check(backend, L as u32 * 64, instances, &params, to_fixed::<L>);
}

/// Runs `instances` as one batch, in both forms, and compares. Returns the last results.
pub fn check<U: Unsigned>(
    backend: &dyn BatchModMul<U, Error = Error>,
    width: u32,
    instances: &[Instance],
    params: &[&MontyParams<U>],
    number: impl Fn(&BigUint) -> U,
) -> Vec<U> {
    let run = |instances: &[Instance], in_montgomery_form: bool| {
        let values: Vec<_> = instances
            .iter()
            .map(|x| (number(&x.a), number(&x.b)))
            .collect();
        let batch: Vec<_> = values
            .iter()
            .zip(params)
            .map(|((a, b), params)| ModMul::new(a, b, params))
            .collect();
        let ones = (BigUint::from(1u8) << width) - 1u8;
        let mut out: Vec<_> = batch.iter().map(|_| number(&ones)).collect();
        let result = match in_montgomery_form {
            false => backend.batch_mod_mul(&batch, &mut out),
            true => backend.batch_monty_mul(&batch, &mut out),
        };
        result.unwrap();
        for (i, (result, instance)) in out.iter().zip(instances).enumerate() {
            let result = to_big(result);
            let is_right = match in_montgomery_form {
                false => result == instance.expected(),
                true => instance.is_in_montgomery_form(&result, width),
            };
            assert!(
                is_right,
                "instance {i} of {}, {width} bits, Montgomery form: {in_montgomery_form}, {instance:x?}, {result:x}",
                instances.len()
            );
        }
        out
    };
    for side in [0, 1] {
        let reduced: Vec<_> = instances
            .iter()
            .map(|instance| instance.reduced()[side].clone())
            .collect();
        run(&reduced, true);
    }
    run(instances, false)
}
