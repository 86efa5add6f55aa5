//! Batches of products with all secrets marked.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::{BatchModMul, Error, ModMul};
use crypto_bigint::modular::{BoxedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Odd, Uint};

use crate::lanes::testing::Random;
use crate::valgrind::{set_modulus_undefined, set_undefined};

/// Products of `Uint`s in both forms with everything secret, for more instances than lanes, with
/// separate and shared moduli.
pub(super) fn each_product<const LIMBS: usize>(
    backend: &dyn BatchModMul<Uint<LIMBS>, Error = Error>,
) {
    let mut random = Random(3);
    let mut number = || {
        let mut number = Uint::<LIMBS>::ZERO;
        number.as_mut_limbs().fill_with(|| random.next().into());
        number
    };
    let values: Vec<_> = (0..19)
        .map(|_| {
            let modulus = Odd::new(number() | Uint::ONE).unwrap();
            (number(), number(), MontyParams::new(modulus))
        })
        .collect();
    set_undefined(&values, true);
    let mut batch: Vec<_> = values
        .iter()
        .map(|(a, b, params)| ModMul::new(a, b, params))
        .collect();
    for _ in 0..2 {
        for count in [1, 19] {
            let mut out = vec![Uint::ZERO; count];
            backend.batch_mod_mul(&batch[..count], &mut out).unwrap();
            black_box(&out);
            backend.batch_monty_mul(&batch[..count], &mut out).unwrap();
            black_box(&out);
        }
        for instance in &mut batch {
            instance.params = &values[0].2;
        }
    }
    set_undefined(&values, false);
}

/// Like [`each_product`], with `BoxedUint`s.
pub(super) fn each_product_boxed(backend: &dyn BatchModMul<BoxedUint, Error = Error>, bits: u32) {
    let mut random = Random(4);
    let mut number = || {
        let mut number = BoxedUint::zero_with_precision(bits);
        number.as_mut_limbs().fill_with(|| random.next().into());
        number
    };
    let values: Vec<_> = (0..9)
        .map(|_| {
            let modulus = Odd::new(number() | BoxedUint::one_with_precision(bits)).unwrap();
            (number(), number(), BoxedMontyParams::new(modulus))
        })
        .collect();
    let mark = |undefined| {
        for (a, b, params) in &values {
            set_undefined(a.as_limbs(), undefined);
            set_undefined(b.as_limbs(), undefined);
            set_modulus_undefined(ModulusRef::of(params.as_ref()), undefined);
        }
    };
    mark(true);
    let batch: Vec<_> = values
        .iter()
        .map(|(a, b, params)| ModMul::new(a, b, params.as_ref()))
        .collect();
    let mut out = vec![BoxedUint::zero(); batch.len()];
    backend.batch_mod_mul(&batch, &mut out).unwrap();
    black_box(&out);
    backend.batch_monty_mul(&batch, &mut out).unwrap();
    black_box(&out);
    mark(false);
}
