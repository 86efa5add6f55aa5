//! Operands for measurements: random bases, random moduli of full length, exponents of several
//! kinds.

use batch_modexp::ModExp;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use crypto_bigint::modular::BoxedMontyParams;
use crypto_bigint::{BoxedUint, Limb, Odd};

/// More moduli do not change the measurement.
const MOST_MODULI: usize = 1 << 14;

/// Kinds of exponents.
#[derive(Clone, Copy)]
pub(crate) enum Exponents {
    Zeros,
    Ones,
    /// Only the highest bit is set.
    OneBit,
    Random,
}

impl Exponents {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zeros => "all zero",
            Self::Ones => "all one",
            Self::OneBit => "one bit",
            Self::Random => "random",
        }
    }
}

pub(crate) struct Workload {
    pub(crate) bits: u32,
    moduli: Vec<BoxedMontyParams>,
    operands: Vec<(BoxedUint, BoxedUint)>,
}

impl Workload {
    /// Creates operands for batches of up to `len` instances.
    pub(crate) fn new(bits: u32, len: usize, exponents: Exponents) -> Self {
        Self::with_moduli(bits, len, MOST_MODULI, exponents)
    }

    /// Creates operands with at most `moduli` different moduli.
    pub(crate) fn with_moduli(bits: u32, len: usize, moduli: usize, exponents: Exponents) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(u64::from(bits));
        let bits = bits.next_multiple_of(Limb::BITS);
        let moduli = (0..len.min(moduli)).map(|_| modulus(&mut rng, bits));
        let moduli = moduli.collect();
        let operands = (0..len).map(|_| {
            let base = random(&mut rng, bits);
            let exponent = match exponents {
                Exponents::Zeros => BoxedUint::zero_with_precision(bits),
                Exponents::Ones => BoxedUint::max(bits),
                Exponents::OneBit => BoxedUint::one_with_precision(bits).shl(bits - 1),
                Exponents::Random => random(&mut rng, bits),
            };
            (base, exponent)
        });
        Self {
            bits,
            moduli,
            operands: operands.collect(),
        }
    }

    /// The first `len` instances.
    pub(crate) fn batch(&self, len: usize) -> Vec<ModExp<'_, BoxedUint>> {
        let moduli = self.moduli.iter().cycle();
        let operands = self.operands[..len].iter();
        operands
            .zip(moduli)
            .map(|((base, exponent), params)| ModExp {
                base,
                exponent,
                params: params.as_ref(),
            })
            .collect()
    }

    /// A buffer for `len` results.
    pub(crate) fn zeros(&self, len: usize) -> Vec<BoxedUint> {
        vec![BoxedUint::zero_with_precision(self.bits); len]
    }
}

fn random(rng: &mut ChaCha20Rng, bits: u32) -> BoxedUint {
    let mut bytes = vec![0; bits as usize / 8];
    rng.fill_bytes(&mut bytes);
    BoxedUint::from_le_slice(&bytes, bits).unwrap_or_else(|_| unreachable!("as long as asked"))
}

/// A random odd modulus with the highest bit set.
fn modulus(rng: &mut ChaCha20Rng, bits: u32) -> BoxedMontyParams {
    let mut modulus = random(rng, bits);
    let limbs = modulus.as_mut_limbs();
    limbs[0] |= Limb::ONE;
    if let Some(top) = limbs.last_mut() {
        *top |= Limb(1 << (Limb::BITS - 1));
    }
    BoxedMontyParams::new(Odd::new(modulus).expect("an odd number"))
}
