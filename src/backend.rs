//! Backends: everything that implements [`BatchModExp`](crate::BatchModExp) and
//! [`BatchModMul`](crate::BatchModMul).
//!
//! | backend | runs on | notes |
//! |---|---|---|
//! | [`Serial`] | any target, `no_std` too | one instance after the other; the reference for all others |
//! | `Parallel` | feature `std` | spreads a batch over threads of another backend |
//! | `Cuda` | feature `cuda` | NVIDIA GPUs |
//! | `Ifma` | feature `std`, x86-64 with AVX-512 IFMA or AVX-IFMA | eight or four instances at a time in radix 2^52 |
//! | `Fma` | feature `std`, x86-64 with AVX2 and FMA, or 64-bit Arm | four instances at a time in radix 2^51, in doubles |
//! | `Cpu` | feature `std` | the best of the above that the processor has, on all its cores |
//! | `Auto` | feature `std` | picks one of the above and says why |

use crypto_bigint::Unsigned;

use crate::width::width;
use crate::{Error, ModExp, ModMul};

#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod adx;
#[cfg(feature = "std")]
pub(crate) mod auto;
#[cfg(feature = "std")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod fma;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod ifma;
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod lanes;
#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
pub(crate) mod memcheck;
#[cfg(feature = "std")]
pub(crate) mod parallel;
#[cfg(all(test, target_arch = "x86_64"))]
mod sanitizer;
mod serial;
#[cfg(all(test, feature = "sign"))]
mod tests;

#[cfg(feature = "std")]
pub use self::{
    auto::{Auto, Kind},
    cpu::Cpu,
    parallel::Parallel,
};
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use fma::Fma;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub use ifma::Ifma;
pub use serial::Serial;

/// Checks what every backend requires of a batch, against the widest modulus that it supports.
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub(crate) fn check_batch<U: Unsigned>(
    batch: &[ModExp<'_, U>],
    exponent_bits: u32,
    out: &[U],
    max_bits: u32,
) -> Result<(), Error> {
    check_lengths(batch, out);
    check_instances(batch, exponent_bits, max_bits)
}

/// The first of these checks.
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub(crate) fn check_lengths<I, U>(batch: &[I], out: &[U]) {
    assert_eq!(
        batch.len(),
        out.len(),
        "a batch and its output must have the same length"
    );
}

/// The same for a part of a batch.
pub(crate) fn check_instances<U: Unsigned>(
    instances: &[ModExp<'_, U>],
    exponent_bits: u32,
    max_bits: u32,
) -> Result<(), Error> {
    for (index, instance) in instances.iter().enumerate() {
        let modulus_bits = width(instance.params.modulus().as_ref());
        if modulus_bits > max_bits {
            return Err(Error::ModulusWidth {
                index,
                bits: modulus_bits,
                max_bits,
            });
        }
        let bits = width(instance.base);
        if bits > modulus_bits {
            return Err(Error::BaseWidth {
                index,
                bits,
                modulus_bits,
            });
        }
        let width = width(instance.exponent);
        if exponent_bits > width {
            return Err(Error::ExponentBits {
                index,
                exponent_bits,
                width,
            });
        }
    }
    Ok(())
}

/// What the factors and the results of products are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// [`batch_mod_mul`](crate::BatchModMul::batch_mod_mul).
    Ordinary,
    /// [`batch_monty_mul`](crate::BatchModMul::batch_monty_mul).
    Montgomery,
}

/// Checks what every backend requires of a batch of products, against the widest modulus that it supports.
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub(crate) fn check_products<U: Unsigned>(
    batch: &[ModMul<'_, U>],
    out: &[U],
    max_bits: u32,
) -> Result<(), Error> {
    check_lengths(batch, out);
    check_factors(batch, max_bits)
}

/// The same for a part of a batch.
pub(crate) fn check_factors<U: Unsigned>(
    instances: &[ModMul<'_, U>],
    max_bits: u32,
) -> Result<(), Error> {
    for (index, instance) in instances.iter().enumerate() {
        let modulus_bits = width(instance.params.modulus().as_ref());
        if modulus_bits > max_bits {
            return Err(Error::ModulusWidth {
                index,
                bits: modulus_bits,
                max_bits,
            });
        }
        let bits = width(instance.a).max(width(instance.b));
        if bits > modulus_bits {
            return Err(Error::FactorWidth {
                index,
                bits,
                modulus_bits,
            });
        }
    }
    Ok(())
}
