//! Products of powers, and powers with public exponents, on every CPU backend, compared with
//! num-bigint.

use batch_modexp::backend::*;
use batch_modexp::{BatchModExpVartime, BatchMultiExp, Error, ModMultiExp, PublicExponent};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{BoxedUint, Odd, U512, Uint};
use num_bigint::{BigRng010 as _, BigUint};

use crate::edge_cases::{all_ones, moduli, power_of_two, rng};
use crate::reference::{boxed_params, to_big, to_boxed, to_fixed};

/// Instantiates the suite for a backend, as one test for each topic. After `if`, for a backend that
/// some machines lack, comes an `Option` of a reference to it.
macro_rules! suite {
    ($name:ident, $backend:expr) => {
        suite!($name if Some(&$backend));
    };
    ($name:ident if $backend:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "some backends are made by a function")]
            use super::*;

            #[test]
            fn bases_exponents_and_moduli() {
                if let Some(backend) = $backend {
                    super::bases_exponents_and_moduli(backend);
                }
            }

            #[test]
            fn numbers_of_terms_and_lengths() {
                if let Some(backend) = $backend {
                    super::numbers_of_terms_and_lengths(backend);
                }
            }

            #[test]
            fn mixed_widths_and_shared_moduli() {
                if let Some(backend) = $backend {
                    super::mixed_widths_and_shared_moduli(backend);
                }
            }

            #[test]
            fn fixed_width() {
                if let Some(backend) = $backend {
                    super::fixed_width(backend);
                }
            }

            #[test]
            fn public_exponents() {
                if let Some(backend) = $backend {
                    super::public_exponents(backend);
                }
            }

            #[test]
            fn many_terms() {
                if let Some(backend) = $backend {
                    crate::many_terms::all(backend);
                }
            }

            #[test]
            fn bad_input_is_an_error_and_leaves_zeros() {
                if let Some(backend) = $backend {
                    super::bad_input_is_an_error_and_leaves_zeros(backend);
                }
            }
        }
    };
}

suite!(serial, Serial);
suite!(
    parallel,
    Parallel::with_threads(Serial, 3.try_into().unwrap()).unwrap()
);
simd_suites!(suite);
suite!(
    cpu_threads,
    Cpu::with_threads(2.try_into().unwrap()).unwrap()
);
suite!(auto, Auto::new().unwrap());

/// A product of powers in num-bigint's types.
struct Instance {
    terms: Vec<(BigUint, BigUint)>,
    modulus: BigUint,
    width: u32,
}

impl Instance {
    /// A random instance with a modulus of exactly `width` bits.
    fn random(rng: &mut ChaCha20Rng, width: u32, lengths: &[u32]) -> Self {
        let mut modulus = rng.random_biguint(width.into());
        modulus.set_bit(0, true);
        modulus.set_bit(u64::from(width) - 1, true);
        let term = |bits: &u32| {
            let base = rng.random_biguint(width.into());
            // With more bits than are used.
            (base, rng.random_biguint(u64::from(*bits) + 9))
        };
        Self {
            terms: lengths.iter().map(term).collect(),
            modulus,
            width,
        }
    }

    fn expected(&self, lengths: &[u32]) -> BigUint {
        let powers = self.terms.iter().zip(lengths);
        powers.fold(BigUint::from(1u8), |product, ((base, exponent), bits)| {
            let exponent = exponent & &(power_of_two(*bits) - 1u8);
            product * base.modpow(&exponent, &self.modulus)
        }) % &self.modulus
    }
}

fn check(backend: &impl BatchMultiExp, instances: &[Instance], lengths: &[u32]) {
    let params: Vec<_> = instances
        .iter()
        .map(|x| boxed_params(&x.modulus, x.width))
        .collect();
    let numbers: Vec<Vec<_>> = instances
        .iter()
        .map(|x| {
            let term = |((base, exponent), bits): (&(BigUint, BigUint), &u32)| {
                (to_boxed(base, x.width), to_boxed(exponent, bits + 64))
            };
            x.terms.iter().zip(lengths).map(term).collect()
        })
        .collect();
    let terms: Vec<Vec<_>> = numbers
        .iter()
        .map(|terms| {
            terms
                .iter()
                .map(|(base, exponent)| (base, exponent))
                .collect()
        })
        .collect();
    let batch: Vec<_> = terms
        .iter()
        .zip(&params)
        .map(|(terms, params)| ModMultiExp::new(terms, params.as_ref()))
        .collect();
    let mut out = vec![BoxedUint::max(192); batch.len()];
    backend.batch_multi_exp(&batch, lengths, &mut out).unwrap();
    for (i, (instance, out)) in instances.iter().zip(&out).enumerate() {
        let expected = instance.expected(lengths);
        assert_eq!(
            to_big(out),
            expected,
            "{i}, {lengths:?}, {:x}",
            instance.modulus
        );
        assert_eq!(out.bits_precision(), instance.width);
    }
}

fn bases_exponents_and_moduli(backend: &impl BatchMultiExp) {
    let mut rng = rng();
    for width in [64, 192, 1024, 1088] {
        let bits = 70;
        let mut instances = Vec::new();
        for modulus in moduli(&mut rng, width) {
            let bases = [
                BigUint::ZERO,
                1u8.into(),
                &modulus - 1u8,
                modulus.clone(),
                all_ones(width),
            ];
            let exponents = [
                BigUint::ZERO,
                1u8.into(),
                power_of_two(bits - 1),
                all_ones(bits),
                rng.random_biguint(bits.into()),
            ];
            for (i, base) in bases.iter().enumerate() {
                for exponent in &exponents {
                    let other = (bases[(i + 2) % 5].clone(), exponents[i].clone());
                    instances.push(Instance {
                        terms: vec![(base.clone(), exponent.clone()), other],
                        modulus: modulus.clone(),
                        width,
                    });
                }
            }
        }
        check(backend, &instances, &[bits, bits]);
    }
}

fn numbers_of_terms_and_lengths(backend: &impl BatchMultiExp) {
    let mut rng = rng();
    for lengths in [
        &[][..],
        &[0],
        &[1, 0],
        &[5, 4, 3],
        &[256, 17],
        &[17, 256],
        &[400, 80, 1, 0, 401],
        &[64; 8],
        &[33; 17],
    ] {
        for count in [0, 1, 2, 9] {
            let instances: Vec<_> = (0..count)
                .map(|_| Instance::random(&mut rng, 320, lengths))
                .collect();
            check(backend, &instances, lengths);
        }
    }
    // Some engines look up entries beside products of such widths.
    for bits in [1024, 1536] {
        for lengths in [&[330, 17][..], &[17, 330], &[401, 80, 0, 399], &[340; 5]] {
            for count in [1, 9] {
                let instances: Vec<_> = (0..count)
                    .map(|_| Instance::random(&mut rng, bits, lengths))
                    .collect();
                check(backend, &instances, lengths);
            }
        }
    }
}

fn mixed_widths_and_shared_moduli(backend: &impl BatchMultiExp) {
    let mut rng = rng();
    let widths = [64, 64, 512, 512, 512, 64, 2048, 64];
    let mut instances: Vec<_> = (0..43)
        .map(|i| Instance::random(&mut rng, widths[i % widths.len()], &[90, 30]))
        .collect();
    check(backend, &instances, &[90, 30]);
    for instance in &mut instances {
        instance.width = 2048;
        instance.modulus = power_of_two(2047) + 2191u32;
    }
    check(backend, &instances, &[90, 30]);
}

fn fixed_width(backend: &impl BatchMultiExp) {
    let mut rng = rng();
    let instance = Instance::random(&mut rng, 512, &[503, 503, 503]);
    let params = FixedMontyParams::new(Odd::new(to_fixed::<8>(&instance.modulus)).unwrap());
    let numbers: Vec<(U512, U512)> = instance
        .terms
        .iter()
        .map(|(base, exponent)| (to_fixed(base), to_fixed(exponent)))
        .collect();
    let terms: Vec<_> = numbers.iter().map(|(a, b)| (a, b)).collect();
    let mut out = [Uint::MAX; 11];
    backend
        .batch_multi_exp(
            &[ModMultiExp::new(&terms, &params); 11],
            &[503; 3],
            &mut out,
        )
        .unwrap();
    assert_eq!(
        out.map(|x| to_big(&x)),
        [(); 11].map(|()| instance.expected(&[503; 3]))
    );
}

fn public_exponents(backend: &impl BatchModExpVartime) {
    let mut rng = rng();
    let mut exponents: Vec<BigUint> = (0..20u8).map(BigUint::from).collect();
    exponents.extend([65_537u32.into(), power_of_two(200), all_ones(200)]);
    exponents.extend([100, 256, 700].map(|bits| rng.random_biguint(bits)));
    for (widths, count) in [(&[256][..], 1), (&[256, 64, 64, 512], 30), (&[1088], 9)] {
        let instances: Vec<_> = (0..count)
            .map(|i| Instance::random(&mut rng, widths[i % widths.len()], &[0]))
            .collect();
        let numbers: Vec<_> = instances
            .iter()
            .map(|x| {
                let base = to_boxed(&x.terms[0].0, x.width);
                (base, boxed_params(&x.modulus, x.width))
            })
            .collect();
        let bases: Vec<_> = numbers.iter().map(|(base, x)| (base, x.as_ref())).collect();
        for exponent in &exponents {
            let public = PublicExponent::new_vartime(&to_boxed(exponent, 704));
            let mut out = vec![BoxedUint::max(192); count];
            backend
                .batch_mod_exp_vartime(&bases, &public, &mut out)
                .unwrap();
            for (instance, out) in instances.iter().zip(&out) {
                let expected = instance.terms[0].0.modpow(exponent, &instance.modulus);
                assert_eq!(to_big(out), expected, "exponent {exponent:x}");
                assert_eq!(out.bits_precision(), instance.width);
            }
        }
    }
    let wide = BoxedUint::max(320);
    let params = boxed_params(&(power_of_two(255) + 19u8), 256);
    let mut out = [BoxedUint::max(64)];
    let three = PublicExponent::new_vartime(&BoxedUint::from(3u8));
    let result = backend.batch_mod_exp_vartime(&[(&wide, params.as_ref())], &three, &mut out);
    let base_width = Error::BaseWidth {
        index: 0,
        bits: 320,
        modulus_bits: 256,
    };
    assert_eq!(result, Err(base_width));
    assert_eq!(to_big(&out[0]), BigUint::ZERO);
}

fn bad_input_is_an_error_and_leaves_zeros(backend: &impl BatchMultiExp) {
    let params = boxed_params(&(power_of_two(255) + 19u8), 256);
    let too_wide = boxed_params(&(power_of_two(16_447) + 1u8), 16_448);
    let [base, short, wide] = [256, 64, 320].map(BoxedUint::max);
    let good = [(&base, &base), (&base, &short)];
    let wide_base = [(&base, &base), (&wide, &short)];
    let one = [(&base, &base)];
    let run = |second, lengths: &[u32]| {
        let batch = [ModMultiExp::new(&good, params.as_ref()), second];
        let mut out = [(); 2].map(|()| BoxedUint::max(256));
        let result = backend.batch_multi_exp(&batch, lengths, &mut out);
        assert!(result.is_ok() || out.iter().all(|x| to_big(x) == BigUint::ZERO));
        result
    };
    let instance = |terms| ModMultiExp::new(terms, params.as_ref());
    assert_eq!(run(instance(&good), &[256, 64]), Ok(()));
    assert_eq!(
        run(instance(&one), &[256, 64]),
        Err(Error::Terms {
            index: 1,
            terms: 1,
            lengths: 2
        })
    );
    assert_eq!(
        run(instance(&good), &[256, 65]),
        Err(Error::ExponentBits {
            index: 0,
            exponent_bits: 65,
            width: 64
        })
    );
    assert_eq!(
        run(instance(&wide_base), &[256, 64]),
        Err(Error::BaseWidth {
            index: 1,
            bits: 320,
            modulus_bits: 256
        })
    );
    assert!(matches!(
        run(ModMultiExp::new(&good, too_wide.as_ref()), &[256, 64]),
        Err(Error::ModulusWidth {
            index: 1,
            bits: 16_448,
            ..
        })
    ));
}
