//! Powers with a public exponent.

use alloc::vec::Vec;

use crypto_bigint::Unsigned;
use crypto_bigint::modular::MontyParams;

use crate::Error;
use crate::monty::ModulusRef;
use crate::powers::{HasPowerEngine, PublicPowers};
use crate::public_exponent::PublicExponent;
use crate::width::{MAX_BITS, check_lengths, check_widths, clear, place, width};

/// Powers of many bases with one public exponent: 3 and 65537, which need no table, and long ones
/// such as Paillier's n.
///
/// Bases and moduli are secret: the time does not depend on them. For different public exponents
/// use [`batch_mod_exp_each`](crate::BatchModExpEach::batch_mod_exp_each), which reveals only their
/// lengths.
///
/// ```
/// # use batch_modexp_core::facade as batch_modexp;
/// use batch_modexp::{BatchModExpVartime, PublicExponent, backend::Serial};
/// use crypto_bigint::{Odd, U256, modular::MontyParams};
///
/// let params = MontyParams::new(Odd::new(U256::from(1_000_003u32)).unwrap());
/// let [two, three] = [2u32, 3].map(U256::from);
/// let bases = [(&two, &params), (&three, &params)];
///
/// let mut out = [U256::ZERO; 2];
/// let exponent = PublicExponent::new_vartime(&U256::from(20u32));
/// Serial.batch_mod_exp_vartime(&bases, &exponent, &mut out)?;
/// assert_eq!(out, [48_573u32, 773_943].map(U256::from)); // 1,048,576 and 3,486,784,401
/// # Ok::<(), batch_modexp::Error>(())
/// ```
pub trait BatchModExpVartime: HasPowerEngine {
    /// Writes `base ^ exponent mod params.modulus()` of each pair in `bases` to `out`, the
    /// canonical value in `[0, modulus)`.
    ///
    /// The time depends only on the exponent, the number of bases, their widths and which of them
    /// share `params`. A `BoxedUint` base may be narrower than the modulus. Results get the width
    /// of their modulus.
    ///
    /// # Errors
    ///
    /// [`Error::ModulusWidth`] above 16,384 bits and [`Error::BaseWidth`]. All of `out` is then
    /// zero.
    ///
    /// # Panics
    ///
    /// If `bases` and `out` differ in length.
    fn batch_mod_exp_vartime<U: Unsigned>(
        &self,
        bases: &[(&U, &MontyParams<U>)],
        exponent: &PublicExponent,
        mut out: &mut [U],
    ) -> Result<(), Error> {
        check_lengths(bases, out);
        check(bases).inspect_err(|_| clear(out))?;
        let bits = |(_, params): &(&U, &MontyParams<U>)| width(params.modulus().as_ref());
        for run in bases.chunk_by(|a, b| bits(a) == bits(b)) {
            let (head, tail) = out.split_at_mut(run.len());
            out = tail;
            let moduli: Vec<_> = run.iter().map(|(_, x)| ModulusRef::of(x)).collect();
            let bases: Vec<_> = run.iter().map(|(base, _)| base.as_limbs()).collect();
            let places = run.iter().zip(head);
            let mut places: Vec<_> = places
                .map(|((_, params), out)| place(out, params.modulus().as_ref()))
                .collect();
            self.power_engine().powers_vartime(PublicPowers {
                moduli: &moduli,
                bases: &bases,
                exponent,
                out: &mut places,
            });
        }
        Ok(())
    }
}

impl<B: HasPowerEngine + ?Sized> BatchModExpVartime for B {}

fn check<U: Unsigned>(bases: &[(&U, &MontyParams<U>)]) -> Result<(), Error> {
    for (index, (base, params)) in bases.iter().enumerate() {
        let modulus_bits = width(params.modulus().as_ref());
        check_widths(index, modulus_bits, width(*base), MAX_BITS)?;
    }
    Ok(())
}
