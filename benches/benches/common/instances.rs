//! Random instances of modular exponentiation.

use batch_modexp::ModExp;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use crypto_bigint::modular::MontyParams;
use crypto_bigint::{Limb, Odd, Unsigned, Word};

const TOP_BIT: Limb = Limb(1 << (Limb::BITS - 1));

/// Instances of one width, each with a separate base, exponent and modulus, the same in every run.
///
/// Exponent and modulus have their top bit set. The base is below the modulus, as some of OpenSSL's
/// functions require.
pub(crate) struct Instances<U: Unsigned> {
    values: Vec<(U, U, MontyParams<U>)>,
}

impl<U: Unsigned + Clone> Instances<U> {
    /// Makes `count` instances as wide as `zero`, with the Montgomery constants that `params`
    /// computes.
    pub(crate) fn new(count: usize, zero: &U, params: impl Fn(Odd<U>) -> MontyParams<U>) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let values = (0..count).map(|_| {
            let mut modulus = full_length(zero, &mut rng);
            modulus.as_mut_limbs()[0] |= Limb::ONE;
            let modulus = Odd::new(modulus).expect("the low bit is set");
            let exponent = full_length(zero, &mut rng);
            let mut base = full_length(zero, &mut rng);
            if let Some(top) = base.as_mut_limbs().last_mut() {
                *top ^= TOP_BIT;
            }
            (base, exponent, params(modulus))
        });
        Self {
            values: values.collect(),
        }
    }

    /// The instances as a batch.
    pub(crate) fn batch(&self) -> Vec<ModExp<'_, U>> {
        self.values
            .iter()
            .map(|(base, exponent, params)| ModExp {
                base,
                exponent,
                params,
            })
            .collect()
    }
}

/// A random number as wide as `zero`, with its top bit set.
fn full_length<U: Unsigned + Clone>(zero: &U, rng: &mut ChaCha8Rng) -> U {
    let mut value = zero.clone();
    let limbs = value.as_mut_limbs();
    for limb in limbs.iter_mut() {
        // A word has at most 64 bits.
        *limb = Limb(rng.next_u64() as Word);
    }
    if let Some(top) = limbs.last_mut() {
        *top |= TOP_BIT;
    }
    value
}
