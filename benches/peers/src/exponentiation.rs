//! Modular exponentiations with full-length exponents.
//!
//! Every instance has its own modulus; all contenders receive its Montgomery constants.

use std::hint::black_box;

use batch_modexp::ModExp;
use crypto_bigint::BoxedUint;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use openssl::bn::{BigNum, BigNumContext};

use crate::backends::{At, Backend};
use crate::instances::Instances;
use crate::openssl_bn::{BnInstance, mod_exp, mod_exp_x2};
use crate::rounds::{Contender, Plan, compare as measure};

/// Measures exponentiation at `width` bits, ours in batches of `batch`.
///
/// # Panics
///
/// If the results of a backend, of crypto-bigint or of OpenSSL's function for two differ from those
/// of OpenSSL's function for one.
pub(crate) fn compare(
    width: u32,
    batch: usize,
    backends: &[(&'static str, Box<dyn Backend>)],
    plan: Plan,
) {
    // At least two, for OpenSSL's function that takes two.
    let instances = instances(width, batch.max(2));
    let instances = instances.batch();
    let bn_instances: Vec<BnInstance> = instances.iter().map(to_openssl).collect();
    let expected: Vec<BoxedUint> = bn_instances
        .iter()
        .map(|x| {
            let mut out = new_number();
            mod_exp(&mut out, x, &mut new_context());
            from_openssl(&out, width)
        })
        .collect();

    let mut contenders: Vec<_> = backends
        .iter()
        .map(|(name, backend)| ours(name, backend.boxed(), &instances[..batch], &expected))
        .collect();
    contenders.push(crypto_bigint(&instances, &expected));
    contenders.push(openssl(&bn_instances));
    contenders.push(openssl_x2(&bn_instances, &expected));
    let references = ["OpenSSL", "OpenSSL x2", "crypto-bigint"];
    measure(&mut contenders, &references, plan);
}

/// `count` random instances.
pub(crate) fn instances(width: u32, count: usize) -> Instances<BoxedUint> {
    let zero = BoxedUint::zero_with_precision(width);
    Instances::new(count, &zero, |modulus| {
        BoxedMontyParams::new(modulus).as_ref().clone()
    })
}

fn ours<'a>(
    name: &str,
    backend: &'a At<BoxedUint>,
    batch: &'a [ModExp<'a, BoxedUint>],
    expected: &[BoxedUint],
) -> Contender<'a> {
    let width = expected[0].bits_precision();
    let mut out = vec![BoxedUint::zero_with_precision(width); batch.len()];
    let run = move |out: &mut [BoxedUint]| {
        backend
            .batch_mod_exp(black_box(batch), width, out)
            .expect("a valid batch");
    };
    run(&mut out);
    assert_eq!(out, expected[..batch.len()], "{name} against OpenSSL");
    Contender::new(format!("batch-modexp {name}"), batch.len(), move || {
        run(&mut out);
    })
}

/// `BoxedMontyForm::pow`, which the `rsa` crate uses.
fn crypto_bigint<'a>(
    instances: &'a [ModExp<'a, BoxedUint>],
    expected: &[BoxedUint],
) -> Contender<'a> {
    let params: Vec<BoxedMontyParams> = instances
        .iter()
        .map(|x| BoxedMontyParams::from(x.params.clone()))
        .collect();
    let pow = |x: &ModExp<'_, BoxedUint>, params: &BoxedMontyParams| {
        BoxedMontyForm::new(x.base.clone(), params)
            .pow(x.exponent)
            .retrieve()
    };
    assert_eq!(pow(&instances[0], &params[0]), expected[0]);
    let mut next = (0..instances.len()).cycle();
    Contender::new("crypto-bigint", 1, move || {
        for i in next.by_ref().take(1) {
            black_box(pow(black_box(&instances[i]), &params[i]));
        }
    })
}

fn openssl(instances: &[BnInstance]) -> Contender<'_> {
    let (mut out, mut context) = (new_number(), new_context());
    let mut next = instances.iter().cycle();
    Contender::new("OpenSSL", 1, move || {
        for x in next.by_ref().take(1) {
            mod_exp(&mut out, black_box(x), &mut context);
        }
    })
}

fn openssl_x2<'a>(instances: &'a [BnInstance], expected: &[BoxedUint]) -> Contender<'a> {
    let (mut out, mut context) = ([new_number(), new_number()], new_context());
    mod_exp_x2(&mut out, [&instances[0], &instances[1]], &mut context);
    for (out, expected) in out.iter().zip(expected) {
        assert_eq!(&from_openssl(out, expected.bits_precision()), expected);
    }
    let mut next = instances.chunks_exact(2).cycle();
    Contender::new("OpenSSL x2", 2, move || {
        for pair in next.by_ref().take(1) {
            mod_exp_x2(&mut out, black_box([&pair[0], &pair[1]]), &mut context);
        }
    })
}

fn to_openssl(x: &ModExp<'_, BoxedUint>) -> BnInstance {
    BnInstance::new(
        &x.base.to_be_bytes(),
        &x.exponent.to_be_bytes(),
        &x.params.modulus().as_ref().to_be_bytes(),
    )
}

fn from_openssl(number: &BigNum, width: u32) -> BoxedUint {
    BoxedUint::from_be_slice(&number.to_vec(), width).expect("a number below the modulus")
}

fn new_number() -> BigNum {
    BigNum::new().expect("a number")
}

fn new_context() -> BigNumContext {
    BigNumContext::new().expect("a context")
}
