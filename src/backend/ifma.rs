//! AVX-512 IFMA in radix 2^52: eight instances at a time, and two at a time where there are few.

mod blocks;
mod cost;
mod kernel;
mod lanes8;
mod look_up;
mod madd52;
mod pair;
#[cfg(test)]
mod portable;
mod size;
#[cfg(test)]
mod tests;
mod token;

#[cfg(feature = "sign")]
use alloc::vec::Vec;

#[cfg(feature = "sign")]
use crypto_bigint::Choice;
use crypto_bigint::Unsigned;

use self::lanes8::Lanes8;
use self::pair::{Across, Pairs};
use self::token::Token;
use super::Form;
use super::lanes::{self, Run};
#[cfg(feature = "sign")]
use super::width;
#[cfg(feature = "sign")]
use super::{
    lanes::products,
    numbers::{Moduli, Powers, Product},
};
use crate::{BatchModExp, BatchModMul, Error, ModExp, ModMul};

/// Runs a batch on the calling thread with AVX-512 IFMA, eight instances at a time (x86-64: Intel since
/// Ice Lake, AMD since Zen 4).
///
/// In a block of eight each instance has one 64-bit lane of the vector registers to itself. What is left
/// over of a batch goes by twos, an instance across four lanes each, where that takes less time: from 384 to
/// 4,096 bits, up to two instances, four from 1,024 bits on and six from 1,728 on. Two take from nine to three
/// tenths of the time of a block; where more are left over they cost as much as a block. Moduli of up to 16,384 bits
/// are served, wider ones fail with [`Error::ModulusWidth`]. An instance costs the same whatever its neighbours are:
/// moduli of different values may stand side by side. Instances of equal width should stand together,
/// since each change of width starts new vectors.
///
/// The processor is asked at run time; nothing has to be set when the crate is built.
///
/// Source: S. Gueron and V. Krasnov, "Accelerating Big Integer Arithmetic Using Intel IFMA Extensions",
/// ARITH 2016, with one instance a lane, so that nothing moves across lanes; and by the same authors "Software
/// Implementation of Modular Exponentiation, Using Advanced Vector Instructions Architectures", WAIFI 2012, for limbs
/// of one number across lanes.
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

/// What the kernels are compiled behind: see `lanes::run`.
impl Ifma {
    #[inline(never)]
    fn pow(self, exponent_bits: u32, run: &mut dyn Run<'_>) {
        pow(self.0, exponent_bits, run);
    }

    #[inline(never)]
    fn multiply(self, form: Form, run: &mut dyn Run<'_>) {
        lanes::mul::multiply(self.0, form, run);
    }
}

/// See `backend::numbers`.
#[cfg(feature = "sign")]
impl Ifma {
    pub(super) fn mul_public_power(self, product: Product<'_>) {
        mul_public_power(self.0, product);
    }

    pub(super) fn powers_agree(self, powers: &Powers<'_>) -> Vec<Choice> {
        powers_agree(self.0, powers)
    }
}

/// Few products by twos.
#[cfg(feature = "sign")]
fn mul_public_power<T: Across>(lanes: Lanes8<T>, product: Product<'_>) {
    match go_by_twos(product.moduli) {
        true => products::mul_public_power(Pairs(lanes.0), product),
        false => products::mul_public_power(lanes, product),
    }
}

/// Few powers by twos.
#[cfg(feature = "sign")]
fn powers_agree<T: Across>(lanes: Lanes8<T>, powers: &Powers<'_>) -> Vec<Choice> {
    match go_by_twos(powers.factors[0]) {
        true => lanes::powers_agree::powers_agree(Pairs(lanes.0), powers),
        false => lanes::powers_agree::powers_agree(lanes, powers),
    }
}

/// Whether there are so few moduli, equally wide, that all of them go by twos.
#[cfg(feature = "sign")]
fn go_by_twos(moduli: Moduli<'_>) -> bool {
    let bits = moduli
        .first()
        .map_or(0, |modulus| width(modulus.modulus().as_ref()));
    cost::in_pairs(bits, moduli.len()) == moduli.len()
}

impl<U: Unsigned> BatchModExp<U> for Ifma {
    type Error = Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        lanes::batch_mod_exp(batch, exponent_bits, out, |run| {
            self.pow(exponent_bits, run);
        })
    }

    fn granularity(&self) -> usize {
        Self::LANES
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        cost::relative_time(bits, count)
    }
}

impl<U: Unsigned> BatchModMul<U> for Ifma {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        lanes::mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Ordinary, run))
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        lanes::mul::batch_mod_mul(batch, out, |run| self.multiply(Form::Montgomery, run))
    }
}

/// As many instances as fill eight lanes in those, what is left over by twos where that takes less time.
fn pow<T: Across>(lanes: Lanes8<T>, exponent_bits: u32, run: &mut dyn Run<'_>) {
    let count = run.count();
    let in_lanes = count - cost::in_pairs(run.bits(), count);
    lanes::pow(lanes, exponent_bits, run, 0..in_lanes);
    lanes::pow(Pairs(lanes.0), exponent_bits, run, in_lanes..count);
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
        lanes::batch_mod_exp(batch, exponent_bits, out, |run| {
            pow(self.0, exponent_bits, run);
        })
    }
}

#[cfg(test)]
impl<U: Unsigned> BatchModMul<U> for PortableIfma {
    type Error = Error;

    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        lanes::mul::batch_mod_mul(batch, out, |run| {
            lanes::mul::multiply(self.0, Form::Ordinary, run);
        })
    }

    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Error> {
        lanes::mul::batch_mod_mul(batch, out, |run| {
            lanes::mul::multiply(self.0, Form::Montgomery, run);
        })
    }
}

#[cfg(all(test, feature = "sign"))]
impl PortableIfma {
    pub(super) fn mul_public_power(&self, product: Product<'_>) {
        mul_public_power(self.0, product);
    }

    pub(super) fn powers_agree(&self, powers: &Powers<'_>) -> Vec<Choice> {
        powers_agree(self.0, powers)
    }
}
