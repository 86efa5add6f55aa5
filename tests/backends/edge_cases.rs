//! Edge cases of exponentiations.

use batch_modexp::ModExp;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use crypto_bigint::BoxedUint;
use num_bigint::{BigRng010 as _, BigUint};

use super::Backend;
use super::reference::{
    Boxed, Fixed, Instance, boxed_params, check_boxed, check_fixed, to_big, to_boxed,
};

pub fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(0x6261_7463_682d_6d65)
}

pub fn power_of_two(exponent: u32) -> BigUint {
    BigUint::from(1u8) << exponent
}

pub fn all_ones(width: u32) -> BigUint {
    power_of_two(width) - 1u8
}

/// A random instance whose modulus has exactly `width` bits.
pub fn random_instance(rng: &mut ChaCha20Rng, width: u32) -> Instance {
    let mut modulus = rng.random_biguint(width.into());
    modulus.set_bit(0, true);
    modulus.set_bit(u64::from(width) - 1, true);
    let (base, exponent) = (
        rng.random_biguint(width.into()),
        rng.random_biguint(width.into()),
    );
    Instance {
        base,
        exponent,
        modulus,
    }
}

fn random_instances(rng: &mut ChaCha20Rng, width: u32, count: usize) -> Vec<Instance> {
    (0..count).map(|_| random_instance(rng, width)).collect()
}

/// Moduli with few bits set, with all bits set, and around the borders of 32-, 51-, 52- and 64-bit
/// limbs.
pub fn moduli(rng: &mut ChaCha20Rng, width: u32) -> Vec<BigUint> {
    let mut moduli = vec![
        1u8.into(),
        3u8.into(),
        all_ones(width),
        power_of_two(width - 1) + 1u8,
    ];
    for border in [32, 51, 52, 64, 102, 104, 128] {
        if border < width {
            moduli.extend([all_ones(border), power_of_two(border) + 1u8]);
            moduli.push(all_ones(width) - power_of_two(border));
        }
    }
    moduli.push(random_instance(rng, width).modulus);
    moduli
}

/// Every combination of extreme bases, exponents and moduli.
pub fn bases_exponents_and_moduli<B: Backend>(backend: &B) {
    let mut rng = rng();
    for width in [64, 128, 192, 512, 1024] {
        let mut instances = Vec::new();
        for modulus in moduli(&mut rng, width) {
            let random = random_instance(&mut rng, width);
            let bases = [
                0u8.into(),
                1u8.into(),
                &modulus - 1u8,
                modulus.clone(),
                all_ones(width),
            ];
            let exponents = [
                0u8.into(),
                1u8.into(),
                all_ones(width),
                power_of_two(width - 1),
            ];
            for base in bases.into_iter().chain([random.base]) {
                for exponent in exponents.iter().chain([&random.exponent]) {
                    let (base, exponent) = (base.clone(), exponent.clone());
                    instances.push(Instance {
                        base,
                        exponent,
                        modulus: modulus.clone(),
                    });
                }
            }
        }
        check_boxed(backend, width, width, &instances);
        check_boxed(backend, width, 17, &instances);
    }
}

fn fixed_width<const L: usize, B: Fixed<L>>(backend: &B) {
    let width = L as u32 * 64;
    let instances = random_instances(&mut rng(), width, 3);
    check_fixed::<L, _>(backend, width, &instances);
}

/// `Uint<L>` at the widths of RSA moduli and primes, and at the smallest width.
pub fn fixed_widths<B: Backend>(backend: &B) {
    fixed_width::<1, _>(backend);
    fixed_width::<2, _>(backend);
    fixed_width::<8, _>(backend);
    fixed_width::<12, _>(backend);
    fixed_width::<16, _>(backend);
    fixed_width::<24, _>(backend);
    fixed_width::<32, _>(backend);
    fixed_width::<48, _>(backend);
    fixed_width::<64, _>(backend);
}

/// `BoxedUint` with every number of limbs up to 64 and some above, with short exponents.
pub fn boxed_widths<B: Backend>(backend: &B) {
    let mut rng = rng();
    for limbs in (1..=64).chain([65, 72, 80, 96, 127, 128, 129, 192, 255, 256]) {
        let width = limbs * 64;
        check_boxed(backend, width, 20, &random_instances(&mut rng, width, 2));
    }
}

/// Every number of exponent bits from 0 to the width.
pub fn exponent_lengths<B: Backend>(backend: &B) {
    let instances = random_instances(&mut rng(), 128, 2);
    for exponent_bits in 0..=128 {
        check_boxed(backend, 128, exponent_bits, &instances);
    }
}

/// Batches of no instance, of one, of about eight lanes, and of enough for several threads.
pub fn batch_sizes<B: Backend>(backend: &B) {
    let mut rng = rng();
    for count in [0, 1, 7, 8, 9, 63, 64, 65] {
        check_boxed(backend, 256, 256, &random_instances(&mut rng, 256, count));
    }
}

/// Instances that share a reference to their modulus beside others, mixed widths in one batch, and
/// operands narrower than their modulus.
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
    let order = [0, 0, 1, 0, 2, 2, 3, 3, 3, 4, 5, 6, 6, 0];
    let operands: Vec<_> = order
        .iter()
        .map(|&i| {
            (
                rng.random_biguint(64),
                rng.random_biguint(widths[i].into()),
                i,
            )
        })
        .collect();
    let boxed: Vec<_> = operands
        .iter()
        .map(|(exponent, base, i)| (to_boxed(exponent, 64), to_boxed(base, widths[*i]), *i))
        .collect();
    let batch: Vec<_> = boxed
        .iter()
        .map(|(exponent, base, i)| ModExp {
            base,
            exponent,
            params: params[*i].as_ref(),
        })
        .collect();
    let mut out = vec![BoxedUint::zero(); batch.len()];
    backend.batch_mod_exp(&batch, 64, &mut out).unwrap();
    for ((exponent, base, i), result) in operands.iter().zip(&out) {
        assert_eq!(to_big(result), base.modpow(exponent, &moduli[*i]));
        assert_eq!(result.bits_precision(), widths[*i]);
    }
}

/// The width of a result is that of its modulus, whatever was in its place before.
pub fn outputs_of_any_width_are_replaced<B: Boxed>(backend: &B) {
    let instance = random_instance(&mut rng(), 256);
    let (base, exponent) = (
        to_boxed(&instance.base, 256),
        to_boxed(&instance.exponent, 256),
    );
    let params = boxed_params(&instance.modulus, 256);
    let batch = [ModExp {
        base: &base,
        exponent: &exponent,
        params: params.as_ref(),
    }; 3];
    let mut out = [
        BoxedUint::max(64),
        BoxedUint::max(256),
        BoxedUint::max(1024),
    ];
    backend.batch_mod_exp(&batch, 256, &mut out).unwrap();
    for result in out {
        assert_eq!(
            (to_big(&result), result.bits_precision()),
            (instance.expected(256), 256)
        );
    }
}
