//! Invalid input to backends.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use batch_modexp::{Error, ModMul};
use crypto_bigint::BoxedUint;

use super::reference::Boxed;
use crate::reference::boxed_params;

/// The error names the instance, and no result is left in the output.
pub fn bad_input_is_an_error_and_leaves_zeros<B: Boxed>(backend: &B) {
    let params = boxed_params(&15u8.into(), 128);
    let huge = boxed_params(&15u8.into(), 1 << 16);
    let [fits, wide] = [128, 192].map(BoxedUint::one_with_precision);
    let good = ModMul::new(&fits, &fits, params.as_ref());
    let factor = Error::FactorWidth {
        index: 700,
        bits: 192,
        modulus_bits: 128,
    };
    // Enough instances for the batch to be split.
    let mut batch = vec![good; 1 << 16];
    for (bad, expected) in [
        (ModMul { a: &wide, ..good }, Some(&factor)),
        (ModMul { b: &wide, ..good }, Some(&factor)),
        (
            ModMul {
                params: huge.as_ref(),
                ..good
            },
            None,
        ),
    ] {
        batch[700] = bad;
        for len in [701, 1 << 16] {
            for in_montgomery_form in [false, true] {
                let mut out = vec![BoxedUint::max(128); len];
                let result = match in_montgomery_form {
                    false => backend.batch_mod_mul(&batch[..len], &mut out),
                    true => backend.batch_monty_mul(&batch[..len], &mut out),
                };
                let error = result.unwrap_err();
                match expected {
                    Some(expected) => assert_eq!(error, *expected),
                    None => assert!(
                        matches!(
                            error,
                            Error::ModulusWidth {
                                index: 700,
                                bits: 65536,
                                ..
                            }
                        ),
                        "{error}"
                    ),
                }
                assert!(
                    out.iter().all(|value| value.is_zero().to_bool()),
                    "something was left in the output"
                );
            }
        }
    }
}

/// The panic names the fault.
pub fn lengths_that_differ<B: Boxed>(backend: &B) {
    let params = boxed_params(&15u8.into(), 64);
    let one = BoxedUint::one_with_precision(64);
    let batch = [ModMul::new(&one, &one, params.as_ref())];
    for in_montgomery_form in [false, true] {
        let call = || match in_montgomery_form {
            false => backend.batch_mod_mul(&batch, &mut []),
            true => backend.batch_monty_mul(&batch, &mut []),
        };
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("the lengths differ");
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        assert!(message.is_some_and(|message| message.contains("the same length")));
    }
}
