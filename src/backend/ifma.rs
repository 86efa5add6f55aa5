//! AVX-512 IFMA: eight instances at a time in radix 2^52.

mod blocks;
mod kernel;
mod lanes8;
mod look_up;
mod madd52;
#[cfg(test)]
mod portable;
mod size;
#[cfg(test)]
mod tests;
mod token;

#[cfg(feature = "sign")]
use alloc::vec::Vec;

use crypto_bigint::Unsigned;
#[cfg(feature = "sign")]
use crypto_bigint::{BoxedUint, Choice, Limb, modular::MontyParams};

use self::lanes8::Lanes8;
use self::token::Token;
use super::lanes;
#[cfg(feature = "sign")]
use super::{
    lanes::{powers_agree::powers_agree, products},
    numbers::{Exponent, Moduli, Powers},
};
use crate::{BatchModExp, Error, ModExp};

/// Runs a batch on the calling thread with AVX-512 IFMA, eight instances at a time (x86-64: Intel since
/// Ice Lake, AMD since Zen 4).
///
/// Each instance has one 64-bit lane of the vector registers to itself, so a batch whose length is no
/// multiple of eight costs as much as the next multiple. Moduli of up to 16,384 bits are served, wider
/// ones fail with [`Error::ModulusWidth`]. An instance costs the same whatever its neighbours are:
/// moduli of different values may stand side by side. Instances of equal width should stand together,
/// since each change of width starts new vectors.
///
/// The processor is asked at run time; nothing has to be set when the crate is built.
///
/// Source: S. Gueron and V. Krasnov, "Accelerating Big Integer Arithmetic Using Intel IFMA Extensions",
/// ARITH 2016, with one instance a lane, so that nothing moves across lanes.
///
/// ```
/// use batch_modexp::{BatchModExp, ModExp, backend::Ifma};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 8];
///
/// if let Some(ifma) = Ifma::new() {
///     let mut out = [U256::ZERO; 8];
///     ifma.batch_mod_exp(&batch, 5, &mut out)?;
///     assert_eq!(out, [U256::from(48_573u32); 8]);
/// }
/// # Ok::<(), batch_modexp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Lanes8<Token>);

impl Ifma {
    /// Instances that are computed at the same time.
    pub const LANES: usize = 8;

    /// The backend, if the processor and the operating system support AVX-512 F and IFMA.
    #[must_use]
    pub fn new() -> Option<Self> {
        Token::detect().map(Lanes8).map(Self)
    }
}

/// See `backend::numbers`.
#[cfg(feature = "sign")]
impl Ifma {
    pub(super) fn mul_public_power(
        self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        factors: Option<&[Limb]>,
        out: &mut [Limb],
    ) {
        products::mul_public_power(self.0, moduli, exponent, bases, factors, out);
    }

    pub(super) fn powers_agree(self, powers: &Powers<'_>) -> Vec<Choice> {
        powers_agree(self.0, powers)
    }

    pub(super) fn invert(
        self,
        modulus: &MontyParams<BoxedUint>,
        values: &[Limb],
        out: &mut [Limb],
    ) -> Option<()> {
        products::invert(self.0, modulus, values, out)
    }
}

impl<U: Unsigned> BatchModExp<U> for Ifma {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        lanes::batch_mod_exp(self.0, batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        Self::LANES
    }
}

/// The same kernels without AVX-512.
#[cfg(test)]
pub(super) fn on_portable_unit() -> PortableIfma {
    PortableIfma(Lanes8(portable::Portable))
}

/// See [`on_portable_unit`].
#[cfg(test)]
pub(super) struct PortableIfma(Lanes8<portable::Portable>);

#[cfg(test)]
impl<U: Unsigned> BatchModExp<U> for PortableIfma {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        lanes::batch_mod_exp(self.0, batch, exponent_bits, out)
    }
}

#[cfg(all(test, feature = "sign"))]
impl PortableIfma {
    pub(super) fn mul_public_power(
        &self,
        moduli: Moduli<'_>,
        exponent: Exponent<'_>,
        bases: &[Limb],
        factors: Option<&[Limb]>,
        out: &mut [Limb],
    ) {
        products::mul_public_power(self.0, moduli, exponent, bases, factors, out);
    }

    pub(super) fn powers_agree(&self, powers: &Powers<'_>) -> Vec<Choice> {
        powers_agree(self.0, powers)
    }

    pub(super) fn invert(
        &self,
        modulus: &MontyParams<BoxedUint>,
        values: &[Limb],
        out: &mut [Limb],
    ) -> Option<()> {
        products::invert(self.0, modulus, values, out)
    }
}
