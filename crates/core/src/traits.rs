//! The traits that every backend implements.

mod each;
mod fixed_base;
mod mul;
mod multi_exp;
mod vartime;

use alloc::boxed::Box;
use alloc::sync::Arc;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

pub use self::each::BatchModExpEach;
pub use self::fixed_base::{BatchFixedBaseExp, FixedBase};
pub use self::mul::{BatchModMul, ModMul};
pub use self::multi_exp::{BatchMultiExp, ModMultiExp};
pub use self::vartime::BatchModExpVartime;

/// One exponentiation, `base ^ exponent mod params.modulus()`.
///
/// `U` is [`Uint<L>`](crypto_bigint::Uint) or [`BoxedUint`](crypto_bigint::BoxedUint). The *width* of
/// an instance is the precision of its modulus in bits, a multiple of the limb size and public, as
/// are the widths of base and exponent. Their values are secret.
///
/// * `base`: any value; it is reduced modulo the modulus. A `BoxedUint` may be narrower than the
///   modulus but not wider.
/// * `exponent`: any value. A `BoxedUint` may be narrower or wider than the modulus.
/// * `params`: of any odd modulus, 1 included. Instances that share a modulus should share the
///   reference: a backend may then prepare the modulus once.
///
/// Make `params` of a secret modulus with `MontyParams::new`, never with `new_vartime`.
///
/// There is no `Debug`: all three values may be secrets.
#[allow(missing_debug_implementations)]
pub struct ModExp<'a, U: Unsigned> {
    /// The base, in ordinary (not Montgomery) form.
    pub base: &'a U,
    /// The exponent.
    pub exponent: &'a U,
    /// The modulus with its Montgomery constants.
    pub params: &'a MontyParams<U>,
}

// By hand, because a derive would ask for `U: Copy`, and these are references.
impl<U: Unsigned> Clone for ModExp<'_, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U: Unsigned> Copy for ModExp<'_, U> {}

impl<'a, U: Unsigned> ModExp<'a, U> {
    /// The instance `base ^ exponent mod params.modulus()`.
    ///
    /// With `BoxedUint`, whose `BoxedMontyParams` lend out the parameters by `as_ref`:
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchModExp, ModExp, backend::Serial};
    /// use crypto_bigint::{BoxedUint, Odd, modular::BoxedMontyParams};
    ///
    /// let modulus = BoxedUint::from_be_hex("f0000000000000000000000000000001", 128).unwrap();
    /// // Constant-time, for secret moduli too; `new_vartime` is for public ones.
    /// let params = BoxedMontyParams::new(Odd::new(modulus).unwrap());
    /// let base = BoxedUint::from(3u64); // as wide as the modulus or narrower
    /// let exponent = BoxedUint::from(5u64); // of any width
    /// let batch = [ModExp::new(&base, &exponent, params.as_ref())];
    ///
    /// // Results get the width of their modulus, whatever stands here before.
    /// let mut out = [BoxedUint::zero()];
    /// Serial.batch_mod_exp(&batch, 64, &mut out)?;
    /// assert_eq!(out[0], BoxedUint::from(243u64));
    /// assert_eq!(out[0].bits_precision(), 128);
    /// # Ok::<(), batch_modexp::Error>(())
    /// ```
    #[must_use]
    pub const fn new(base: &'a U, exponent: &'a U, params: &'a MontyParams<U>) -> Self {
        Self {
            base,
            exponent,
            params,
        }
    }
}

/// Constant-time modular exponentiation of many independent instances.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchModExp, ModExp, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (base, exponent) = (U256::from(2u32), U256::from(20u32));
/// let batch = [ModExp { base: &base, exponent: &exponent, params: &params }; 2];
///
/// let mut out = [U256::ZERO; 2];
/// Serial.batch_mod_exp(&batch, 5, &mut out)?;
/// assert_eq!(out, [U256::from(48_573u32); 2]); // 2^20 = 1,048,576
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub trait BatchModExp<U: Unsigned> {
    /// Why a whole batch can fail.
    type Error: core::error::Error;

    /// Writes `batch[i].base ^ (batch[i].exponent mod 2^exponent_bits) mod batch[i].params.modulus()`
    /// to `out[i]`, always the canonical value in `[0, modulus)`.
    ///
    /// Bases, exponents and moduli are secret; `exponent_bits`, the number of instances, their widths
    /// and which of them share a reference are public and visible in the running time.
    /// `exponent_bits` is at most the width of the narrowest exponent of the batch, and may be more than the width
    /// of a modulus; with 0 every result is `1 mod modulus`. Each instance costs as much as an exponent of
    /// `exponent_bits` bits; [`batch_mod_exp_each`](BatchModExpEach::batch_mod_exp_each) takes lengths that differ. Instances of different widths may stand in one batch of `BoxedUint`;
    /// each result has the width of its modulus.
    ///
    /// # Errors
    ///
    /// The [`Error`](Self::Error) of the backend if `exponent_bits` or a width is out of range, or if
    /// the device failed. All of `out` is zero then, never half written.
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Self::Error>;

    /// How many instances the backend computes at the same time: a batch whose length is a multiple of
    /// it leaves no part of the hardware idle. Public, and at least 1.
    fn granularity(&self) -> usize {
        1
    }

    /// How long `count` instances of `bits` bits take, about, all with exponents of one length: in a unit of the
    /// backend's own, so that only times of one backend and width can be compared. Public, as what it is foreseen from.
    ///
    /// Whoever cuts a batch into parts may ask where: few instances may be done sooner than
    /// [`granularity`](Self::granularity) says. By default they take as long as the next multiple of that.
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchModExp, backend::Serial};
    /// use crypto_bigint::U1024;
    ///
    /// let time = |count| BatchModExp::<U1024>::relative_time(&Serial, 1024, count);
    /// assert!(time(1) <= time(64));
    /// ```
    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        let _ = bits;
        count.div_ceil(self.granularity()) as u64
    }
}

impl<U: Unsigned, B: BatchModExp<U> + ?Sized> BatchModExp<U> for &B {
    type Error = B::Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Self::Error> {
        (**self).batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        (**self).granularity()
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        (**self).relative_time(bits, count)
    }
}

impl<U: Unsigned, B: BatchModExp<U> + ?Sized> BatchModExp<U> for Arc<B> {
    type Error = B::Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Self::Error> {
        (**self).batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        (**self).granularity()
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        (**self).relative_time(bits, count)
    }
}

impl<U: Unsigned, B: BatchModExp<U> + ?Sized> BatchModExp<U> for Box<B> {
    type Error = B::Error;

    fn batch_mod_exp(
        &self,
        batch: &[ModExp<'_, U>],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Self::Error> {
        (**self).batch_mod_exp(batch, exponent_bits, out)
    }

    fn granularity(&self) -> usize {
        (**self).granularity()
    }

    fn relative_time(&self, bits: u32, count: usize) -> u64 {
        (**self).relative_time(bits, count)
    }
}
