//! Products of powers.

use alloc::vec::Vec;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use crate::Error;
use crate::monty::ModulusRef;
use crate::powers::{HasPowerEngine, MultiPowers};
use crate::width::{MAX_BITS, check_exponent, check_lengths, check_widths, clear, place, width};

/// One product of powers, `terms[0].0 ^ terms[0].1 * terms[1].0 ^ terms[1].1 * ... mod
/// params.modulus()`.
///
/// `U` is [`Uint<L>`](crypto_bigint::Uint) or [`BoxedUint`](crypto_bigint::BoxedUint). All values
/// are secret. Widths, the number of terms and which instances share `params` are public.
///
/// * `terms`: a base and an exponent each, of any value. A `BoxedUint` base may be narrower than
///   the modulus but not wider.
/// * `params`: any odd modulus, 1 included. Instances with the same modulus should share the
///   reference.
///
/// Does not implement `Debug`: all values may be secrets.
pub struct ModMultiExp<'a, U: Unsigned> {
    /// Bases and exponents.
    pub terms: &'a [(&'a U, &'a U)],
    /// The modulus with its Montgomery constants.
    pub params: &'a MontyParams<U>,
}

impl<'a, U: Unsigned> ModMultiExp<'a, U> {
    /// The instance with these terms and this modulus.
    #[must_use]
    pub const fn new(terms: &'a [(&'a U, &'a U)], params: &'a MontyParams<U>) -> Self {
        Self { terms, params }
    }
}

// Not derived: a derive would require `U: Copy`, although the fields are references.
impl<U: Unsigned> Clone for ModMultiExp<'_, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U: Unsigned> Copy for ModMultiExp<'_, U> {}

/// Constant-time products of powers of many independent instances; the terms of a product share
/// their squarings. Serves verification of proofs, vector commitments, and threshold signatures.
///
/// A product of two powers takes 0.6 to 0.8 times as long as two powers; one of eight powers takes
/// 0.35 to 0.55 times as long as eight. For fixed bases, tables take less time:
/// [`BatchFixedBaseExp`](crate::BatchFixedBaseExp).
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchMultiExp, ModMultiExp, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let [two, three, four, twenty] = [2u32, 3, 4, 20].map(U256::from);
/// let terms = [(&two, &twenty), (&three, &four)];
/// let batch = [ModMultiExp::new(&terms, &params)];
///
/// let mut out = [U256::ZERO];
/// Serial.batch_multi_exp(&batch, &[5, 3], &mut out)?; // exponents of up to 5 and 3 bits
/// assert_eq!(out[0], U256::from(934_404u32)); // 2^20 * 3^4 = 84,934,656
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub trait BatchMultiExp: HasPowerEngine {
    /// Writes the product of `base ^ (exponent mod 2^exponent_bits[j])` over the terms `j` of each
    /// instance to `out`.
    ///
    /// Results are canonical, in `[0, modulus)`. `exponent_bits` has the exponent length of each
    /// term, the same for all instances. The lengths and the number of terms are public. A short
    /// exponent beside a long one costs only its own products. Without terms a product is `1 mod
    /// modulus`. `BoxedUint` results get the width of their modulus.
    ///
    /// # Errors
    ///
    /// [`Error::Terms`] if an instance has more or fewer terms, [`Error::ModulusWidth`] above
    /// 16,384 bits, [`Error::BaseWidth`], and [`Error::ExponentBits`] if an exponent has fewer
    /// bits. All of `out` is then zero.
    ///
    /// # Panics
    ///
    /// If `batch` and `out` differ in length.
    fn batch_multi_exp<U: Unsigned>(
        &self,
        batch: &[ModMultiExp<'_, U>],
        exponent_bits: &[u32],
        mut out: &mut [U],
    ) -> Result<(), Error> {
        check_lengths(batch, out);
        check(batch, exponent_bits).inspect_err(|_| clear(out))?;
        let bits = |instance: &ModMultiExp<'_, U>| width(instance.params.modulus().as_ref());
        for run in batch.chunk_by(|a, b| bits(a) == bits(b)) {
            let (head, tail) = out.split_at_mut(run.len());
            out = tail;
            let moduli: Vec<_> = run.iter().map(|x| ModulusRef::of(x.params)).collect();
            let terms = run.iter().flat_map(|instance| instance.terms);
            let terms: Vec<_> = terms
                .map(|(base, exponent)| [base.as_limbs(), exponent.as_limbs()])
                .collect();
            let places = run.iter().zip(head);
            let mut places: Vec<_> = places
                .map(|(instance, out)| place(out, instance.params.modulus().as_ref()))
                .collect();
            self.power_engine().multi_powers(MultiPowers {
                moduli: &moduli,
                terms: &terms,
                exponent_bits,
                out: &mut places,
            });
        }
        Ok(())
    }
}

impl<B: HasPowerEngine + ?Sized> BatchMultiExp for B {}

fn check<U: Unsigned>(batch: &[ModMultiExp<'_, U>], lengths: &[u32]) -> Result<(), Error> {
    for (index, ModMultiExp { terms, params }) in batch.iter().enumerate() {
        let modulus_bits = width(params.modulus().as_ref());
        check_widths(index, modulus_bits, 0, MAX_BITS)?;
        if terms.len() != lengths.len() {
            return Err(Error::Terms {
                index,
                terms: terms.len(),
                lengths: lengths.len(),
            });
        }
        for ((base, exponent), exponent_bits) in terms.iter().zip(lengths) {
            check_widths(index, modulus_bits, width(*base), MAX_BITS)?;
            check_exponent(index, width(*exponent), *exponent_bits)?;
        }
    }
    Ok(())
}
