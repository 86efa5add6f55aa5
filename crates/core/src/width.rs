//! Widths of numbers, and dispatch from a width known at run time to a `Uint<LIMBS>` known at
//! compile time.
//!
//! crypto-bigint's arithmetic on `BoxedUint` allocates its temporaries and frees them unwiped. The
//! same arithmetic on `Uint<LIMBS>` uses only the stack. Computations on a `BoxedUint` with
//! crypto-bigint's functions therefore use [`with_limbs`]. An unlisted width is rounded up to the
//! next listed one, by at most a half.
//!
//! All of that code is compiled again for each listed width. There are therefore only two widths for
//! each doubling. With 64-bit limbs they fit keys of 1024, 1536, 2048, 3072, 4096, 6144 and 8192
//! bits, and their primes.

use core::slice;

use crypto_bigint::{Limb, Uint, Unsigned};
use zeroize::Zeroize;

use crate::Error;
use crate::secret::scrubbed_for;

/// The widest supported modulus, in bits.
pub const MAX_BITS: u32 = 16_384;

/// A computation that is generic over the number of limbs.
pub trait WithLimbs {
    /// The result type.
    type Output;

    /// Runs the computation with `LIMBS` limbs.
    fn run<const LIMBS: usize>(self) -> Self::Output;
}

/// Runs `computation` with the smallest listed number of limbs that is at least `limbs`, then
/// overwrites the stack that it used.
///
/// # Panics
///
/// If `limbs` are more than [`MAX_BITS`]; callers check first.
pub fn with_limbs<C: WithLimbs>(limbs: usize, computation: C) -> C::Output {
    match limbs {
        0..=1 => scrubbed_for::<1, _>(|| computation.run::<1>()),
        2 => scrubbed_for::<2, _>(|| computation.run::<2>()),
        3 => scrubbed_for::<3, _>(|| computation.run::<3>()),
        4 => scrubbed_for::<4, _>(|| computation.run::<4>()),
        5..=6 => scrubbed_for::<6, _>(|| computation.run::<6>()),
        7..=8 => scrubbed_for::<8, _>(|| computation.run::<8>()),
        9..=12 => scrubbed_for::<12, _>(|| computation.run::<12>()),
        13..=16 => scrubbed_for::<16, _>(|| computation.run::<16>()),
        17..=24 => scrubbed_for::<24, _>(|| computation.run::<24>()),
        25..=32 => scrubbed_for::<32, _>(|| computation.run::<32>()),
        33..=48 => scrubbed_for::<48, _>(|| computation.run::<48>()),
        49..=64 => scrubbed_for::<64, _>(|| computation.run::<64>()),
        65..=96 => scrubbed_for::<96, _>(|| computation.run::<96>()),
        97..=128 => scrubbed_for::<128, _>(|| computation.run::<128>()),
        129..=192 => scrubbed_for::<192, _>(|| computation.run::<192>()),
        193..=256 => scrubbed_for::<256, _>(|| computation.run::<256>()),
        #[cfg(target_pointer_width = "32")]
        257..=384 => scrubbed_for::<384, _>(|| computation.run::<384>()),
        #[cfg(target_pointer_width = "32")]
        385..=512 => scrubbed_for::<512, _>(|| computation.run::<512>()),
        _ => panic!("{limbs} limbs are more than the supported {MAX_BITS} bits"),
    }
}

/// Copies a number into `LIMBS` limbs, zero-extended.
///
/// # Panics
///
/// If it has more than `LIMBS` limbs.
#[must_use]
pub fn load_limbs<const LIMBS: usize>(limbs: &[Limb]) -> Uint<LIMBS> {
    let mut fixed = Uint::ZERO;
    fixed.as_mut_limbs()[..limbs.len()].copy_from_slice(limbs);
    fixed
}

/// The limbs of a result, which gets the width of `like`. Wipes a value that it replaces.
pub fn place<'o, U: Unsigned>(out: &'o mut U, like: &U) -> &'o mut [Limb] {
    if width(out) != width(like) {
        clear(slice::from_mut(out));
        *out = U::zero_like(like);
    }
    out.as_mut_limbs()
}

/// Sets every result to zero, keeping its width.
pub fn clear<U: Unsigned>(out: &mut [U]) {
    for value in out {
        value.as_mut_limbs().zeroize();
    }
}

/// The width of `value` in bits: its precision, not the bit length of its value.
pub fn width<U: Unsigned>(value: &U) -> u32 {
    value.as_limbs().len() as u32 * Limb::BITS
}

/// Checks that `out` has one place for each instance.
///
/// # Panics
///
/// If `batch` and `out` differ in length.
pub fn check_lengths<I, U>(batch: &[I], out: &[U]) {
    assert_eq!(
        batch.len(),
        out.len(),
        "a batch and its output must have the same length"
    );
}

/// Checks the widths of the modulus and the base of instance `index`, in bits.
///
/// # Errors
///
/// [`Error::ModulusWidth`] and [`Error::BaseWidth`].
pub(crate) fn check_widths(
    index: usize,
    modulus_bits: u32,
    bits: u32,
    max_bits: u32,
) -> Result<(), Error> {
    if modulus_bits > max_bits {
        return Err(Error::ModulusWidth {
            index,
            bits: modulus_bits,
            max_bits,
        });
    }
    if bits > modulus_bits {
        return Err(Error::BaseWidth {
            index,
            bits,
            modulus_bits,
        });
    }
    Ok(())
}

/// Checks that the exponent of instance `index`, of `width` bits, has `exponent_bits` bits.
///
/// # Errors
///
/// [`Error::ExponentBits`].
pub(crate) fn check_exponent(index: usize, width: u32, exponent_bits: u32) -> Result<(), Error> {
    if exponent_bits > width {
        return Err(Error::ExponentBits {
            index,
            exponent_bits,
            width,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct LimbCount;

    impl WithLimbs for LimbCount {
        type Output = usize;

        fn run<const LIMBS: usize>(self) -> usize {
            LIMBS
        }
    }

    #[test]
    fn every_width_is_rounded_up_by_at_most_a_half() {
        for limbs in 1..=(MAX_BITS / Limb::BITS) as usize {
            let served = with_limbs(limbs, LimbCount);
            assert!(
                limbs <= served && served * 2 <= limbs * 3,
                "{limbs} -> {served}"
            );
        }
    }
}
