//! Powers of one base by a table, for public exponents.

use core::borrow::Borrow;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use super::fixed_base::{FixedBase, powers, table};
use crate::Error;
use crate::fixed_base::Exponents;
use crate::powers::HasPowerEngine;

/// A table like [`FixedBase`], for public exponents only.
///
/// A backend makes it with [`fixed_base_vartime`](BatchFixedBaseExpVartime::fixed_base_vartime);
/// backends of the same kind compute with it. Threads share it by reference or in an `Arc`. It
/// implements neither `Debug` nor `Clone`: base, modulus and entries may be secret, and are wiped
/// on drop. The window, the lengths and the size are public.
pub struct FixedBaseVartime<U>(FixedBase<U>);

impl<U> FixedBaseVartime<U> {
    /// The length, in bits, of the longest exponents that the table serves.
    #[must_use]
    pub fn exponent_bits(&self) -> u32 {
        self.0.exponent_bits()
    }

    /// Whether exponents are in two's complement: see
    /// [`signed_fixed_base_vartime`](BatchFixedBaseExpVartime::signed_fixed_base_vartime).
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.0.is_signed()
    }

    /// Bits in a digit of an exponent, 3 to 8. Each digit costs at most one product.
    #[must_use]
    pub fn window_bits(&self) -> u32 {
        self.0.window_bits()
    }

    /// The size of the table in octets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Powers of a fixed base with public exponents, such as the challenges and responses that a
/// verifier receives.
///
/// An entry of the table is read by its index, so digits are wider than those of
/// [`BatchFixedBaseExp`](crate::BatchFixedBaseExp) and cost less. The memory that is read, and the
/// time, reveal the exponents. They do not depend on the base and the modulus, which may be secret.
/// Never pass a secret exponent.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchFixedBaseExpVartime, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let table = Serial.fixed_base_vartime(&U256::from(2u32), &params, 64, 1 << 20)?;
///
/// let exponents = [20u32, 0, 21].map(U256::from);
/// let mut out = [U256::ZERO; 3];
/// Serial.batch_fixed_base_exp_vartime(&table, &exponents, 5, &mut out)?;
/// assert_eq!(out, [48_573u32, 1, 97_146].map(U256::from)); // 2^20 = 1,048,576
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub trait BatchFixedBaseExpVartime: HasPowerEngine {
    /// Makes a table for powers of `base`, with public exponents of up to `exponent_bits` bits, in
    /// at most `max_bytes` octets.
    ///
    /// The base, of any value, and the modulus may be secret; `exponent_bits`, `max_bytes` and
    /// widths are public.
    ///
    /// The window is the widest of 3 to 8 bits that fits and still saves products. A limit of 6 MiB
    /// is enough for all of them with 256-bit exponents modulo 4,096 bits, one of 21 MiB with
    /// 2,048-bit exponents modulo 2,048 bits.
    ///
    /// Making a table takes the calling thread as long as 20 to 90 exponentiations of a large
    /// batch.
    ///
    /// # Errors
    ///
    /// [`Error::ModulusWidth`] above 16,384 bits, [`Error::BaseWidth`], and [`Error::TableBytes`]
    /// if `max_bytes` is too small.
    fn fixed_base_vartime<U: Unsigned>(
        &self,
        base: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<FixedBaseVartime<U>, Error> {
        let exponents = Exponents {
            bits: exponent_bits,
            are_signed: false,
            are_public: true,
        };
        let engine = self.power_engine();
        table(engine, [base, base], params, exponents, max_bytes).map(FixedBaseVartime)
    }

    /// Makes a table for signed public exponents, in two's complement of `exponent_bits` bits.
    ///
    /// Exponents are from `-2^(exponent_bits - 1)` to `2^(exponent_bits - 1) - 1`, like those of
    /// crypto-bigint's `Int`. `inverse` is the inverse of the base, as crypto-bigint's
    /// `base.invert_odd_mod(modulus)` gives it. It may be secret and have any value.
    ///
    /// # Errors
    ///
    /// Those of [`fixed_base_vartime`](Self::fixed_base_vartime), and [`Error::NotInverse`] if the
    /// product of base and inverse is not 1.
    fn signed_fixed_base_vartime<U: Unsigned>(
        &self,
        base: &U,
        inverse: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<FixedBaseVartime<U>, Error> {
        let exponents = Exponents {
            bits: exponent_bits,
            are_signed: true,
            are_public: true,
        };
        let engine = self.power_engine();
        table(engine, [base, inverse], params, exponents, max_bytes).map(FixedBaseVartime)
    }

    /// Writes `base ^ (exponents[i] mod 2^exponent_bits) mod modulus` to `out[i]`, the canonical
    /// value in `[0, modulus)`.
    ///
    /// Base and modulus are those of `table`. Exponents are numbers or references to numbers, and
    /// public: the running time and the addresses of memory depend on their values. The length
    /// `exponent_bits` is at most that of the table; for a
    /// [signed](Self::signed_fixed_base_vartime) table it is equal. `BoxedUint` results get the
    /// width of the modulus.
    ///
    /// # Errors
    ///
    /// [`Error::TableExponentBits`] if the table does not serve that length,
    /// [`Error::ExponentBits`] if an exponent has fewer bits, and [`Error::TableOfOtherBackend`] if
    /// a backend of another kind made the table. All of `out` is then zero.
    ///
    /// # Panics
    ///
    /// If `exponents` and `out` differ in length.
    fn batch_fixed_base_exp_vartime<U: Unsigned, E: Borrow<U>>(
        &self,
        table: &FixedBaseVartime<U>,
        exponents: &[E],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        powers(self.power_engine(), &table.0, exponents, exponent_bits, out)
    }
}

impl<B: HasPowerEngine + ?Sized> BatchFixedBaseExpVartime for B {}
