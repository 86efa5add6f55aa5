//! One test suite for every backend, compared with num-bigint.

/// Makes a suite of tests for each backend with SIMD lanes.
macro_rules! simd_suites {
    ($suite:ident) => {
        crate::simd::each_simd_backend!(simd_suite $suite);
    };
}

#[allow(unused_macros)] // On targets without lanes.
macro_rules! simd_suite {
    ($name:ident: $Backend:ident $suite:ident) => {
        $suite!($name if crate::need::available(
            stringify!($name),
            batch_modexp::backend::$Backend::new().ok_or("the processor lacks the instructions"),
        ).as_ref());
    };
}

mod edge_cases;
mod errors;
mod exponents;
mod fixed_base;
mod many_terms;
mod multi_exp;
#[path = "../common/need.rs"]
mod need;
mod products;
mod random;
mod reference;
#[path = "../common/simd.rs"]
mod simd;

use batch_modexp::backend::*;

/// The required traits of a backend: `BoxedUint`, and `Uint<L>` at every tested width.
trait Backend:
    reference::Boxed
    + reference::Fixed<1>
    + reference::Fixed<2>
    + reference::Fixed<8>
    + reference::Fixed<12>
    + reference::Fixed<16>
    + reference::Fixed<24>
    + reference::Fixed<32>
    + reference::Fixed<48>
    + reference::Fixed<64>
{
}

impl<B> Backend for B where
    B: reference::Boxed
        + reference::Fixed<1>
        + reference::Fixed<2>
        + reference::Fixed<8>
        + reference::Fixed<12>
        + reference::Fixed<16>
        + reference::Fixed<24>
        + reference::Fixed<32>
        + reference::Fixed<48>
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
                    edge_cases::bases_exponents_and_moduli(backend);
                }
            }

            #[test]
            fn every_fixed_width() {
                if let Some(backend) = $backend {
                    edge_cases::fixed_widths(backend);
                }
            }

            #[test]
            fn every_boxed_width() {
                if let Some(backend) = $backend {
                    edge_cases::boxed_widths(backend);
                }
            }

            #[test]
            fn every_exponent_length() {
                if let Some(backend) = $backend {
                    edge_cases::exponent_lengths(backend);
                }
            }

            #[test]
            fn mixed_exponent_lengths() {
                if let Some(backend) = $backend {
                    exponents::mixed_lengths(backend);
                }
            }

            #[test]
            fn exponents_wider_than_moduli() {
                if let Some(backend) = $backend {
                    exponents::wider_than_moduli(backend);
                }
            }

            #[test]
            fn batch_sizes() {
                if let Some(backend) = $backend {
                    edge_cases::batch_sizes(backend);
                }
            }

            #[test]
            fn shared_and_mixed_moduli() {
                if let Some(backend) = $backend {
                    edge_cases::shared_and_mixed_moduli(backend);
                }
            }

            #[test]
            fn outputs_of_any_width_are_replaced() {
                if let Some(backend) = $backend {
                    edge_cases::outputs_of_any_width_are_replaced(backend);
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
                    errors::fixed_width_above_the_limit(backend);
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
#[cfg(feature = "cuda")]
suite!(cuda if gpu());
suite!(auto, Auto::with_gpus().unwrap());

/// The GPUs of this machine, for all tests.
#[cfg(feature = "cuda")]
fn gpu() -> Option<&'static Cuda> {
    use std::sync::LazyLock;

    static CUDA: LazyLock<Result<Cuda, String>> = LazyLock::new(|| match Cuda::probe() {
        Ok(_) => Ok(Cuda::new().unwrap()),
        Err(reason) => Err(reason.to_string()),
    });
    need::available("cuda", CUDA.as_ref())
}
