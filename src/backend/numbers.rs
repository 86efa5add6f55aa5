//! Arithmetic on many numbers in flat buffers: products with public powers, comparisons of such powers, and remainders. It is
//! what RSA needs around its exponentiations with secret exponents, and runs on the calling thread with what the processor is
//! fastest at.
//!
//! A flat buffer holds numbers one after the other, each as many limbs long as the moduli, least significant
//! limb first. Number `i` belongs to modulus `i`. All numbers and moduli are secret; how many there are, how wide they
//! are and which moduli are the same reference is public, and so are the exponents.

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
// For vectors, which are chosen at run time.
#[cfg_attr(
    not(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code)
)]
pub(crate) const MASK_BITS: u32 = 12;

/// Products with public powers, and where they go: below the moduli, for bases and factors of any value.
pub(crate) struct Product<'a> {
    pub(crate) moduli: Moduli<'a>,
    /// The exponent of all bases.
    pub(crate) exponent: Exponent<'a>,
    pub(crate) bases: &'a [Limb],
    /// Factors of the powers, if there are any.
    pub(crate) factors: Option<&'a [Limb]>,
    /// `factors[i] * bases[i]^exponent mod moduli[i]`, without `factors` the power alone.
    pub(crate) out: &'a mut [Limb],
    /// If wanted, `out[i] * bases[i] mod moduli[i]`.
    pub(crate) times_base: Option<&'a mut [Limb]>,
}

/// Numbers to be reduced, and where the remainders go. The numbers, of any value, are equally long, at most twice as long as
/// the moduli; the remainders are as long as the moduli.
pub(crate) struct Reduction<'a> {
    pub(crate) moduli: Moduli<'a>,
    pub(crate) numbers: &'a [Limb],
    /// `numbers[i] mod moduli[i]`.
    pub(crate) out: &'a mut [Limb],
}

/// Powers that should be what is expected, modulo numbers with two factors. Flat numbers may be twice as long as the
/// factors here. All is secret but the exponent, and which factors are the same reference.
#[cfg_attr(
    not(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code)
)]
pub(crate) struct Powers<'a> {
    /// The first factors, and then the second ones: odd, and all of them equally wide.
    pub(crate) factors: [Moduli<'a>; 2],
    /// No factor has fewer bits; public.
    pub(crate) factor_bits: u32,
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

    /// Products with public powers: see [`Product`].
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide, or a buffer does not have a number for each modulus.
    pub(crate) fn mul_public_power(self, product: Product<'_>) {
        let len = product.moduli.len() * size_of_all(product.moduli);
        let lens = [
            product.bases.len(),
            product.out.len(),
            product.factors.map_or(len, <[Limb]>::len),
            product.times_base.as_ref().map_or(len, |out| out.len()),
        ];
        assert_eq!(lens, [len; 4], "a number for each modulus");
        let is_one = product.exponent.is_one();
        match self.for_products(product.moduli, is_one).0 {
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::Ifma(ifma) => ifma.mul_public_power(product),
            #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Engine::Fma(fma) => fma.mul_public_power(product),
            _ => scalar::mul_public_power(product),
        }
    }

    /// Remainders: see [`Reduction`].
    ///
    /// # Panics
    ///
    /// If the moduli are not equally wide or too short for the numbers, or if a buffer does not have a number for each of
    /// them.
    pub(crate) fn reduce(self, reduction: Reduction<'_>) {
        let (count, size) = (reduction.moduli.len(), size_of_all(reduction.moduli));
        assert_eq!(reduction.out.len(), count * size);
        assert!(reduction.numbers.len().is_multiple_of(count.max(1)));
        assert!(reduction.numbers.len() <= 2 * count * size);
        match self.for_products(reduction.moduli, true).0 {
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::Ifma(ifma) => ifma.reduce(reduction),
            #[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
            Engine::Fma(fma) => fma.reduce(reduction),
            _ => scalar::reduce(reduction),
        }
    }

    /// What is soonest for products modulo so many: see [`Engine::for_products`].
    #[cfg(feature = "std")]
    fn for_products(self, moduli: Moduli<'_>, once: bool) -> Self {
        Self(self.0.for_products(moduli, once))
    }

    #[cfg(not(feature = "std"))]
    fn for_products(self, _: Moduli<'_>, _: bool) -> Self {
        self
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
    /// The index of its lowest bit that counts; those below are taken for 0.
    lowest: u32,
}

impl<'a> Exponent<'a> {
    pub(crate) const ONE: Exponent<'static> = Exponent {
        limbs: &[Limb::ONE],
        top: 0,
        lowest: 0,
    };

    pub(crate) fn new(exponent: &'a BoxedUint) -> Self {
        let bits = exponent.bit_width_vartime();
        assert!(bits >= 1, "a public exponent is at least 1");
        Self {
            limbs: exponent.as_limbs(),
            top: bits - 1,
            lowest: 0,
        }
    }

    /// An odd number above 1, less 1.
    pub(crate) fn one_less(odd: &'a BoxedUint) -> Self {
        let exponent = Self::new(odd);
        assert!(exponent.top >= 1 && exponent.limbs[0].0 & 1 == 1);
        Self {
            lowest: 1,
            ..exponent
        }
    }

    pub(crate) fn is_one(self) -> bool {
        self.top == 0
    }

    /// Its bits below the highest one, from the top, each with whether it is the last.
    pub(crate) fn lower_bits(self) -> impl Iterator<Item = (bool, bool)> {
        (0..self.top).rev().map(move |bit| {
            let limb = self.limbs[(bit / Limb::BITS) as usize].0;
            let is_set = (limb >> (bit % Limb::BITS)) & 1 == 1;
            (is_set && bit >= self.lowest, bit == 0)
        })
    }
}
