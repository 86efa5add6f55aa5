//! Batches of modular products.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

/// One product, `a * b mod params.modulus()`.
///
/// `U` is [`Uint<L>`](crypto_bigint::Uint) or [`BoxedUint`](crypto_bigint::BoxedUint). The *width*
/// of an instance is the precision of its modulus in bits, a multiple of the limb size. It is
/// public, as are the widths of the factors. All values are secret.
///
/// * `a`, `b`: any values; they are reduced modulo the modulus. A `BoxedUint` may be narrower than
///   the modulus but not wider. For [`batch_monty_mul`](BatchModMul::batch_monty_mul) they are in
///   Montgomery form.
/// * `params`: any odd modulus, 1 included. Instances with the same modulus should share the
///   reference and stand side by side: a backend then prepares the modulus once, which takes about
///   as long as two products.
///
/// For a secret modulus make `params` with `MontyParams::new`, never with `new_vartime`.
///
/// Does not implement `Debug`: all three values may be secrets.
pub struct ModMul<'a, U: Unsigned> {
    /// A factor.
    pub a: &'a U,
    /// The other factor.
    pub b: &'a U,
    /// The modulus with its Montgomery constants.
    pub params: &'a MontyParams<U>,
}

// Not derived: a derive would require `U: Copy`, although the fields are references.
impl<U: Unsigned> Clone for ModMul<'_, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U: Unsigned> Copy for ModMul<'_, U> {}

impl<'a, U: Unsigned> ModMul<'a, U> {
    /// The instance `a * b mod params.modulus()`.
    ///
    /// With `BoxedUint`, whose `BoxedMontyParams` give the parameters by `as_ref`:
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchModMul, ModMul, backend::Serial};
    /// use crypto_bigint::{BoxedUint, Odd, modular::BoxedMontyParams};
    ///
    /// let modulus = BoxedUint::from_be_hex("f0000000000000000000000000000001", 128).unwrap();
    /// // Constant-time, for secret moduli too; `new_vartime` is for public ones.
    /// let params = BoxedMontyParams::new(Odd::new(modulus).unwrap());
    /// let (a, b) = (BoxedUint::from(3u64), BoxedUint::from(5u64)); // as wide as the modulus or narrower
    /// let batch = [ModMul::new(&a, &b, params.as_ref())];
    ///
    /// // Results get the width of their modulus, whatever stands here before.
    /// let mut out = [BoxedUint::zero()];
    /// Serial.batch_mod_mul(&batch, &mut out)?;
    /// assert_eq!(out[0], BoxedUint::from(15u64));
    /// assert_eq!(out[0].bits_precision(), 128);
    /// # Ok::<(), batch_modexp::Error>(())
    /// ```
    #[must_use]
    pub const fn new(a: &'a U, b: &'a U, params: &'a MontyParams<U>) -> Self {
        Self { a, b, params }
    }
}

/// Constant-time modular multiplication of many independent instances. Serves fields of elliptic
/// curves, accumulators, and Paillier, where a product modulo n^2 adds two plaintexts.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchModMul, ModMul, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let (a, b) = (U256::from(1_234_567u32), U256::from(7_654_321u32));
/// let batch = [ModMul { a: &a, b: &b, params: &params }; 2];
///
/// let mut out = [U256::ZERO; 2];
/// Serial.batch_mod_mul(&batch, &mut out)?;
/// assert_eq!(out, [U256::from(764_778u32); 2]);
/// # Ok::<(), batch_modexp::Error>(())
/// ```
///
/// # Many products under one modulus
///
/// A product of ordinary numbers takes two Montgomery products. The first converts `a` to its
/// Montgomery form `a * R mod modulus`, where `R` is 2 to the power of the width. The second
/// multiplies that by `b` and converts back. For many products under one modulus, keep numbers in
/// Montgomery form and pay for one with [`batch_monty_mul`](Self::batch_monty_mul). The form is
/// that of crypto-bigint's `MontyForm`.
///
/// A product of `a` in Montgomery form and `b` in ordinary form is `a * b` in ordinary form. It is
/// therefore enough to keep one factor in Montgomery form, such as a constant or the running
/// product of an accumulator.
pub trait BatchModMul<U: Unsigned> {
    /// Why a whole batch can fail.
    type Error: core::error::Error;

    /// Writes `batch[i].a * batch[i].b mod batch[i].params.modulus()` to `out[i]`, always the
    /// canonical value in `[0, modulus)`.
    ///
    /// Factors and moduli are secret. The number of instances, their widths and which of them share
    /// a reference are public and visible in the running time. A batch of `BoxedUint` may mix
    /// widths; each result has the width of its modulus.
    ///
    /// # Errors
    ///
    /// The [`Error`](Self::Error) of the backend if a width is out of range, or if the device
    /// failed. All of `out` is then zero, never partly written.
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Self::Error>;

    /// Writes the Montgomery product `batch[i].a * batch[i].b / R mod batch[i].params.modulus()` to
    /// `out[i]`.
    ///
    /// `R` is 2 to the power of the width of the modulus. For factors in Montgomery form this is
    /// their product in Montgomery form (P. L. Montgomery, "Modular multiplication without trial
    /// division", Mathematics of Computation 44, 1985). All else is as with
    /// [`batch_mod_mul`](Self::batch_mod_mul).
    ///
    /// At least one factor must be below the modulus, as Montgomery forms are. The result is then
    /// the canonical value in `[0, modulus)`; otherwise it is unspecified.
    ///
    /// To convert a number, use crypto-bigint's `MontyForm::as_montgomery`, or a product with
    /// `params.r2()`. To convert back, use `MontyForm::from_montgomery`, or a product with 1.
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchModMul, ModMul, backend::Serial};
    /// use crypto_bigint::{Odd, U256, modular::{FixedMontyForm, FixedMontyParams}};
    ///
    /// let params = FixedMontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
    /// let form = |number: u32| FixedMontyForm::new(&U256::from(number), &params);
    /// let (a, b) = (form(1_234_567), form(7_654_321));
    ///
    /// let mut out = [U256::ZERO];
    /// let batch = [ModMul::new(a.as_montgomery(), b.as_montgomery(), &params)];
    /// Serial.batch_monty_mul(&batch, &mut out)?;
    /// let product = FixedMontyForm::from_montgomery(out[0], &params);
    /// assert_eq!(product.retrieve(), U256::from(764_778u32));
    ///
    /// // One of them in Montgomery form: an ordinary product.
    /// let b = U256::from(7_654_321u32);
    /// Serial.batch_monty_mul(&[ModMul::new(a.as_montgomery(), &b, &params)], &mut out)?;
    /// assert_eq!(out[0], U256::from(764_778u32));
    /// # Ok::<(), batch_modexp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`batch_mod_mul`](Self::batch_mod_mul).
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Self::Error>;
}

/// Implements the trait for pointers to backends.
macro_rules! by_pointer {
    ($($pointer:ty),*) => {
        $(
            impl<U: Unsigned, B: BatchModMul<U> + ?Sized> BatchModMul<U> for $pointer {
                type Error = B::Error;

                fn batch_mod_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Self::Error> {
                    (**self).batch_mod_mul(batch, out)
                }

                fn batch_monty_mul(&self, batch: &[ModMul<'_, U>], out: &mut [U]) -> Result<(), Self::Error> {
                    (**self).batch_monty_mul(batch, out)
                }
            }
        )*
    };
}
by_pointer!(&B, Arc<B>, Box<B>);
