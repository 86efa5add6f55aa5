//! Edge cases of multiplications.

use batch_modexp::ModMul;
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::{BoxedMontyForm, FixedMontyForm, FixedMontyParams};
use crypto_bigint::{BoxedUint, Odd, Uint};
use num_bigint::{BigRng010 as _, BigUint};

use super::Backend;
use super::reference::{Boxed, Fixed, Instance, check, check_boxed, check_fixed};
use crate::edge_cases::{all_ones, moduli, power_of_two, rng};
use crate::reference::{boxed_params, to_big, to_boxed, to_fixed};

/// A random instance whose modulus has exactly `width` bits.
fn random_instance(rng: &mut ChaCha20Rng, width: u32) -> Instance {
    let mut modulus = rng.random_biguint(width.into());
    modulus.set_bit(0, true);
    modulus.set_bit(u64::from(width) - 1, true);
    let [a, b] = [(); 2].map(|()| rng.random_biguint(width.into()));
    Instance { a, b, modulus }
}

fn random_instances(rng: &mut ChaCha20Rng, width: u32, count: usize) -> Vec<Instance> {
    (0..count).map(|_| random_instance(rng, width)).collect()
}

/// Every combination of extreme factors and moduli.
pub fn factors_and_moduli<B: Backend>(backend: &B) {
    let mut rng = rng();
    for width in [64, 128, 192, 256, 384, 512, 704, 1024, 2112] {
        let mut instances = Vec::new();
        for modulus in moduli(&mut rng, width) {
            let random = random_instance(&mut rng, width);
            let factors = [
                0u8.into(),
                1u8.into(),
                &modulus - 1u8,
                modulus.clone(),
                power_of_two(width - 1),
                all_ones(width),
                random.a,
            ];
            for a in &factors {
                for b in &factors {
                    instances.push(Instance {
                        a: a.clone(),
                        b: b.clone(),
                        modulus: modulus.clone(),
                    });
                }
            }
        }
        check_boxed(backend, width, &instances);
    }
}

fn fixed_width<const L: usize, B: Fixed<L>>(backend: &B) {
    let mut rng = rng();
    for count in [1, 3, 130] {
        let instances = random_instances(&mut rng, L as u32 * 64, count);
        check_fixed::<L, _>(backend, &instances);
    }
}

/// `Uint<L>` at the widths of elliptic curves, and some others.
pub fn fixed_widths<B: Backend>(backend: &B) {
    fixed_width::<1, _>(backend);
    fixed_width::<2, _>(backend);
    fixed_width::<3, _>(backend);
    fixed_width::<4, _>(backend);
    fixed_width::<6, _>(backend);
    fixed_width::<8, _>(backend);
    fixed_width::<11, _>(backend);
    fixed_width::<64, _>(backend);
}

/// `BoxedUint` with every number of limbs up to 64 and some above.
pub fn boxed_widths<B: Backend>(backend: &B) {
    let mut rng = rng();
    for limbs in (1..=64).chain([65, 72, 80, 96, 127, 128, 129, 192, 255, 256]) {
        let width = limbs * 64;
        check_boxed(backend, width, &random_instances(&mut rng, width, 2));
        check_boxed(backend, width, &random_instances(&mut rng, width, 11));
    }
}

/// Batches of no instance, of one, of about eight lanes, and of enough for several threads.
pub fn batch_sizes<B: Backend>(backend: &B) {
    let mut rng = rng();
    for count in [0, 1, 3, 4, 5, 7, 8, 9, 63, 64, 65] {
        check_boxed(backend, 256, &random_instances(&mut rng, 256, count));
    }
    check_boxed(backend, 2048, &random_instances(&mut rng, 2048, 259));
}

/// Instances that share a reference to their modulus beside others, mixed widths in one batch, and
/// factors narrower than their modulus.
pub fn shared_and_mixed_moduli<B: Boxed>(backend: &B) {
    let mut rng = rng();
    let widths = [512, 512, 128, 576, 64, 576, 512];
    let moduli: Vec<_> = widths
        .iter()
        .map(|&width| random_instance(&mut rng, width).modulus)
        .collect();
    let params: Vec<_> = moduli
        .iter()
        .zip(widths)
        .map(|(m, width)| boxed_params(m, width))
        .collect();
    let order = [0, 0, 1, 0, 2, 2, 3, 3, 3, 4, 5, 6, 6, 0].repeat(20);
    let factors: Vec<_> = order
        .iter()
        .enumerate()
        .map(|(position, &i)| {
            // Both factors are narrow, or one.
            let width = [64, widths[i]][position % 2];
            (rng.random_biguint(64), rng.random_biguint(width.into()), i)
        })
        .collect();
    let boxed: Vec<_> = factors
        .iter()
        .map(|(a, b, i)| {
            let width = if b.bits() <= 64 { 64 } else { widths[*i] };
            (to_boxed(a, 64), to_boxed(b, width), *i)
        })
        .collect();
    let batch: Vec<_> = boxed
        .iter()
        .map(|(a, b, i)| ModMul::new(a, b, params[*i].as_ref()))
        .collect();
    // In both orders.
    let swapped: Vec<_> = batch
        .iter()
        .map(|x| ModMul::new(x.b, x.a, x.params))
        .collect();
    for batch in [batch, swapped] {
        let mut out = vec![BoxedUint::zero(); batch.len()];
        backend.batch_mod_mul(&batch, &mut out).unwrap();
        for ((a, b, i), result) in factors.iter().zip(&out) {
            assert_eq!(to_big(result), a * b % &moduli[*i]);
            assert_eq!(result.bits_precision(), widths[*i]);
        }
    }
}

/// Enough products for vectors to pay, with another modulus between them.
pub fn long_runs_of_one_modulus<B: Backend>(backend: &B) {
    let mut rng = rng();
    for (width, count) in [(128, 600), (256, 600), (512, 100), (1024, 50)] {
        let mut instances = random_instances(&mut rng, width, count);
        let [first, second] = [0, 1].map(|i| instances[i].modulus.clone());
        let params = [&first, &second].map(|modulus| boxed_params(modulus, width));
        let mut params_of = Vec::new();
        for (i, instance) in instances.iter_mut().enumerate() {
            let which = usize::from(i % 50 >= 45);
            instance.modulus = [&first, &second][which].clone();
            params_of.push(params[which].as_ref());
        }
        check(backend, width, &instances, &params_of, |x| {
            to_boxed(x, width)
        });
    }
}

/// The Montgomery form of crypto-bigint is ours.
pub fn montgomery_forms_of_crypto_bigint<B: Backend>(backend: &B) {
    fixed_forms::<4, _>(backend);
    fixed_forms::<6, _>(backend);
    for width in [256, 704] {
        let Instance { a, b, modulus } = random_instance(&mut rng(), width);
        let params = boxed_params(&modulus, width);
        let form = |number: &BigUint| BoxedMontyForm::new(to_boxed(number, width), &params);
        let (form_a, form_b) = (form(&(&a % &modulus)), form(&(&b % &modulus)));
        let batch = [ModMul::new(
            form_a.as_montgomery(),
            form_b.as_montgomery(),
            params.as_ref(),
        )];
        let mut out = [BoxedUint::zero()];
        backend.batch_monty_mul(&batch, &mut out).unwrap();
        let [product] = out.map(|form| BoxedMontyForm::from_montgomery(form, &params));
        assert_eq!(to_big(&product.retrieve()), a * b % modulus);
    }
}

fn fixed_forms<const L: usize, B: Fixed<L>>(backend: &B) {
    let Instance { a, b, modulus } = random_instance(&mut rng(), L as u32 * 64);
    let params = FixedMontyParams::new(Odd::new(to_fixed::<L>(&modulus)).unwrap());
    let form = |number: &BigUint| FixedMontyForm::new(&to_fixed(number), &params);
    let (form_a, form_b, one) = (form(&a), form(&b), Uint::ONE);
    let r2 = *params.r2();
    let (plain_a, plain_b) = (to_fixed(&a), to_fixed(&b));
    let batch = [
        ModMul::new(form_a.as_montgomery(), form_b.as_montgomery(), &params),
        // Out of Montgomery form, into it, and neither.
        ModMul::new(form_a.as_montgomery(), &one, &params),
        ModMul::new(&plain_a, &r2, &params),
        ModMul::new(&plain_a, form_b.as_montgomery(), &params),
        ModMul::new(form_a.as_montgomery(), &plain_b, &params),
    ];
    let mut out = [Uint::ZERO; 5];
    backend.batch_monty_mul(&batch, &mut out).unwrap();
    let product = FixedMontyForm::from_montgomery(out[0], &params).retrieve();
    let expected = &a * &b % &modulus;
    assert_eq!(to_big(&product), expected);
    assert_eq!(to_big(&out[1]), a % &modulus);
    assert_eq!(out[2], *form_a.as_montgomery());
    assert_eq!(
        [&out[3], &out[4]].map(to_big),
        [(); 2].map(|()| expected.clone())
    );
}

/// The width of a result is that of its modulus, whatever was in its place before.
pub fn outputs_of_any_width_are_replaced<B: Boxed>(backend: &B) {
    let instance = random_instance(&mut rng(), 256);
    let (a, b) = (to_boxed(&instance.a, 256), to_boxed(&instance.b, 256));
    let params = boxed_params(&instance.modulus, 256);
    for count in [3, 600] {
        let batch = vec![ModMul::new(&a, &b, params.as_ref()); count];
        let widths = [64, 256, 1024].into_iter().cycle();
        let mut out: Vec<_> = widths.take(count).map(BoxedUint::max).collect();
        backend.batch_mod_mul(&batch, &mut out).unwrap();
        for result in out {
            assert_eq!(
                (to_big(&result), result.bits_precision()),
                (instance.expected(), 256)
            );
        }
    }
}
