//! Invalid input to backends.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use batch_modexp::{BatchModExp, BatchModExpEach as _, BatchModMul, Error, ModExp, ModMul};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Odd, Uint};

use super::reference::{Boxed, boxed_params};

/// The error names the instance, and no result is left in the output.
pub fn bad_input_is_an_error_and_leaves_zeros<B: Boxed>(backend: &B) {
    let params = boxed_params(&15u8.into(), 128);
    let (narrow, fits, wide) = (
        BoxedUint::from(7u64),
        BoxedUint::one_with_precision(128),
        BoxedUint::one_with_precision(192),
    );
    let good = ModExp {
        base: &fits,
        exponent: &fits,
        params: params.as_ref(),
    };
    let cases = [
        (
            ModExp {
                exponent: &narrow,
                ..good
            },
            Error::ExponentBits {
                index: 5,
                exponent_bits: 128,
                width: 64,
            },
        ),
        (
            ModExp {
                base: &wide,
                ..good
            },
            Error::BaseWidth {
                index: 5,
                bits: 192,
                modulus_bits: 128,
            },
        ),
    ];
    for (bad, expected) in cases {
        let batch = [good, good, good, good, good, bad];
        let mut out = vec![BoxedUint::max(128); batch.len()];
        assert_eq!(
            backend.batch_mod_exp(&batch, 128, &mut out),
            Err(expected.clone())
        );
        assert!(
            out.iter().all(|value| value.is_zero().to_bool()),
            "something was left in the output"
        );
        // Sorted, the bad instance comes first, except for its length.
        let mut out = vec![BoxedUint::max(128); batch.len()];
        assert_eq!(
            backend.batch_mod_exp_each(&batch, &[1, 2, 128, 3, 2, 128], &mut out),
            Err(expected)
        );
        assert!(
            out.iter().all(|value| value.is_zero().to_bool()),
            "something was left in the output"
        );
    }

    let huge = boxed_params(&15u8.into(), 1 << 16);
    let batch = [
        good,
        ModExp {
            params: huge.as_ref(),
            ..good
        },
    ];
    let mut out = vec![BoxedUint::max(128); batch.len()];
    let error = backend.batch_mod_exp(&batch, 128, &mut out).unwrap_err();
    assert!(
        matches!(
            error,
            Error::ModulusWidth {
                index: 1,
                bits: 65536,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        out.iter().all(|value| value.is_zero().to_bool()),
        "something was left in the output"
    );
}

/// A `Uint` has the same limit as a `BoxedUint`.
pub fn fixed_width_above_the_limit<B>(backend: &B)
where
    B: BatchModExp<Uint<257>, Error = Error> + BatchModMul<Uint<257>, Error = Error>,
{
    let one = Uint::<257>::ONE;
    let params = MontyParams::new(Odd::new(Uint::from(15u8)).unwrap());
    let too_wide = Err(Error::ModulusWidth {
        index: 0,
        bits: Uint::<257>::BITS,
        max_bits: 16_384,
    });
    let mut out = [Uint::MAX];
    let batch = [ModExp::new(&one, &one, &params)];
    assert_eq!(backend.batch_mod_exp(&batch, 1, &mut out), too_wide);
    assert_eq!(out, [Uint::ZERO]);
    let mut out = [Uint::MAX];
    let batch = [ModMul::new(&one, &one, &params)];
    assert_eq!(backend.batch_mod_mul(&batch, &mut out), too_wide);
    assert_eq!(out, [Uint::ZERO]);
}

/// The panic names the fault.
pub fn lengths_that_differ<B: Boxed>(backend: &B) {
    let params = boxed_params(&15u8.into(), 64);
    let one = BoxedUint::one_with_precision(64);
    let batch = [ModExp {
        base: &one,
        exponent: &one,
        params: params.as_ref(),
    }];
    let call = || backend.batch_mod_exp(&batch, 64, &mut []);
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("the lengths differ");
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    assert!(message.is_some_and(|message| message.contains("the same length")));
}
