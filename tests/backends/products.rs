//! One test suite for every backend that multiplies, compared with num-bigint.

mod cases;
mod errors;
mod random;
mod reference;

use batch_modexp::backend::*;

/// The required traits of a backend: `BoxedUint`, and `Uint<L>` at every tested width.
trait Backend:
    reference::Boxed
    + reference::Fixed<1>
    + reference::Fixed<2>
    + reference::Fixed<3>
    + reference::Fixed<4>
    + reference::Fixed<6>
    + reference::Fixed<8>
    + reference::Fixed<11>
    + reference::Fixed<64>
{
}

impl<B> Backend for B where
    B: reference::Boxed
        + reference::Fixed<1>
        + reference::Fixed<2>
        + reference::Fixed<3>
        + reference::Fixed<4>
        + reference::Fixed<6>
        + reference::Fixed<8>
        + reference::Fixed<11>
        + reference::Fixed<64>
{
}

/// Instantiates the suite for a backend, as one test for each topic. After `if`, for a backend that
/// some machines lack, comes an `Option` of a reference to it.
macro_rules! suite {
    ($name:ident, $backend:expr) => {
        suite!($name if Some(&$backend));
    };
    ($name:ident if $backend:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn edge_cases() {
                if let Some(backend) = $backend {
                    cases::factors_and_moduli(backend);
                }
            }

            #[test]
            fn every_fixed_width() {
                if let Some(backend) = $backend {
                    cases::fixed_widths(backend);
                }
            }

            #[test]
            fn every_boxed_width() {
                if let Some(backend) = $backend {
                    cases::boxed_widths(backend);
                }
            }

            #[test]
            fn batch_sizes() {
                if let Some(backend) = $backend {
                    cases::batch_sizes(backend);
                }
            }

            #[test]
            fn shared_and_mixed_moduli() {
                if let Some(backend) = $backend {
                    cases::shared_and_mixed_moduli(backend);
                }
            }

            #[test]
            fn long_runs_of_one_modulus() {
                if let Some(backend) = $backend {
                    cases::long_runs_of_one_modulus(backend);
                }
            }

            #[test]
            fn montgomery_forms_of_crypto_bigint() {
                if let Some(backend) = $backend {
                    cases::montgomery_forms_of_crypto_bigint(backend);
                }
            }

            #[test]
            fn outputs_of_any_width_are_replaced() {
                if let Some(backend) = $backend {
                    cases::outputs_of_any_width_are_replaced(backend);
                }
            }

            #[test]
            fn random_batches() {
                if let Some(backend) = $backend {
                    random::batches(backend);
                }
            }

            #[test]
            fn bad_input_is_an_error_and_leaves_zeros() {
                if let Some(backend) = $backend {
                    errors::bad_input_is_an_error_and_leaves_zeros(backend);
                }
            }

            #[test]
            fn lengths_that_differ_panic() {
                if let Some(backend) = $backend {
                    errors::lengths_that_differ(backend);
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
suite!(cpu, Cpu::with_threads(1.try_into().unwrap()).unwrap());
suite!(
    cpu_threads,
    Cpu::with_threads(2.try_into().unwrap()).unwrap()
);
suite!(cpu_of_fma if fma_alone().as_ref());
#[cfg(feature = "cuda")]
suite!(cuda if crate::gpu());
suite!(auto, Auto::with_gpus().unwrap());

/// The choice between `Fma` and `Serial`, also on machines with `Ifma`.
fn fma_alone() -> Option<Auto> {
    let auto = Auto::with(Kind::Fma, Some(1.try_into().unwrap()));
    crate::need::available("fma", auto.map_err(|error| error.to_string()))
}
