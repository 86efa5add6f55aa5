//! Batches of exponentiations, compared with num-bigint.

use batch_modexp::backend::Auto;
use batch_modexp::{BatchModExp, BatchModExpEach as _, Error, ModExp};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::{BoxedMontyParams, FixedMontyParams};
use crypto_bigint::{BoxedUint, Limb, Odd, U512, U1024, U2048, Uint, Unsigned};
use num_bigint::{BigRng010 as _, BigUint};

use crate::work::{Done, Outcome, Place, below, expect, pick};

/// Widths in bits, with and without a fit for SIMD lanes and kernels.
const WIDTHS: [u32; 8] = [64, 256, 512, 1024, 1088, 1536, 2048, 3072];

/// The number of compared results in a batch.
const SAMPLE: usize = 3;

/// An instance, as numbers of num-bigint.
struct Instance {
    base: BigUint,
    exponent: BigUint,
    /// Index of the modulus.
    modulus: usize,
}

/// `BoxedUint`s of one or several widths in a batch, with exponents of one or several lengths.
pub(crate) fn mixed_widths(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let single = *pick(rng, &WIDTHS);
    let is_mixed = below(rng, 2) == 0;
    let moduli: Vec<_> = (0..1 + below(rng, 4))
        .map(|_| {
            let width = if is_mixed {
                *pick(rng, &WIDTHS)
            } else {
                single
            };
            (width, odd(rng, width))
        })
        .collect();
    let params: Vec<_> = moduli
        .iter()
        .map(|(width, modulus)| boxed_params(modulus, *width))
        .collect();
    // Shorter than some moduli, and longer than others.
    let exponent_width = *pick(rng, &[64, 256, 1024]);
    let instances: Vec<_> = (0..place.size(rng))
        .map(|_| {
            let modulus = below(rng, moduli.len());
            Instance {
                base: rng.random_biguint(moduli[modulus].0.into()),
                exponent: rng.random_biguint(exponent_width.into()),
                modulus,
            }
        })
        .collect();
    let numbers: Vec<_> = instances
        .iter()
        .map(|x| {
            (
                boxed(&x.base, moduli[x.modulus].0),
                boxed(&x.exponent, exponent_width),
            )
        })
        .collect();
    let batch: Vec<_> = instances
        .iter()
        .zip(&numbers)
        .map(|(x, (base, exponent))| ModExp::new(base, exponent, params[x.modulus].as_ref()))
        .collect();
    let lengths: Vec<_> = match below(rng, 2) {
        0 => vec![below(rng, exponent_width as usize + 1) as u32; batch.len()],
        _ => batch
            .iter()
            .map(|_| below(rng, exponent_width as usize + 1) as u32)
            .collect(),
    };
    let mut out = vec![BoxedUint::max(64); batch.len()];
    let backend = place.backend(rng);
    let result = match lengths.iter().all(|&length| length == lengths[0]) {
        true => backend.batch_mod_exp(&batch, lengths[0], &mut out),
        false => backend.batch_mod_exp_each(&batch, &lengths, &mut out),
    };
    result.map_err(|error| format!("{}: {error}", backend.name()))?;
    corrupt(place, &mut out);
    for i in sample(rng, batch.len()) {
        let (width, modulus) = &moduli[instances[i].modulus];
        compare(backend, &instances[i], modulus, lengths[i], &out[i])?;
        expect(out[i].bits_precision() == *width, || {
            format!("{}: a result of another width", backend.name())
        })?;
    }
    Ok(done(batch.len()))
}

/// `Uint`s, with a modulus for each or one for all.
pub(crate) fn one_width(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    match below(rng, 3) {
        0 => uints::<{ U512::LIMBS }>(place, rng),
        1 => uints::<{ U1024::LIMBS }>(place, rng),
        _ => uints::<{ U2048::LIMBS }>(place, rng),
    }
}

fn uints<const LIMBS: usize>(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let width = LIMBS as u32 * Limb::BITS;
    let size = place.size(rng);
    let count = if below(rng, 2) == 0 { 1 } else { size };
    let moduli: Vec<_> = (0..count).map(|_| odd(rng, width)).collect();
    let params: Vec<_> = moduli.iter().map(fixed_params::<LIMBS>).collect();
    let exponent_bits = *pick(rng, &[17, width / 2, width]);
    let instances: Vec<_> = (0..size)
        .map(|i| Instance {
            base: rng.random_biguint(width.into()),
            exponent: rng.random_biguint(width.into()),
            modulus: i % count,
        })
        .collect();
    let numbers: Vec<_> = instances
        .iter()
        .map(|x| (fixed::<LIMBS>(&x.base), fixed::<LIMBS>(&x.exponent)))
        .collect();
    let batch: Vec<_> = instances
        .iter()
        .zip(&numbers)
        .map(|(x, (base, exponent))| ModExp::new(base, exponent, &params[x.modulus]))
        .collect();
    let mut out = vec![Uint::MAX; size];
    let backend = place.backend(rng);
    backend
        .batch_mod_exp(&batch, exponent_bits, &mut out)
        .map_err(|error| format!("{}: {error}", backend.name()))?;
    corrupt(place, &mut out);
    for i in sample(rng, size) {
        let x = &instances[i];
        compare(backend, x, &moduli[x.modulus], exponent_bits, &out[i])?;
    }
    Ok(done(size))
}

/// One exponent in the batch is too narrow, or one base too wide.
pub(crate) fn bad_input(place: &Place, rng: &mut ChaCha20Rng) -> Outcome {
    let params = boxed_params(&odd(rng, 512), 512);
    let [good, narrow, wide] = [512, 256, 576].map(BoxedUint::one_with_precision);
    let mut batch = vec![ModExp::new(&good, &good, params.as_ref()); place.size(rng)];
    let index = below(rng, batch.len());
    let expected = if below(rng, 2) == 0 {
        batch[index].exponent = &narrow;
        Error::ExponentBits {
            index,
            exponent_bits: 512,
            width: 256,
        }
    } else {
        batch[index].base = &wide;
        Error::BaseWidth {
            index,
            bits: 576,
            modulus_bits: 512,
        }
    };
    let mut out = vec![BoxedUint::max(512); batch.len()];
    let backend = place.backend(rng);
    let result = backend.batch_mod_exp(&batch, 512, &mut out);
    expect(result == Err(expected), || {
        format!("{}: bad input gave {result:?}", backend.name())
    })?;
    let are_zero = out.iter().all(|value| value.is_zero().to_bool());
    expect(are_zero, || {
        format!("{}: a failed batch left something", backend.name())
    })?;
    Ok(Done {
        items: batch.len() as u64,
        errors: 1,
        ..Done::default()
    })
}

fn compare<U: Unsigned>(
    backend: &Auto,
    instance: &Instance,
    modulus: &BigUint,
    exponent_bits: u32,
    result: &U,
) -> Result<(), String> {
    let mask = (BigUint::from(1u8) << exponent_bits) - 1u8;
    let expected = instance.base.modpow(&(&instance.exponent & mask), modulus);
    let octets = result
        .as_limbs()
        .iter()
        .flat_map(|limb| limb.0.to_le_bytes());
    let result = BigUint::from_bytes_le(&octets.collect::<Vec<_>>());
    expect(result == expected, || {
        let (base, exponent) = (&instance.base, &instance.exponent);
        let name = backend.name();
        format!(
            "{name}: {base:x} ^ {exponent:x} ({exponent_bits} bits) mod {modulus:x} gave {result:x}"
        )
    })
}

/// Changes all results, for the control.
fn corrupt<U: Unsigned>(place: &Place, out: &mut [U]) {
    if place.corrupts {
        out.iter_mut()
            .for_each(|value| value.as_mut_limbs()[0].0 ^= 1);
    }
}

fn done(items: usize) -> Done {
    Done {
        items: items as u64,
        checked: items.min(SAMPLE) as u64,
        ..Done::default()
    }
}

/// Random positions in a batch, and the last one.
fn sample(rng: &mut ChaCha20Rng, len: usize) -> Vec<usize> {
    let others = (1..len.min(SAMPLE)).map(|_| below(rng, len));
    others.chain([len - 1]).collect()
}

/// An odd number below 2^width, sometimes a much shorter one.
fn odd(rng: &mut ChaCha20Rng, width: u32) -> BigUint {
    let bits = if below(rng, 4) == 0 {
        1 + below(rng, width as usize) as u32
    } else {
        width
    };
    let mut modulus = rng.random_biguint(bits.into());
    modulus.set_bit(0, true);
    modulus
}

fn boxed(value: &BigUint, width: u32) -> BoxedUint {
    BoxedUint::from_le_slice(&value.to_bytes_le(), width).expect("a number below 2^width")
}

fn fixed<const LIMBS: usize>(value: &BigUint) -> Uint<LIMBS> {
    let mut fixed = Uint::ZERO;
    let boxed = boxed(value, LIMBS as u32 * Limb::BITS);
    fixed.as_mut_limbs().copy_from_slice(boxed.as_limbs());
    fixed
}

fn boxed_params(modulus: &BigUint, width: u32) -> BoxedMontyParams {
    BoxedMontyParams::new(Odd::new(boxed(modulus, width)).expect("an odd number"))
}

fn fixed_params<const LIMBS: usize>(modulus: &BigUint) -> FixedMontyParams<LIMBS> {
    FixedMontyParams::new(Odd::new(fixed(modulus)).expect("an odd number"))
}
