//! Checks of the CPU backends under memcheck: see `tests/common/valgrind.rs`.
//!
//! Valgrind knows neither AVX-512 nor AVX-IFMA, so the IFMA kernels, in lanes and in pairs, run on
//! their portable units. Under valgrind, `new` returns none of these backends. The kernels of FMA and
//! the words run as they are.

mod powers;
mod products;

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;
use core::num::NonZeroUsize;
use std::println;

use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::window::{Window, recode_into};
use batch_modexp_core::{BatchModExp, BatchModExpEach as _, Error, ModExp, Serial};
use crypto_bigint::modular::{BoxedMontyParams, MontyParams};
use crypto_bigint::{BoxedUint, Odd, Uint};

use self::products::{each_product, each_product_boxed};
use crate::lanes::testing::Random;
use crate::simd::each_simd_backend;
use crate::valgrind::{run_under_valgrind, set_modulus_undefined, set_undefined};
use crate::{Cpu, Fma, ifma, need};

#[test]
fn no_branch_or_address_depends_on_a_secret() {
    let clean = [
        "serial",
        "serial_boxed",
        "simd_backends",
        "fma_words",
        "ifma_portable",
        "ifma_portable_saving_products",
        "ifma_portable_in_four_lanes",
        "products",
        "numbers",
        "fixed_bases",
        "fixed_bases_with_public_exponents",
        "products_of_powers",
        "public_exponents",
        "many_powers",
    ];
    // Controls: each of these leaks a digit, and must be found.
    let leaks = [
        "leak_by_branch",
        "leak_by_address",
        "leak_by_gathered_row",
        "leak_by_a_secret_that_is_used_as_public",
    ];
    run_under_valgrind("memcheck", &clean, &leaks);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn serial() {
    fixed::<8>(&Serial);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn serial_boxed() {
    boxed(&Serial, 512);
    boxed(&Serial, 17 * 64);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn simd_backends() {
    // Valgrind does not know IFMA.
    need::available("fma", Fma::new().ok_or("no AVX2 and FMA"));
    macro_rules! on_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = crate::$Backend::new() {
                fixed::<8>(&backend);
                fixed::<17>(&backend);
                boxed(&backend, 1024);
            }
        };
    }
    each_simd_backend!(on_backend);
}

/// Instances that are computed one by one.
#[test]
#[ignore = "run under valgrind by the test above"]
fn fma_words() {
    let fma = Fma::with_words_under_valgrind().ok_or("no AVX2 and FMA");
    let Some(fma) = need::available("fma", fma) else {
        return;
    };
    fixed::<8>(&fma);
    // The largest window.
    fixed_by::<16>(&fma, &[110, 601]);
    boxed(&fma, 1536);
    boxed(&fma, 2048);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn ifma_portable() {
    fixed::<8>(&ifma::testing::eight_on_portable_unit());
    fixed::<17>(&ifma::testing::eight_on_portable_unit());
    // The largest window.
    fixed_by::<8>(&ifma::testing::eight_on_portable_unit(), &[321]);
    fixed_by::<17>(&ifma::testing::eight_on_portable_unit(), &[321]);
    boxed(&ifma::testing::eight_on_portable_unit(), 1536);
    boxed(&ifma::testing::eight_on_portable_unit(), 2048);
}

/// With the code for a Zen 4: columns in registers, and entries of one, two and three tiles with
/// their halves.
#[test]
#[ignore = "run under valgrind by the test above"]
fn ifma_portable_saving_products() {
    let saving = ifma::testing::eight_saving_on_portable_unit();
    fixed::<8>(&saving);
    fixed::<16>(&saving);
    // The largest window.
    fixed_by::<16>(&saving, &[321]);
    boxed(&saving, 1536);
    boxed(&saving, 3072);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn ifma_portable_in_four_lanes() {
    let four = ifma::testing::four_on_portable_unit();
    fixed::<8>(&four);
    fixed::<17>(&four);
    // The largest window.
    fixed_by::<8>(&four, &[321]);
    fixed_by::<17>(&four, &[321]);
    boxed(&four, 1536);
    boxed(&four, 2048);
}

/// Products of numbers, on every unit, and with the choice between them.
#[test]
#[ignore = "run under valgrind by the test above"]
fn products() {
    need::available("fma", Fma::new().ok_or("no AVX2 and FMA"));
    each_product::<2>(&Serial);
    each_product::<9>(&Serial);
    each_product_boxed(&Serial, 4 * 64);
    each_product_boxed(&Serial, 17 * 64);
    for portable in [
        ifma::testing::eight_on_portable_unit(),
        ifma::testing::four_on_portable_unit(),
    ] {
        each_product::<4>(&portable);
        each_product::<17>(&portable);
        each_product_boxed(&portable, 2048);
    }
    macro_rules! on_backend {
        ($name:ident: $Backend:ident) => {
            if let Some(backend) = crate::$Backend::new() {
                each_product::<4>(&backend);
                each_product::<17>(&backend);
                each_product_boxed(&backend, 1024);
            }
        };
    }
    each_simd_backend!(on_backend);
    each_product::<32>(&Cpu::with_threads(NonZeroUsize::MIN).unwrap());
}

/// Products, powers and remainders, with everything marked but the exponent.
#[test]
#[ignore = "run under valgrind by the test above"]
fn numbers() {
    use super::tests::{Random, for_each_engine};
    use batch_modexp_core::PublicExponent;
    use batch_modexp_core::engine::Comparison;

    let mut random = Random(5);
    let exponent = BoxedUint::from(65_537u32);
    for limbs in [8, 16, 17] {
        let params = random.modulus(limbs, 3);
        let moduli = [ModulusRef::of(params.as_ref()); 19];
        let values = random.limbs(19 * limbs);
        set_modulus_undefined(ModulusRef::of(params.as_ref()), true);
        set_undefined(&values, true);
        for_each_engine(|_, engine| {
            let less_1 = PublicExponent::one_less(exponent.as_limbs());
            black_box(&*engine.public_powers(&moduli, &less_1, &values));
            black_box(&*engine.products(&moduli, &values, &values));
            // Twice as long as the moduli.
            let (numbers, count) = (&values[..18 * limbs], 9);
            black_box(&*engine.remainders(&moduli[..count], numbers));
            let masks: Vec<_> = values.iter().map(|limb| limb.0 as u16).collect();
            let primes = [moduli; 2].concat();
            for masks in [None, Some(&masks[..2 * 19])] {
                let powers = Comparison {
                    primes: &primes,
                    exponent: &PublicExponent::new_vartime(&exponent),
                    bases: &values,
                    expected: &values,
                    masks,
                };
                black_box(engine.run_powers_agree(&powers));
            }
        });
        set_modulus_undefined(ModulusRef::of(params.as_ref()), false);
        set_undefined(&values, false);
    }
}

/// Runs the code on a backend that works under valgrind.
macro_rules! on_backend {
    ($name:ident: $Backend:ident $run:expr) => {
        if let Some(backend) = crate::$Backend::new() {
            $run(&backend, 256);
            $run(&backend, 1088);
        }
    };
}

/// Runs the same code on every unit.
macro_rules! on_every_unit {
    ($run:expr) => {
        $run(&Serial, 256);
        $run(&Serial, 17 * 64);
        for portable in [
            ifma::testing::eight_on_portable_unit(),
            ifma::testing::four_on_portable_unit(),
        ] {
            $run(&portable, 256);
            $run(&portable, 1088);
        }
        each_simd_backend!(on_backend $run);
        $run(&Cpu::with_threads(NonZeroUsize::MIN).unwrap(), 512);
    };
}

/// Tables of fixed bases, and powers by them.
#[test]
#[ignore = "run under valgrind by the test above"]
fn fixed_bases() {
    on_every_unit!(powers::fixed_base);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn fixed_bases_with_public_exponents() {
    on_every_unit!(powers::fixed_base_vartime);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn products_of_powers() {
    on_every_unit!(powers::multi_exp);
    // With look-ups beside multiplications, of one tile and of two.
    for bits in [1024, 1536] {
        powers::multi_exp(&ifma::testing::eight_on_portable_unit(), bits);
    }
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn public_exponents() {
    on_every_unit!(powers::public_exponent);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn many_powers() {
    on_every_unit!(powers::many_powers);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_gathered_row() {
    powers::fixed_base(&powers::LeaksByAddress, 256);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_a_secret_that_is_used_as_public() {
    powers::fixed_base_vartime_of_secrets(&Serial);
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_branch() {
    let digits = secret_digits();
    if black_box(digits[0]) == 3 {
        println!("the digit 3");
    }
}

#[test]
#[ignore = "run under valgrind by the test above"]
fn leak_by_address() {
    let digits = secret_digits();
    let table: Vec<u64> = (0..64).collect();
    black_box(table[usize::from(digits[0] & 31)]);
}

/// Digits of a secret exponent.
fn secret_digits() -> Vec<u8> {
    let exponent = Uint::<8>::from_u64(0x0123_4567_89ab_cdef);
    set_undefined(exponent.as_limbs(), true);
    let window = Window::new(4).unwrap();
    let mut digits = vec![0; window.digit_count(64)];
    recode_into(exponent.as_limbs(), 64, window, &mut digits);
    digits
}

/// Exponentiations of `Uint`s with everything secret, for more instances than lanes, with exponents
/// of several lengths.
fn fixed<const LIMBS: usize>(backend: &impl BatchModExp<Uint<LIMBS>, Error = Error>) {
    fixed_by(backend, &[0, 17, 110]);
}

/// Like [`fixed`], with exponents of these lengths, in bits.
fn fixed_by<const LIMBS: usize>(
    backend: &impl BatchModExp<Uint<LIMBS>, Error = Error>,
    lengths: &[u32],
) {
    let mut random = Random(1);
    let mut number = || {
        let mut number = Uint::<LIMBS>::ZERO;
        number.as_mut_limbs().fill_with(|| random.next().into());
        number
    };
    let values: Vec<_> = (0..9)
        .map(|_| {
            let modulus = Odd::new(number() | Uint::ONE).unwrap();
            (number(), number(), MontyParams::new(modulus))
        })
        .collect();
    set_undefined(&values, true);
    let batch: Vec<_> = values
        .iter()
        .map(|(base, exponent, params)| ModExp {
            base,
            exponent,
            params,
        })
        .collect();
    for exponent_bits in lengths {
        let mut out = vec![Uint::ZERO; batch.len()];
        backend
            .batch_mod_exp(&batch, *exponent_bits, &mut out)
            .unwrap();
        black_box(&out);
        // Small batches use other code.
        for count in [1, 2, 4] {
            backend
                .batch_mod_exp(&batch[..count], *exponent_bits, &mut out[..count])
                .unwrap();
            black_box(&out);
        }
    }
    set_undefined(&values, false);
}

/// Like [`fixed`], with `BoxedUint`s.
fn boxed(backend: &impl BatchModExp<BoxedUint, Error = Error>, bits: u32) {
    let mut random = Random(2);
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
        for (base, exponent, params) in &values {
            set_undefined(base.as_limbs(), undefined);
            set_undefined(exponent.as_limbs(), undefined);
            set_modulus_undefined(ModulusRef::of(params.as_ref()), undefined);
        }
    };
    mark(true);
    let batch: Vec<_> = values
        .iter()
        .map(|(base, exponent, params)| ModExp {
            base,
            exponent,
            params: params.as_ref(),
        })
        .collect();
    let mut out = vec![BoxedUint::zero(); batch.len()];
    backend.batch_mod_exp(&batch, 70, &mut out).unwrap();
    black_box(&out);
    // Lengths are public, also if each instance has its own.
    let lengths = [70, 3, 17, 3, 0, 17, 70, 3, 3];
    backend
        .batch_mod_exp_each(&batch, &lengths, &mut out)
        .unwrap();
    black_box(&out);
    mark(false);
}
