//! Powers of one base by a table.

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::Borrow;

use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, Unsigned};

use crate::Error;
use crate::fixed_base::{Exponents, Table, check_exponents, power_of_inverse};
use crate::powers::{FixedPowers, HasPowerEngine, PowerEngine};
use crate::secret::{Secret, reveal};
use crate::width::{MAX_BITS, check_lengths, check_widths, clear, place, width};

/// A table of powers of one base modulo one modulus, for exponents of up to a public length.
///
/// A backend makes it with [`fixed_base`](BatchFixedBaseExp::fixed_base); backends of the same kind
/// compute with it. It is immutable: threads share it by reference or in an `Arc`. It implements
/// neither `Debug` nor `Clone`: base, modulus and entries are secret, and wiped on drop. The
/// window, the lengths and the size are public.
pub struct FixedBase<U> {
    table: Table,
    /// A zero as wide as the modulus.
    zero: U,
}

impl<U> FixedBase<U> {
    /// The length, in bits, of the longest exponents that the table serves.
    #[must_use]
    pub fn exponent_bits(&self) -> u32 {
        self.table.exponent_bits()
    }

    /// Whether exponents are in two's complement: see
    /// [`signed_fixed_base`](BatchFixedBaseExp::signed_fixed_base).
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.table.is_signed()
    }

    /// Bits in a digit of an exponent, 3 to 6. Each digit costs one product.
    #[must_use]
    pub fn window_bits(&self) -> u32 {
        self.table.window_bits()
    }

    /// The size of the table in octets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

/// Constant-time powers of a fixed base, with one product for each digit of the exponent and no
/// squarings. Serves ElGamal, Pedersen commitments, and Diffie-Hellman with a generator.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchFixedBaseExp, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let table = Serial.fixed_base(&U256::from(2u32), &params, 64, 1 << 20)?; // exponents of up to 64 bits, in 1 MiB
///
/// let exponents = [20u32, 0, 21].map(U256::from);
/// let mut out = [U256::ZERO; 3];
/// Serial.batch_fixed_base_exp(&table, &exponents, 5, &mut out)?;
/// assert_eq!(out, [48_573u32, 1, 97_146].map(U256::from)); // 2^20 = 1,048,576
/// # Ok::<(), batch_modexp::Error>(())
/// ```
///
/// # Products of powers
///
/// Each table costs only its own products. Compute powers of several fixed bases (`s^x t^y`) one
/// after the other, and multiply them with [`batch_mod_mul`](crate::BatchModMul::batch_mod_mul).
pub trait BatchFixedBaseExp: HasPowerEngine {
    /// Makes a table for powers of `base`, with exponents of up to `exponent_bits` bits, in at most
    /// `max_bytes` octets.
    ///
    /// The base, of any value, and the modulus are secret; `exponent_bits`, `max_bytes` and widths
    /// are public.
    ///
    /// More octets mean fewer products per power, down to one for 6 bits of the exponent. The window
    /// is the widest of 3 to 6 bits that fits and still saves time. A limit of 2 MiB is enough for
    /// 256-bit exponents modulo 4,096 bits, one of 8 MiB for 2,048-bit exponents modulo 2,048 bits.
    ///
    /// Making a table takes the calling thread as long as 10 to 50 exponentiations of a large
    /// batch.
    ///
    /// # Errors
    ///
    /// [`Error::ModulusWidth`] above 16,384 bits, [`Error::BaseWidth`], and [`Error::TableBytes`]
    /// if `max_bytes` is too small.
    fn fixed_base<U: Unsigned>(
        &self,
        base: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<FixedBase<U>, Error> {
        table(
            self.power_engine(),
            [base, base],
            params,
            Exponents {
                bits: exponent_bits,
                are_signed: false,
                are_public: false,
            },
            max_bytes,
        )
    }

    /// Makes a table for signed exponents, in two's complement of `exponent_bits` bits.
    ///
    /// Exponents are from `-2^(exponent_bits - 1)` to `2^(exponent_bits - 1) - 1`, like those of
    /// crypto-bigint's `Int`. The sign is secret too, and costs nothing: `2^(exponent_bits - 1)` is
    /// added to each exponent, and a factor in one row of the table compensates.
    ///
    /// `inverse` is the inverse of the base, as crypto-bigint's `base.invert_odd_mod(modulus)`
    /// gives it. It is secret and may have any value.
    ///
    /// ```
    /// # use batch_modexp_core::facade as batch_modexp;
    /// use batch_modexp::{BatchFixedBaseExp, backend::Serial};
    /// use crypto_bigint::{I256, Odd, U256, modular::MontyParams};
    ///
    /// let modulus = Odd::new(U256::from(1_000_003u32)).unwrap();
    /// let two = U256::from(2u32);
    /// let half = two.invert_odd_mod(&modulus).unwrap();
    /// let params = MontyParams::new(modulus);
    /// let table = Serial.signed_fixed_base(&two, &half, &params, 256, 1 << 20)?;
    ///
    /// let mut out = [U256::ZERO];
    /// Serial.batch_fixed_base_exp(&table, &[*I256::from(-1i32).as_uint()], 256, &mut out)?;
    /// assert_eq!(out[0], half);
    /// # Ok::<(), batch_modexp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`fixed_base`](Self::fixed_base), and [`Error::NotInverse`] if the product of base
    /// and inverse is not 1.
    fn signed_fixed_base<U: Unsigned>(
        &self,
        base: &U,
        inverse: &U,
        params: &MontyParams<U>,
        exponent_bits: u32,
        max_bytes: usize,
    ) -> Result<FixedBase<U>, Error> {
        table(
            self.power_engine(),
            [base, inverse],
            params,
            Exponents {
                bits: exponent_bits,
                are_signed: true,
                are_public: false,
            },
            max_bytes,
        )
    }

    /// Writes `base ^ (exponents[i] mod 2^exponent_bits) mod modulus` to `out[i]`, the canonical
    /// value in `[0, modulus)`.
    ///
    /// Base and modulus are those of `table`. Exponents are numbers or references to numbers, and
    /// secret. Their number, their widths and `exponent_bits` are public and visible in the running
    /// time. The length `exponent_bits` is at most that of the table; for a
    /// [signed](Self::signed_fixed_base) table it is equal. `BoxedUint` results get the width of
    /// the modulus.
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
    fn batch_fixed_base_exp<U: Unsigned, E: Borrow<U>>(
        &self,
        table: &FixedBase<U>,
        exponents: &[E],
        exponent_bits: u32,
        out: &mut [U],
    ) -> Result<(), Error> {
        powers(self.power_engine(), table, exponents, exponent_bits, out)
    }
}

impl<B: HasPowerEngine + ?Sized> BatchFixedBaseExp for B {}

/// Makes a table for these exponents. If they are signed, the second number is the inverse of the
/// base.
pub(super) fn table<U: Unsigned>(
    engine: &dyn PowerEngine,
    [base, inverse]: [&U; 2],
    params: &MontyParams<U>,
    exponents: Exponents,
    max_bytes: usize,
) -> Result<FixedBase<U>, Error> {
    let modulus = params.modulus().as_ref();
    let (bits, modulus_bits) = (width(base).max(width(inverse)), width(modulus));
    check_widths(0, modulus_bits, bits, MAX_BITS)?;
    let form = engine.table_form(modulus_bits);
    let mut table = Table::zeros(params, form, exponents, max_bytes)
        .map_err(|bytes| Error::TableBytes { bytes, max_bytes })?;
    let base = base.as_limbs();
    let mut first = Secret::new(vec![Limb::ZERO; modulus.as_limbs().len()]);
    first[0] = Limb::ONE;
    if exponents.are_signed {
        // Exponents are raised by half of their range; with 0 bits there is no such half.
        let squarings = exponents.bits.checked_sub(1);
        let inverse = inverse.as_limbs();
        if !reveal(power_of_inverse(
            table.modulus(),
            base,
            inverse,
            squarings,
            &mut first,
        )) {
            return Err(Error::NotInverse);
        }
    }
    engine.fill_rows(&mut table, base, &first);
    let zero = U::zero_like(modulus);
    Ok(FixedBase { table, zero })
}

/// Computes powers by a table, or clears `out` if the input is unfit.
pub(super) fn powers<U: Unsigned, E: Borrow<U>>(
    engine: &dyn PowerEngine,
    FixedBase { table, zero }: &FixedBase<U>,
    exponents: &[E],
    exponent_bits: u32,
    out: &mut [U],
) -> Result<(), Error> {
    check(engine, table, exponents, exponent_bits, out).inspect_err(|_| clear(out))?;
    let exponents: Vec<_> = exponents.iter().map(|x| x.borrow().as_limbs()).collect();
    let mut out: Vec<_> = out.iter_mut().map(|out| place(out, zero)).collect();
    engine.fixed_powers(FixedPowers {
        table,
        exponents: &exponents,
        exponent_bits,
        out: &mut out,
    });
    Ok(())
}

fn check<U: Unsigned, E: Borrow<U>>(
    engine: &dyn PowerEngine,
    table: &Table,
    exponents: &[E],
    exponent_bits: u32,
    out: &[U],
) -> Result<(), Error> {
    check_lengths(exponents, out);
    let modulus_bits = table.modulus().width();
    if engine.table_form(modulus_bits) != table.form() {
        return Err(Error::TableOfOtherBackend);
    }
    let table_bits = (table.exponent_bits(), table.is_signed());
    check_exponents(exponents, exponent_bits, table_bits)
}
