//! Backends: everything that implements [`BatchModExp`](crate::BatchModExp).
//!
//! | backend | runs on | notes |
//! |---|---|---|
//! | [`Serial`] | any target, `no_std` too | one instance after the other through crypto-bigint; the reference for all others |
//! | `Parallel` | feature `std` | spreads a batch over threads of another backend |
//! | `Auto` | feature `std` | picks one of the above and says why |

use crypto_bigint::{Limb, Unsigned};
use zeroize::Zeroize;

use crate::{Error, ModExp};

#[cfg(feature = "std")]
mod auto;
#[cfg(feature = "std")]
mod parallel;
mod serial;

#[cfg(feature = "std")]
pub use self::{
    auto::{Auto, Kind},
    parallel::Parallel,
};
#[cfg(all(feature = "std", feature = "rsa"))]
pub(crate) use auto::Chosen;
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
    assert_eq!(
        batch.len(),
        out.len(),
        "a batch and its output must have the same length"
    );
    for (index, instance) in batch.iter().enumerate() {
        let modulus_bits = width(instance.params.modulus().as_ref());
        if modulus_bits > max_bits {
            return Err(Error::ModulusWidth {
                index,
                bits: modulus_bits,
                max_bits,
            });
        }
        for (operand, value) in [("base", instance.base), ("exponent", instance.exponent)] {
            let bits = width(value);
            if bits > modulus_bits {
                return Err(Error::OperandWidth {
                    index,
                    operand,
                    bits,
                    modulus_bits,
                });
            }
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

/// Sets every result to zero, keeping its width.
pub(crate) fn clear<U: Unsigned>(out: &mut [U]) {
    for value in out {
        value.as_mut_limbs().zeroize();
    }
}

/// The width of `value` in bits: its precision, not the length of what it holds.
fn width<U: Unsigned>(value: &U) -> u32 {
    value.as_limbs().len() as u32 * Limb::BITS
}
