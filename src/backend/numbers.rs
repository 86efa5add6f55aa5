//! Arithmetic on many numbers in flat buffers: products with public powers, and inverses. It is what RSA needs
//! around its exponentiations with secret exponents, and runs on the calling thread with what the processor is
//! fastest at.
//!
//! A flat buffer holds numbers one after the other, each as many limbs long as the moduli, least significant
//! limb first. Number `i` belongs to modulus `i`. All numbers are secret, and the moduli too but for inverses, whose
//! moduli are public; how many there are, how wide they are and which moduli are the same reference is public, and so
//! are the exponents.

pub(super) mod scalar;
#[cfg(test)]
pub(super) mod tests;

use alloc::vec::Vec;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{BoxedUint, Choice, Limb};

#[cfg(feature = "std")]
use super::cpu::Engine;

/// The moduli of flat numbers: all equally wide, at most [`MAX_BITS`](crate::width::MAX_BITS) bits.
pub(crate) type Moduli<'a> = &'a [&'a MontyParams<BoxedUint>];

/// The bits of a mask: see [`Powers`].
#[cfg_attr(not(feature = "std"), allow(dead_code))] // Vectors are chosen at run time.
pub(crate) const MASK_BITS: u32 = 12;

/// Powers that should be what is expected, modulo numbers with two factors. Flat numbers may be twice as long as the
/// factors here. All is secret but the exponent, and which factors are the same reference.
#[cfg_attr(not(feature = "std"), allow(dead_code))]
pub(crate) struct Powers<'a> {
    /// The first factors, and then the second ones: odd, and all of them equally wide.
    pub(crate) factors: [Moduli<'a>; 2],
    pub(crate) exponent: Exponent<'a>,
    pub(crate) bases: &'a [Limb],
    pub(crate) expected: &'a [Limb],
    /// Random numbers, one for each factor: the lane's computation is modulo an odd multiple of the factor that follows
    /// from the low [`MASK_BITS`] bits. So what is known to others, the base and its power, is not reduced by the same
    /// secret number again and again.
    pub(crate) masks: Option<&'a [u16]>,
}

/// What the calling thread computes with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers(
    #[cfg(feature = "std")] Engine,
    #[cfg(not(feature = "std"))] (),
);

impl Numbers {
    /// The best that this processor offers.
    #[cfg(feature = "std")]
    pub(crate) fn fastest() -> Self {
        Self(Engine::fastest())
    }

    /// The best that this processor offers.
    #[cfg(not(feature = "std"))]
    pub(crate) fn fastest() -> Self {
        Self(())
    }

    /// `out[i] = factors[i] * bases[i]^exponent mod moduli[i]`, without `factors` the power alone: below the
    /// modulus, for bases and factors of any value.
    ///
    /// `exponent` is public, and at least 1.
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide, or a buffer does not have a number for each modulus.
    pub(crate) fn mul_public_power(
        self,
        moduli: Moduli<'_>,
        exponent: &BoxedUint,
        bases: &[Limb],
        factors: Option<&[Limb]>,
        out: &mut [Limb],
    ) {
        let len = moduli.len() * size_of_all(moduli);
        let lens = [bases.len(), out.len(), factors.map_or(len, <[Limb]>::len)];
        assert_eq!(lens, [len; 3], "a number for each modulus");
        let exponent = Exponent::new(exponent);
        match self.0 {
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::Ifma(ifma) => ifma.mul_public_power(moduli, exponent, bases, factors, out),
            #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Engine::Fma(fma) => fma.mul_public_power(moduli, exponent, bases, factors, out),
            _ => scalar::mul_public_power(moduli, exponent, bases, factors, out),
        }
    }

    /// For each lane whether `bases[i]^exponent` is `expected[i]` modulo both factors. `None` where there are no SIMD
    /// lanes that serve the width.
    ///
    /// # Panics
    ///
    /// If the factors are not equally wide or too short for the numbers, or if a buffer does not have a number, or a
    /// mask, for each of them.
    pub(crate) fn powers_agree(self, powers: &Powers<'_>) -> Option<Vec<Choice>> {
        let [first, second] = powers.factors;
        let (count, size) = (first.len(), size_of_all(first));
        assert_eq!([size_of_all(second), second.len()], [size, count]);
        assert_eq!(powers.bases.len(), powers.expected.len());
        assert!(powers.bases.len().is_multiple_of(count.max(1)));
        assert_eq!(powers.masks.map_or(2 * count, <[u16]>::len), 2 * count);
        match self.0 {
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::Ifma(ifma) => Some(ifma.powers_agree(powers)),
            #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Engine::Fma(fma) => Some(fma.powers_agree(powers)),
            _ => None,
        }
    }

    /// `out[i] = values[i]^-1 mod moduli[i]`. `None` if one of the values has no inverse, which is no secret; nor are the
    /// moduli.
    ///
    /// Neighbours with one modulus have one inversion between them (Montgomery, "Speeding the Pollard and
    /// elliptic curve methods of factorization", 1987, section 10.3.1), and three products each.
    ///
    /// # Panics
    ///
    /// Those of [`mul_public_power`](Self::mul_public_power).
    pub(crate) fn invert(
        self,
        moduli: Moduli<'_>,
        values: &[Limb],
        out: &mut [Limb],
    ) -> Option<()> {
        let size = size_of_all(moduli);
        let len = moduli.len() * size;
        assert_eq!(
            [values.len(), out.len()],
            [len; 2],
            "a number for each modulus"
        );
        let mut start = 0;
        for run in moduli.chunk_by(|a, b| core::ptr::eq(*a, *b)) {
            let range = start * size..(start + run.len()) * size;
            self.invert_run(run[0], &values[range.clone()], &mut out[range])?;
            start += run.len();
        }
        Some(())
    }

    /// The inverses of numbers with one modulus.
    fn invert_run(
        self,
        modulus: &MontyParams<BoxedUint>,
        values: &[Limb],
        out: &mut [Limb],
    ) -> Option<()> {
        match self.0 {
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::Ifma(ifma) => ifma.invert(modulus, values, out),
            #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Engine::Fma(fma) => fma.invert(modulus, values, out),
            _ => scalar::invert(modulus, values, out),
        }
    }
}

/// The limbs of each number.
fn size_of_all(moduli: Moduli<'_>) -> usize {
    let size = |modulus: &MontyParams<BoxedUint>| modulus.modulus().as_ref().as_limbs().len();
    let first = moduli.first().map_or(0, |modulus| size(modulus));
    assert!(
        moduli.iter().all(|modulus| size(modulus) == first),
        "moduli of one batch are equally wide"
    );
    first
}

/// A public exponent of at least 1.
#[derive(Clone, Copy)]
pub(crate) struct Exponent<'a> {
    limbs: &'a [Limb],
    /// The index of its highest bit.
    top: u32,
}

impl<'a> Exponent<'a> {
    pub(crate) fn new(exponent: &'a BoxedUint) -> Self {
        let bits = exponent.bits_vartime();
        assert!(bits >= 1, "a public exponent is at least 1");
        Self {
            limbs: exponent.as_limbs(),
            top: bits - 1,
        }
    }

    /// Its bits below the highest one, from the top, each with whether it is the last.
    pub(crate) fn lower_bits(self) -> impl Iterator<Item = (bool, bool)> {
        (0..self.top).rev().map(move |bit| {
            let limb = self.limbs[(bit / Limb::BITS) as usize].0;
            ((limb >> (bit % Limb::BITS)) & 1 == 1, bit == 0)
        })
    }
}
