//! Tests against num-bigint. Most need a GPU.

use std::time::Instant;

use batch_modexp_core::{BatchModExp as _, ModExp};
use crypto_bigint::modular::{BoxedMontyParams, FixedMontyParams};
use crypto_bigint::{BoxedUint, Limb, Odd, Resize, U1024, Uint};
use num_bigint::BigUint;

use super::*;
use crate::backend::cuda::Device;

/// The first device.
fn gpu() -> Option<Cuda> {
    let found = crate::need::available("cuda", Cuda::probe())?;
    Some(Cuda::with_devices(&[found[0].ordinal()]).unwrap())
}

fn big(limbs: &[Limb]) -> BigUint {
    let octets = limbs.iter().flat_map(|limb| limb.0.to_le_bytes());
    BigUint::from_bytes_le(&octets.collect::<Vec<_>>())
}

fn boxed(number: &BigUint, bits: u32) -> BoxedUint {
    BoxedUint::from_be_slice_vartime(&number.to_bytes_be()).resize(bits)
}

fn ones(bits: u32) -> BigUint {
    (BigUint::from(1u8) << bits) - 1u8
}

/// Different exponents of up to `bits` bits, the extreme ones among them.
fn exponents(bits: u32, count: u32) -> Vec<BigUint> {
    let number = |i: u32| match i % 5 {
        0 => ones(bits) - i,
        1 => BigUint::from(i),
        2 => BigUint::from(0x9e37_79b9u32 + i).pow(bits / 32),
        3 => ones(bits) / (i + 2),
        _ => BigUint::from(1u8) << (i % bits),
    };
    let distinct: Vec<_> = (0..count.min(64)).map(number).collect();
    distinct.into_iter().cycle().take(count as usize).collect()
}

/// Powers with the low `bits` bits of exponents are those of num-bigint.
fn check(cuda: &Cuda, modulus: &BigUint, base: &BigUint, width: u32, bits: u32, count: u32) {
    let params = BoxedMontyParams::new(Odd::new(boxed(modulus, width)).unwrap());
    let table = cuda
        .fixed_base(&boxed(base, width), params.as_ref(), bits, 16 << 20)
        .unwrap();
    assert!(table.is_on_devices() && table.bytes() <= 16 << 20);
    assert_eq!((table.exponent_bits(), table.is_signed()), (bits, false));
    let numbers = exponents(width, count);
    let batch: Vec<_> = numbers.iter().map(|x| boxed(x, width)).collect();
    for bits in [bits, bits / 3] {
        // Results get the width of the modulus.
        let mut out = vec![BoxedUint::from(7u8); batch.len()];
        cuda.batch_fixed_base_exp(&table, &batch, bits, &mut out)
            .unwrap();
        let expected = numbers[..numbers.len().min(64)]
            .iter()
            .map(|x| base.modpow(&(x & ones(bits)), modulus));
        let expected: Vec<_> = expected.collect();
        for (i, power) in out.iter().enumerate() {
            assert_eq!(power.bits_precision(), width);
            assert_eq!(
                big(power.as_limbs()),
                expected[i % 64],
                "{width} {bits} {i}"
            );
        }
    }
}

#[test]
fn powers_of_all_widths() {
    let Some(cuda) = gpu() else { return };
    for (width, bits) in [
        (1024, 1024),
        (1024, 256),
        (1536, 1536),
        (2048, 2048),
        (2048, 31),
        (2048, 1),
        // Narrower than their class.
        (1088, 1088),
        (192, 192),
        (1984, 300),
    ] {
        let modulus = ones(width) - 188u8;
        check(&cuda, &modulus, &(ones(width) / 3u8), width, bits, 200);
    }
    // Several chunks.
    let modulus = ones(2048) - 188u8;
    check(&cuda, &modulus, &BigUint::from(5u8), 2048, 256, 100_000);
    check(&cuda, &BigUint::from(1u8), &BigUint::from(0u8), 1024, 64, 9);
    assert!(cuda.devices.iter().all(Device::is_wiped));
}

/// Exponents of both signs and of all lengths, also shorter than a digit.
#[test]
fn signed_powers() {
    let Some(cuda) = gpu() else { return };
    let (modulus, base) = (ones(1024) - 104u8, BigUint::from(3u8));
    let inverse = base.modinv(&modulus).unwrap();
    let params =
        FixedMontyParams::new(Odd::new(U1024::from_be_slice(&modulus.to_bytes_be())).unwrap());
    let uint = |number: &BigUint| {
        let octets = number.to_bytes_be();
        U1024::from_be_slice(&[vec![0; 128 - octets.len()], octets].concat())
    };
    for bits in [1, 2, 5, 6, 7, 250, 1024] {
        let signed = |base, inverse| {
            cuda.signed_fixed_base(&uint(base), &uint(inverse), &params, bits, 16 << 20)
        };
        let table = signed(&base, &inverse).unwrap();
        assert!(table.is_on_devices() && table.is_signed());
        let numbers: Vec<_> = exponents(1024, 64);
        let batch: Vec<_> = numbers.iter().map(uint).collect();
        let mut out = vec![Uint::ZERO; batch.len()];
        cuda.batch_fixed_base_exp(&table, &batch, bits, &mut out)
            .unwrap();
        for (power, number) in out.iter().zip(&numbers) {
            let number = number & ones(bits);
            let expected = match number.bit(u64::from(bits - 1)) {
                true => inverse.modpow(&((BigUint::from(1u8) << bits) - number), &modulus),
                false => base.modpow(&number, &modulus),
            };
            assert_eq!(big(power.as_limbs()), expected, "{bits}");
        }
        let error = cuda.batch_fixed_base_exp(&table, &batch, bits - 1, &mut out);
        assert!(matches!(error, Err(Error::TableExponentBits { .. })));
        assert!(out.iter().all(|power| *power == U1024::ZERO));
        assert!(matches!(signed(&base, &base), Err(Error::NotInverse)));
    }
}

/// The processor computes what the kernels do not: wide moduli, long exponents, and moduli with a
/// factor of 29 bits that the kernels cannot take.
#[test]
fn the_processor_computes_the_rest() {
    let Some(cuda) = gpu() else { return };
    let factor = BigUint::from((1u32 << 29) - 3);
    let refused = &factor * ((ones(1000) / &factor) | BigUint::from(1u8));
    for (modulus, width, bits) in [
        (ones(3072) - 2u8, 3072, 100),
        (ones(64) - 58u8, 64, 3000),
        (refused, 1024, 64),
    ] {
        let params = BoxedMontyParams::new(Odd::new(boxed(&modulus, width)).unwrap());
        let base = BoxedUint::from(5u8).resize(width);
        let table = cuda
            .fixed_base(&base, params.as_ref(), bits, 16 << 20)
            .unwrap();
        assert!(!table.is_on_devices());
        let numbers = exponents(bits, 9);
        let batch: Vec<_> = numbers
            .iter()
            .map(|x| boxed(x, bits.next_multiple_of(64)))
            .collect();
        let mut out = vec![BoxedUint::zero(); 9];
        cuda.batch_fixed_base_exp(&table, &batch, bits, &mut out)
            .unwrap();
        for (power, number) in out.iter().zip(&numbers) {
            let expected = BigUint::from(5u8).modpow(&(number & ones(bits)), &modulus);
            assert_eq!(big(power.as_limbs()), expected);
        }
    }
}

/// Another backend gets a copy of the table, and keeps it if the first one is dropped.
#[test]
fn tables_outlive_backends_and_serve_others() {
    let (Some(first), Some(other)) = (gpu(), gpu()) else {
        return;
    };
    let params = FixedMontyParams::new(Odd::new(U1024::MAX).unwrap());
    let two = U1024::from(2u8);
    let table = first.fixed_base(&two, &params, 1000, 16 << 20).unwrap();
    let compute = |cuda: &Cuda| {
        let mut out = [U1024::ZERO; 3];
        let exponents = [1u32, 999, 0].map(U1024::from);
        cuda.batch_fixed_base_exp(&table, &exponents, 1000, &mut out)
            .unwrap();
        assert_eq!(out, [two, U1024::ONE << 999u32, U1024::ONE]);
    };
    compute(&first);
    compute(&other);
    drop(first);
    compute(&other);
}

#[test]
fn tables_and_exponents_are_checked() {
    let Some(cuda) = gpu() else { return };
    let params = BoxedMontyParams::new(Odd::new(BoxedUint::max(1024)).unwrap());
    let base = |bits| BoxedUint::from(3u8).resize(bits);
    let table = |bits, max_bytes| cuda.fixed_base(&base(bits), params.as_ref(), 512, max_bytes);
    assert!(matches!(
        table(1088, 16 << 20),
        Err(Error::BaseWidth { bits: 1088, .. })
    ));
    let Err(Error::TableBytes {
        bytes,
        max_bytes: 0,
    }) = table(1024, 0)
    else {
        panic!("no table fits in no octets");
    };
    let table = table(1024, bytes).unwrap();
    assert_eq!((table.bytes(), table.window_bits()), (bytes, WINDOW_BITS));
    let mut out = [BoxedUint::max(1024)];
    let mut compute = |width, bits| {
        let exponents = [BoxedUint::max(width)];
        let error = cuda.batch_fixed_base_exp(&table, &exponents, bits, &mut out);
        assert_eq!(out[0], BoxedUint::zero());
        error
    };
    assert!(matches!(
        compute(1024, 513),
        Err(Error::TableExponentBits {
            table_bits: 512,
            ..
        })
    ));
    assert!(matches!(
        compute(64, 65),
        Err(Error::ExponentBits { index: 0, .. })
    ));
}

/// The size for exponents of 2048 bits modulo 2048 bits: 410 rows of 32 entries of 144 residues, and
/// the modulus.
#[test]
fn octets_of_a_table() {
    let mut entries = family::narrowest(Operation::FixedExp, 2048);
    let entry = entries.next().unwrap();
    let words = |exponent_bits| {
        TableShape {
            entry,
            exponent_bits,
        }
        .words()
    };
    assert_eq!(words(2048), (410 * 32 * 144 * 4 + 256) / 8);
    assert_eq!(words(0), (32 * 144 * 4 + 256) / 8);
}

/// For measurements: the time of powers by a table, and of as many exponentiations.
#[test]
#[ignore = "a measurement on a GPU; docs/powers.md has the command"]
fn gain() {
    let Some(cuda) = gpu() else { return };
    for (bits, count) in [
        (1024, 101_376),
        (1536, 67_584),
        (2048, 67_584),
        (2048, 270_336),
    ] {
        let modulus = ones(bits) - 188u8;
        let params = BoxedMontyParams::new(Odd::new(boxed(&modulus, bits)).unwrap());
        let params = params.as_ref();
        let base = boxed(&(ones(bits) / 3u8), bits);
        let batch = exponents(bits, count);
        let batch: Vec<_> = batch.iter().map(|x| boxed(x, bits)).collect();
        let instance = |exponent| ModExp {
            base: &base,
            exponent,
            params,
        };
        let instances: Vec<_> = batch.iter().map(instance).collect();
        let mut out = vec![BoxedUint::zero_with_precision(bits); batch.len()];
        let table = cuda.fixed_base(&base, params, bits, 8 << 20).unwrap();
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let started = Instant::now();
                cuda.batch_fixed_base_exp(&table, &batch, bits, &mut out)
                    .unwrap();
                let by_table = started.elapsed();
                let started = Instant::now();
                cuda.batch_mod_exp(&instances, bits, &mut out).unwrap();
                (by_table, started.elapsed())
            })
            .collect();
        times.sort();
        let (by_table, without) = times[4];
        let ratio = without.as_secs_f64() / by_table.as_secs_f64();
        std::println!("{bits} bits, {count} powers: {by_table:?}, without {without:?}, {ratio:.2}");
    }
}
