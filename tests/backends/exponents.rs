//! Exponents with separate lengths, and exponents wider than their modulus.

use batch_modexp::{BatchModExpEach as _, ModExp};
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{BoxedUint, Odd, U512};
use num_bigint::{BigRng010 as _, BigUint};

use super::Backend;
use super::edge_cases::{random_instance, rng};
use super::reference::{Instance, boxed_params, to_big, to_boxed, to_fixed};

/// Moduli of several widths, some shared, with exponents of unrelated widths and lengths. Each
/// result is that of the low bits of its own length.
pub fn mixed_lengths<B: Backend>(backend: &B) {
    let mut rng = rng();
    let widths = [512, 128, 1024, 512];
    let moduli = widths.map(|width| random_instance(&mut rng, width).modulus);
    let params: Vec<_> = moduli
        .iter()
        .zip(widths)
        .map(|(m, width)| boxed_params(m, width))
        .collect();
    // The modulus, the width of the exponent, and its length.
    let lanes = [
        (0, 512, 512),
        (1, 128, 3),
        (0, 512, 17),
        (2, 64, 64),
        (3, 512, 17),
        (0, 64, 0),
        (2, 1024, 300),
        (1, 256, 256),
        (0, 512, 512),
        (1, 128, 0),
        (3, 2048, 700),
        (2, 64, 63),
        (0, 128, 17),
        (1, 128, 128),
    ];
    let operands: Vec<_> = lanes
        .iter()
        .map(|&(modulus, width, bits)| {
            let instance = Instance {
                base: rng.random_biguint(widths[modulus].into()),
                exponent: rng.random_biguint(u64::from(width)),
                modulus: moduli[modulus].clone(),
            };
            let (base, exponent) = (&instance.base, &instance.exponent);
            let boxed = (to_boxed(base, widths[modulus]), to_boxed(exponent, width));
            (instance, boxed, bits)
        })
        .collect();
    let batch: Vec<_> = operands
        .iter()
        .zip(lanes)
        .map(|((_, (base, exponent), _), (modulus, ..))| {
            ModExp::new(base, exponent, params[modulus].as_ref())
        })
        .collect();
    let bits: Vec<u32> = lanes.iter().map(|lane| lane.2).collect();
    let mut out = vec![BoxedUint::max(64); batch.len()];
    backend.batch_mod_exp_each(&batch, &bits, &mut out).unwrap();
    for ((result, (instance, _, bits)), (modulus, ..)) in out.iter().zip(&operands).zip(lanes) {
        assert_eq!(
            to_big(result),
            instance.expected(*bits),
            "{bits} bits: {instance:x?}"
        );
        assert_eq!(result.bits_precision(), widths[modulus]);
    }

    let lengths = [512, 0, 33, 512, 33, 7, 511, 33, 34];
    let fixed = lengths.map(|_| random_instance(&mut rng, 512));
    let values = fixed.each_ref().map(|x| {
        let params = FixedMontyParams::new(Odd::new(to_fixed(&x.modulus)).unwrap());
        (to_fixed(&x.base), to_fixed(&x.exponent), params)
    });
    let batch = values
        .each_ref()
        .map(|(base, exponent, params)| ModExp::new(base, exponent, params));
    let mut out = [U512::MAX; 9];
    backend
        .batch_mod_exp_each(&batch, &lengths, &mut out)
        .unwrap();
    for ((result, instance), bits) in out.iter().zip(&fixed).zip(lengths) {
        assert_eq!(
            to_big(result),
            instance.expected(bits),
            "{bits} bits: {instance:x?}"
        );
    }
    backend
        .batch_mod_exp_each(&[], &[], &mut [] as &mut [U512])
        .unwrap();
}

/// Exponents of up to five times the width of their modulus, used in whole and in part.
pub fn wider_than_moduli<B: Backend>(backend: &B) {
    let mut rng = rng();
    for (width, exponent_width) in [(64, 128), (192, 1024), (512, 576), (1024, 1100)] {
        let exponent_width = u32::next_multiple_of(exponent_width, 64);
        let instances = [(); 9].map(|()| Instance {
            exponent: rng.random_biguint(exponent_width.into())
                | (BigUint::from(1u8) << (exponent_width - 1)),
            ..random_instance(&mut rng, width)
        });
        let values = instances.each_ref().map(|x| {
            (
                to_boxed(&x.base, width),
                to_boxed(&x.exponent, exponent_width),
                boxed_params(&x.modulus, width),
            )
        });
        let batch = values
            .each_ref()
            .map(|(base, exponent, params)| ModExp::new(base, exponent, params.as_ref()));
        for exponent_bits in [exponent_width, width + 1, width, 5] {
            let mut out = vec![BoxedUint::zero(); batch.len()];
            backend
                .batch_mod_exp(&batch, exponent_bits, &mut out)
                .unwrap();
            for (result, instance) in out.iter().zip(&instances) {
                assert_eq!(
                    to_big(result),
                    instance.expected(exponent_bits),
                    "{exponent_bits} bits: {instance:x?}"
                );
                assert_eq!(result.bits_precision(), width);
            }
        }
    }
}
