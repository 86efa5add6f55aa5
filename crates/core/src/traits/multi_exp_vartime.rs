//! A product of many powers with public exponents.

use alloc::vec::Vec;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use crate::Error;
use crate::buckets;
use crate::monty::ModulusRef;
use crate::powers::HasPowerEngine;
use crate::width::{MAX_BITS, check_widths, place, width};

/// A product of many powers with public exponents, such as the random exponents of a verifier that
/// checks many proofs at once.
///
/// The method is Pippenger's ("On the evaluation of powers and related problems", FOCS 1976), as in
/// Bernstein, Doumen, Lange and Oosterwijk, "Faster batch forgery identification" (INDOCRYPT 2012).
/// With 128-bit exponents, a term then costs about 24 products if there are 1,024 of them, and 15
/// if there are 16,384. A power by itself takes 128 squarings and some 40 products. Fewer terms share
/// squarings, as with [`BatchMultiExp`](crate::BatchMultiExp), if that takes less time on the
/// backend at the width of the modulus. An exponent of 0 costs nothing.
///
/// The order of operations and the memory that is read reveal the exponents. They do not depend on
/// the bases and the modulus, which may be secret. Never pass a secret exponent.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{MultiExpVartime, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let [two, three, four, twenty] = [2u32, 3, 4, 20].map(U256::from);
/// let product = Serial.multi_exp_vartime(&[(&two, &twenty), (&three, &four)], &params)?;
/// assert_eq!(product, U256::from(934_404u32)); // 2^20 * 3^4 = 84,934,656
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub trait MultiExpVartime: HasPowerEngine {
    /// The product of `base ^ exponent mod params.modulus()` over `terms`, the canonical value in
    /// `[0, modulus)`.
    ///
    /// Each term is a base, of any value, and a public exponent. A `BoxedUint` base may be narrower
    /// than the modulus, and an exponent may have any width. Without terms the product is `1 mod
    /// modulus`. The result gets the width of the modulus.
    ///
    /// By Pippenger's method, for n terms with exponents of up to b bits, and digits of w bits, there
    /// are about `b/w * (n + 2^(w+1))` products and b squarings, fewer if most exponents are shorter.
    /// The products use lanes and threads; the squarings run on the calling thread. The fastest w is
    /// chosen. Temporary memory holds about 4n numbers, and at most 6,144 more. Terms that share
    /// squarings take memory for up to 10,500 numbers on each thread, and squarings on all of them.
    ///
    /// # Errors
    ///
    /// [`Error::ModulusWidth`] above 16,384 bits, and [`Error::BaseWidth`], whose index is that of
    /// the term.
    fn multi_exp_vartime<U: Unsigned>(
        &self,
        terms: &[(&U, &U)],
        params: &MontyParams<U>,
    ) -> Result<U, Error> {
        let modulus = params.modulus().as_ref();
        check_widths(0, width(modulus), 0, MAX_BITS)?;
        for (index, (base, _)) in terms.iter().enumerate() {
            check_widths(index, width(modulus), width(*base), MAX_BITS)?;
        }
        let terms = terms.iter();
        let terms: Vec<_> = terms
            .map(|(base, exponent)| [base.as_limbs(), exponent.as_limbs()])
            .collect();
        let mut out = U::zero_like(modulus);
        buckets::product(
            self.power_engine(),
            ModulusRef::of(params),
            terms,
            place(&mut out, modulus),
        );
        Ok(out)
    }
}

impl<B: HasPowerEngine + ?Sized> MultiExpVartime for B {}
