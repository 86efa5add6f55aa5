//! Powers of a fixed base on every CPU backend, compared with num-bigint.

use batch_modexp::backend::*;
use batch_modexp::{BatchFixedBaseExp, BatchFixedBaseExpVartime, Error};
use chacha20::ChaCha20Rng;
use crypto_bigint::modular::FixedMontyParams;
use crypto_bigint::{BoxedUint, Odd, Uint};
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
            fn every_window_and_length() {
                if let Some(backend) = $backend {
                    super::every_window_and_length(backend);
                }
            }

            #[test]
            fn zeros_among_public_digits() {
                if let Some(backend) = $backend {
                    super::zeros_among_public_digits(backend);
                }
            }

            #[test]
            fn batch_sizes() {
                if let Some(backend) = $backend {
                    super::batch_sizes(backend);
                }
            }

            #[test]
            fn fixed_widths() {
                if let Some(backend) = $backend {
                    super::fixed_width::<1>(backend);
                    super::fixed_width::<12>(backend);
                    super::fixed_width::<32>(backend);
                }
            }

            #[test]
            fn exponents_with_a_sign() {
                if let Some(backend) = $backend {
                    super::exponents_with_a_sign(backend);
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

/// Tables for secret exponents and for public ones.
trait Tables: BatchFixedBaseExp + BatchFixedBaseExpVartime {}

impl<B: BatchFixedBaseExp + BatchFixedBaseExpVartime> Tables for B {}

/// Enough memory for a table of any window.
const PLENTY: usize = usize::MAX;

/// Computes `base ^ exponent mod modulus` for each exponent by tables for `bits` bits, with
/// numbers of `width` bits.
fn check(
    backend: &impl Tables,
    (base, modulus, width): (&BigUint, &BigUint, u32),
    (exponents, bits): (&[BigUint], u32),
    max_bytes: usize,
) {
    let params = boxed_params(modulus, width);
    let base_limbs = to_boxed(base, width);
    let table = backend
        .fixed_base(&base_limbs, params.as_ref(), bits, max_bytes)
        .unwrap();
    assert!(table.bytes() <= max_bytes && table.exponent_bits() == bits);
    let public_table = backend
        .fixed_base_vartime(&base_limbs, params.as_ref(), bits, max_bytes)
        .unwrap();
    assert!(public_table.bytes() <= max_bytes && public_table.exponent_bits() == bits);
    let numbers: Vec<_> = exponents
        .iter()
        .map(|x| to_boxed(x, bits.max(64)))
        .collect();
    for (used, are_public) in [bits, bits / 2]
        .into_iter()
        .flat_map(|used| [(used, false), (used, true)])
    {
        // The old content must not matter.
        let mut out = vec![BoxedUint::max(192); exponents.len()];
        match are_public {
            false => backend.batch_fixed_base_exp(&table, &numbers, used, &mut out),
            true => backend.batch_fixed_base_exp_vartime(&public_table, &numbers, used, &mut out),
        }
        .unwrap();
        for (exponent, out) in exponents.iter().zip(&out) {
            let low = exponent & &(power_of_two(used) - 1u8);
            let expected = base.modpow(&low, modulus);
            assert_eq!(to_big(out), expected, "{base:x}^{low:x} mod {modulus:x}");
            assert_eq!(out.bits_precision(), width);
        }
    }
}

fn odd(rng: &mut ChaCha20Rng, width: u32) -> BigUint {
    let mut modulus = rng.random_biguint(width.into());
    modulus.set_bit(0, true);
    modulus.set_bit(u64::from(width) - 1, true);
    modulus
}

fn bases_exponents_and_moduli(backend: &impl Tables) {
    let mut rng = rng();
    for width in [64, 192, 1024, 1088] {
        let bits = 70;
        let mut exponents = vec![0u8.into(), 1u8.into(), power_of_two(69), all_ones(70)];
        exponents.extend((0..6).map(|_| rng.random_biguint(70)));
        for modulus in moduli(&mut rng, width) {
            let random = rng.random_biguint(width.into());
            for base in [
                0u8.into(),
                1u8.into(),
                &modulus - 1u8,
                modulus.clone(),
                all_ones(width),
                random,
            ] {
                let numbers = (&base, &modulus, width);
                check(backend, numbers, (&exponents, bits), PLENTY);
            }
        }
    }
}

/// Lengths around multiples of every window, up to slightly more than the modulus has.
fn every_window_and_length(backend: &impl Tables) {
    let mut rng = rng();
    let (width, modulus) = (256, odd(&mut rng, 256));
    let base = rng.random_biguint(width.into());
    for bits in (0..=34).chain([64, 128, 255, 256, 257, 320]) {
        let mut exponents = vec![BigUint::ZERO, power_of_two(bits) - 1u8];
        exponents.extend((0..9).map(|_| rng.random_biguint(bits.into())));
        check(
            backend,
            (&base, &modulus, width),
            (&exponents, bits),
            PLENTY,
        );
    }
    let params = boxed_params(&modulus, width);
    let exponents: Vec<_> = (0..3).map(|_| rng.random_biguint(256)).collect();
    let mut windows = Vec::new();
    let mut public_windows = Vec::new();
    for kibibytes in [40, 64, 80, 128, 1024] {
        check(
            backend,
            (&base, &modulus, width),
            (&exponents, 256),
            kibibytes << 10,
        );
        let base = to_boxed(&base, width);
        let table = backend.fixed_base(&base, params.as_ref(), 256, kibibytes << 10);
        windows.push(table.unwrap().window_bits());
        let table = backend.fixed_base_vartime(&base, params.as_ref(), 256, kibibytes << 10);
        public_windows.push(table.unwrap().window_bits());
    }
    assert!(
        windows.is_sorted() && windows[0] < windows[4],
        "{windows:?}"
    );
    assert!(
        public_windows.is_sorted() && public_windows[4] == 8,
        "{public_windows:?}"
    );
}

/// Fewer powers than lanes, and more than are computed together.
fn batch_sizes(backend: &impl Tables) {
    let mut rng = rng();
    let (width, modulus) = (128, odd(&mut rng, 128));
    let base = rng.random_biguint(width.into());
    for count in (0..=17).chain([31, 32, 33, 127, 128, 129, 300, 513, 1025]) {
        let exponents: Vec<_> = (0..count).map(|_| rng.random_biguint(64)).collect();
        check(backend, (&base, &modulus, width), (&exponents, 64), PLENTY);
    }
}

fn fixed_width<const L: usize>(backend: &impl Tables) {
    let mut rng = rng();
    let width = L as u32 * 64;
    let modulus = odd(&mut rng, width);
    let base = rng.random_biguint(width.into());
    let params = FixedMontyParams::new(Odd::new(to_fixed::<L>(&modulus)).unwrap());
    let table = backend.fixed_base(&to_fixed(&base), &params, width, 4 << 20);
    let table = table.unwrap();
    let exponents: Vec<_> = (0..11).map(|_| rng.random_biguint(width.into())).collect();
    let numbers: Vec<Uint<L>> = exponents.iter().map(to_fixed).collect();
    let public_table = backend.fixed_base_vartime(&to_fixed(&base), &params, width, 4 << 20);
    let public_table = public_table.unwrap();
    let mut results = [[Uint::MAX; 11]; 2];
    let [out, public_out] = &mut results;
    backend
        .batch_fixed_base_exp(&table, &numbers, width, out)
        .unwrap();
    backend
        .batch_fixed_base_exp_vartime(&public_table, &numbers, width, public_out)
        .unwrap();
    for (out, exponent) in results.iter().flat_map(|out| out.iter().zip(&exponents)) {
        assert_eq!(to_big(out), base.modpow(exponent, &modulus));
    }
}

fn exponents_with_a_sign(backend: &impl Tables) {
    let mut rng = rng();
    for (width, bits) in [(64, 1), (128, 2), (256, 8), (256, 64), (512, 71)] {
        let modulus = odd(&mut rng, width);
        let (base, inverse) = loop {
            let base = rng.random_biguint(width.into());
            if let Some(inverse) = base.modinv(&modulus) {
                break (base, inverse);
            }
        };
        let [base_limbs, inverse_limbs] = [&base, &inverse].map(|x| to_boxed(x, width));
        let params = boxed_params(&modulus, width);
        let table = backend
            .signed_fixed_base(&base_limbs, &inverse_limbs, params.as_ref(), bits, PLENTY)
            .unwrap();
        assert!(table.is_signed());
        let public_table = backend
            .signed_fixed_base_vartime(&base_limbs, &inverse_limbs, params.as_ref(), bits, PLENTY)
            .unwrap();
        assert!(public_table.is_signed());
        let mut exponents = vec![BigUint::ZERO, power_of_two(bits) - 1u8];
        exponents.extend([power_of_two(bits - 1), power_of_two(bits - 1) - 1u8]);
        exponents.extend((0..9).map(|_| rng.random_biguint(bits.into())));
        let numbers: Vec<_> = exponents.iter().map(|x| to_boxed(x, 128)).collect();
        let mut results = [(); 2].map(|()| vec![BoxedUint::zero(); exponents.len()]);
        let [out, public_out] = &mut results;
        backend
            .batch_fixed_base_exp(&table, &numbers, bits, out)
            .unwrap();
        backend
            .batch_fixed_base_exp_vartime(&public_table, &numbers, bits, public_out)
            .unwrap();
        for (exponent, out) in results.iter().flat_map(|out| exponents.iter().zip(out)) {
            let expected = match exponent.bit(u64::from(bits) - 1) {
                false => base.modpow(exponent, &modulus),
                true => inverse.modpow(&(power_of_two(bits) - exponent), &modulus),
            };
            assert_eq!(to_big(out), expected, "{exponent:x} of {bits} bits");
        }
    }
}

fn bad_input_is_an_error_and_leaves_zeros(backend: &impl Tables) {
    let modulus = power_of_two(255) + 19u8;
    let params = boxed_params(&modulus, 256);
    let two = BoxedUint::from(2u8);
    let table = backend
        .fixed_base(&two, params.as_ref(), 100, PLENTY)
        .unwrap();
    let public_table = backend
        .fixed_base_vartime(&two, params.as_ref(), 100, PLENTY)
        .unwrap();
    let numbers = [BoxedUint::max(128), BoxedUint::max(64)];
    let mut out = [BoxedUint::max(256), BoxedUint::max(256)];
    let mut run = |are_public, bits| {
        out.fill(BoxedUint::max(256));
        let result = match are_public {
            false => backend.batch_fixed_base_exp(&table, &numbers, bits, &mut out),
            true => backend.batch_fixed_base_exp_vartime(&public_table, &numbers, bits, &mut out),
        };
        assert!(result.is_ok() || out.iter().all(|x| to_big(x) == BigUint::ZERO));
        result
    };
    for are_public in [false, true] {
        assert_eq!(run(are_public, 64), Ok(()));
        assert_eq!(
            run(are_public, 65),
            Err(Error::ExponentBits {
                index: 1,
                exponent_bits: 65,
                width: 64
            })
        );
        assert_eq!(
            run(are_public, 101),
            Err(Error::TableExponentBits {
                exponent_bits: 101,
                table_bits: 100
            })
        );
    }
    let wide = BoxedUint::max(320);
    let table = backend.fixed_base(&wide, params.as_ref(), 100, PLENTY);
    let public_table = backend.fixed_base_vartime(&wide, params.as_ref(), 100, PLENTY);
    let base_width = Error::BaseWidth {
        index: 0,
        bits: 320,
        modulus_bits: 256,
    };
    assert_eq!(table.err(), Some(base_width.clone()));
    assert_eq!(public_table.err(), Some(base_width));
    let table = backend.fixed_base(&two, params.as_ref(), 100, 1000);
    let public_table = backend.fixed_base_vartime(&two, params.as_ref(), 100, 1000);
    let is_small =
        |error| matches!(error, Error::TableBytes { bytes, max_bytes: 1000 } if bytes > 1000);
    assert!(table.err().is_some_and(is_small));
    assert!(public_table.err().is_some_and(is_small));
    let too_wide = boxed_params(&(power_of_two(16_447) + 1u8), 16_448);
    let table = backend.fixed_base(&two, too_wide.as_ref(), 100, PLENTY);
    let public_table = backend.fixed_base_vartime(&two, too_wide.as_ref(), 100, PLENTY);
    for error in [table.err(), public_table.err()] {
        assert!(matches!(
            error,
            Some(Error::ModulusWidth {
                index: 0,
                bits: 16_448,
                ..
            })
        ));
    }
    let table = backend.signed_fixed_base(&two, &two, params.as_ref(), 100, PLENTY);
    assert_eq!(table.err(), Some(Error::NotInverse));
    let table = backend.signed_fixed_base_vartime(&two, &two, params.as_ref(), 100, PLENTY);
    assert_eq!(table.err(), Some(Error::NotInverse));
    let half = to_boxed(&((modulus + 1u8) / 2u8), 256);
    let signed = backend
        .signed_fixed_base(&two, &half, params.as_ref(), 100, PLENTY)
        .unwrap();
    let public_signed = backend
        .signed_fixed_base_vartime(&two, &half, params.as_ref(), 100, PLENTY)
        .unwrap();
    let results = [
        backend.batch_fixed_base_exp(&signed, &numbers, 64, &mut out),
        backend.batch_fixed_base_exp_vartime(&public_signed, &numbers, 64, &mut out),
    ];
    let other_length = Error::TableExponentBits {
        exponent_bits: 64,
        table_bits: 100,
    };
    assert_eq!(results, [(); 2].map(|()| Err(other_length.clone())));
}

/// A table serves only the number representation of its backend.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn tables_of_other_backends_are_refused() {
    let fma = Fma::new().ok_or("the processor lacks the instructions");
    let Some(fma) = crate::need::available("fma", fma) else {
        return;
    };
    let params = boxed_params(&(power_of_two(255) + 19u8), 256);
    let table = fma
        .fixed_base(&BoxedUint::from(2u8), params.as_ref(), 64, PLENTY)
        .unwrap();
    let mut out = [BoxedUint::max(256)];
    let result = Serial.batch_fixed_base_exp(&table, &[BoxedUint::from(5u64)], 64, &mut out);
    assert_eq!(result, Err(Error::TableOfOtherBackend));
    assert_eq!(to_big(&out[0]), BigUint::ZERO);
    let table = fma
        .fixed_base_vartime(&BoxedUint::from(2u8), params.as_ref(), 64, PLENTY)
        .unwrap();
    let mut out = [BoxedUint::max(256)];
    let result =
        Serial.batch_fixed_base_exp_vartime(&table, &[BoxedUint::from(5u64)], 64, &mut out);
    assert_eq!(result, Err(Error::TableOfOtherBackend));
    assert_eq!(to_big(&out[0]), BigUint::ZERO);
}

/// Digits of 0 at the top, in the middle and at the bottom: in all lanes, and in some.
fn zeros_among_public_digits(backend: &impl Tables) {
    let mut rng = rng();
    let (width, modulus) = (256, odd(&mut rng, 256));
    let base = rng.random_biguint(width.into());
    let digit = |position: usize| BigUint::from(0xa5u8) << (8 * position);
    let sparse: Vec<_> = (0..8).map(digit).collect();
    check(backend, (&base, &modulus, width), (&sparse, 64), PLENTY);
    for number in [digit(0), digit(3), digit(7), digit(7) + digit(0)] {
        let same = vec![number; 19];
        check(backend, (&base, &modulus, width), (&same, 64), PLENTY);
    }
}
