//! Results against num-bigint.

use batch_modexp::ModExp;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Odd};
use num_bigint::BigUint;

use super::Unit;

/// The widths that are checked, in bits.
const WIDTHS: std::ops::RangeInclusive<u32> = 512..=4096;

/// Lengths of exponents besides the full width: they take windows of 1, 2, 3 and 4 bits.
const EXPONENT_BITS: [u32; 6] = [0, 1, 4, 22, 89, 173];

/// Base, exponent, modulus.
type Instance = [BigUint; 3];

/// Compares random and adversarial instances at every width, and returns how many were equal.
pub(crate) fn all_widths(unit: &Unit) -> Result<usize, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(52);
    let mut count = 0;
    for width in WIDTHS.step_by(64) {
        for exponent_bits in EXPONENT_BITS {
            count += compare(unit, width, exponent_bits, &instances(&mut rng, width, 17))?;
        }
        count += compare(unit, width, width, &instances(&mut rng, width, 8))?;
    }
    Ok(count)
}

/// Numbers that carry far, at the borders of the range, and random ones, all in one batch.
fn instances(rng: &mut ChaCha8Rng, width: u32, count: usize) -> Vec<Instance> {
    let one = BigUint::from(1u8);
    let ones = (&one << width) - 1u8;
    let top = &one << (width - 1);
    (0..count)
        .map(|i| {
            let modulus = match i % 7 {
                0 => ones.clone(),
                1 => &top | &one,
                2 => sparse(rng, width) | &top | &one,
                3 => BigUint::from(rng.next_u64() | 1),
                4 => one.clone(),
                _ => dense(rng, width) | &top | &one,
            };
            let base = match rng.next_u64() % 6 {
                0 => ones.clone(),
                1 => &modulus - 1u8,
                2 => sparse(rng, width),
                3 => BigUint::ZERO,
                _ => dense(rng, width),
            };
            let exponent = match rng.next_u64() % 5 {
                0 => ones.clone(),
                1 => top.clone(),
                2 => sparse(rng, width),
                _ => dense(rng, width),
            };
            [base, exponent, modulus]
        })
        .collect()
}

fn dense(rng: &mut ChaCha8Rng, width: u32) -> BigUint {
    let limbs = (0..width / 32).map(|_| rng.next_u32()).collect();
    BigUint::new(limbs)
}

/// Limbs of 52 bits that are all zeros or all ones.
fn sparse(rng: &mut ChaCha8Rng, width: u32) -> BigUint {
    let limbs = (0..width.div_ceil(52)).fold(BigUint::ZERO, |number, _| {
        (number << 52u32) + (rng.next_u64() & 1) * ((1 << 52) - 1)
    });
    limbs & ((BigUint::from(1u8) << width) - 1u8)
}

fn compare(
    unit: &Unit,
    width: u32,
    exponent_bits: u32,
    instances: &[Instance],
) -> Result<usize, String> {
    let boxed = |number: &BigUint| {
        BoxedUint::from_le_slice(&number.to_bytes_le(), width).expect("it fits the width")
    };
    let values: Vec<_> = instances
        .iter()
        .map(|[base, exponent, modulus]| {
            let modulus = Odd::new(boxed(modulus)).expect("an odd modulus");
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
    let mut out = vec![BoxedUint::zero_with_precision(width); batch.len()];
    unit.batch_mod_exp(&batch, exponent_bits, &mut out)
        .map_err(|error| error.to_string())?;
    let mask = (BigUint::from(1u8) << exponent_bits) - 1u8;
    for ([base, exponent, modulus], out) in instances.iter().zip(&out) {
        let expected = base.modpow(&(exponent & &mask), modulus);
        if BigUint::from_bytes_le(&out.to_le_bytes()) != expected {
            return Err(format!(
                "wrong at {width} bits: {base:#x} ^ {exponent:#x} (low {exponent_bits} bits) mod {modulus:#x}"
            ));
        }
    }
    Ok(batch.len())
}
