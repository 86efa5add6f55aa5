//! The traits that every backend implements.

mod each;
mod fixed_base;
mod fixed_base_vartime;
mod mul;
mod multi_exp;
mod multi_exp_vartime;
mod vartime;

use alloc::boxed::Box;
use alloc::sync::Arc;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

pub use self::each::{BatchModExpEach, gathered};
pub use self::fixed_base::{BatchFixedBaseExp, FixedBase};
pub use self::fixed_base_vartime::{BatchFixedBaseExpVartime, FixedBaseVartime};
pub use self::mul::{BatchModMul, ModMul};
pub use self::multi_exp::{BatchMultiExp, ModMultiExp};
pub use self::multi_exp_vartime::MultiExpVartime;
pub use self::vartime::BatchModExpVartime;

/// One exponentiation, `base ^ exponent mod params.modulus()`.
///
/// `U` is [`Uint<L>`](crypto_bigint::Uint) or [`BoxedUint`](crypto_bigint::BoxedUint). The *width*
/// of an instance is the precision of its modulus in bits, a multiple of the limb size. It is
/// public, as are the widths of base and exponent. Their values are secret.
///
/// * `base`: any value; it is reduced modulo the modulus. A `BoxedUint` may be narrower than the
///   modulus but not wider.
/// * `exponent`: any value, of which only the lowest `exponent_bits` bits count (an argument of the
///   call). Bits above are dropped without an error, because a check would depend on the secret. A
///   `BoxedUint` may be narrower or wider than the modulus, and is at least `exponent_bits` wide.
/// * `params`: any odd modulus, 1 included. Instances with the same modulus should share the
///   reference: a backend can then prepare the modulus once.
///
/// For a secret modulus make `params` with `MontyParams::new`, never with `new_vartime`. It reveals
/// the length of the modulus in bits, and `BoxedMontyParams` are freed unwiped.
///
/// Does not implement `Debug`: all three values may be secrets.
pub struct ModExp<'a, U: Unsigned> {
    /// The base, in ordinary (not Montgomery) form.
    pub base: &'a U,
    /// The exponent.
    pub exponent: &'a U,
    /// The modulus with its Montgomery constants.
    pub params: &'a MontyParams<U>,
}

// Not derived: a derive would require `U: Copy`, although the fields are references.
impl<U: Unsigned> Clone for ModExp<'_, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U: Unsigned> Copy for ModExp<'_, U> {}

impl<'a, U: Unsigned> ModExp<'a, U> {
    /// The instance `base ^ exponent mod params.modulus()`.
    ///
    /// With `BoxedUint`, whose `BoxedMontyParams` give the parameters by `as_ref`:
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
    /// let exponent = BoxedUint::from(5u64); // at least `exponent_bits` wide
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

    /// Writes `batch[i].base ^ (batch[i].exponent mod 2^exponent_bits) mod
    /// batch[i].params.modulus()` to `out[i]`, always the canonical value in `[0, modulus)`.
    ///
    /// Bases, exponents and moduli are secret. `exponent_bits`, the number of instances, their
    /// widths and which of them share a reference are public and visible in the running time.
    ///
    /// `exponent_bits` is at most the width of the narrowest exponent of the batch. It may exceed
    /// the width of a modulus. With 0 every result is `1 mod modulus`. Each instance costs as much
    /// as an exponent of `exponent_bits` bits. For different lengths use
    /// [`batch_mod_exp_each`](BatchModExpEach::batch_mod_exp_each).
    ///
    /// A batch of `BoxedUint` may mix widths; each result has the width of its modulus.
    ///
    /// # Errors
    ///
    /// The [`Error`](Self::Error) of the backend. The backends of this project return
    /// [`ExponentBits`](crate::Error::ExponentBits), [`BaseWidth`](crate::Error::BaseWidth),
    /// [`ModulusWidth`](crate::Error::ModulusWidth), or a fault of a device. All of `out` is then
    /// zero, never partly written.
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

    /// The number of instances that the backend computes at the same time; public and at least 1. A
    /// batch whose length is a multiple of it uses all of the hardware.
    fn granularity(&self) -> usize {
        1
    }

    /// Estimated time for `count` instances of `bits` bits with exponents of one length, in
    /// backend-specific units.
    ///
    /// Compare times only within one backend and width. The estimate depends on public values only.
    ///
    /// It helps to choose where to cut a batch: few instances may finish sooner than
    /// [`granularity`](Self::granularity) suggests. The default implementation rounds `count` up to
    /// the next multiple of that.
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

/// Implements the trait for pointers to backends.
macro_rules! by_pointer {
    ($($pointer:ty),*) => {
        $(
            impl<U: Unsigned, B: BatchModExp<U> + ?Sized> BatchModExp<U> for $pointer {
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
        )*
    };
}
by_pointer!(&B, Arc<B>, Box<B>);
