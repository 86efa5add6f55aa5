//! Base blinding (Chaum, 1982; Kocher, 1996) without an inversion.
//!
//! The usual way divides `(m r^e)^d = m^d r` by r. Here the private operation is `m^d = f b^(d -
//! 1)`, with the *base* b and the *factor* f:
//!
//! * unblinded, `f = b = m`;
//! * blinded, for a fresh random r, `f = m r^(e - 1)` and `b = f r = m r^e`. The product is m^d,
//!   because `r^(e - 1) r^(e (d - 1)) = r^(e d - 1) = 1` modulo p and modulo q, and so modulo n.
//!
//! The base is `m r^e`, as usual: a random number independent of m. Nothing is inverted. The
//! exponent `d - 1` is d with its lowest bit cleared, because d, dP and dQ are odd: e times each of
//! them is 1 modulo an even number.

use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::engine::{Engine, Exponent, Moduli};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{CtEq, CtLt, Limb};
use rand_core::TryCryptoRng;

use crate::rsa::Error;
use crate::rsa::batch::KeyClass;
use crate::rsa::key::KeyParts;
use crate::rsa::limbs::{is_below, octets_to_limbs};

/// The random numbers of blinded items, in flat buffers.
pub(in crate::rsa) struct BlindingNumbers {
    /// A random number for each item, from 1 to n - 1.
    pub(in crate::rsa) r: Secret<Vec<Limb>>,
    /// Random numbers for the check of keys with primes: one for the p of each item, then one for
    /// the q of each.
    pub(in crate::rsa) masks: Secret<Vec<u16>>,
}

impl BlindingNumbers {
    /// Draws fresh numbers for items of `keys`, which have the class `class`.
    ///
    /// Fails with [`Error::Rng`] if the generator fails.
    pub(super) fn draw<R: TryCryptoRng + ?Sized>(
        class: &KeyClass<'_>,
        keys: &[&KeyParts],
        rng: &mut R,
    ) -> Result<Self, Error> {
        let limbs = class.limbs();
        let mut r = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for (key, r) in keys.iter().zip(r.chunks_exact_mut(limbs)) {
            let n = key.n().limbs;
            draw_below(n, key.n_bits, rng, &mut octets[..key.size()], r)?;
        }
        let mut masks = Secret::new(vec![0; class.prime.map_or(0, |_| 2 * keys.len())]);
        for mask in &mut *masks {
            *mask = rng.try_next_u32().map_err(|_| Error::Rng)? as u16;
        }
        Ok(Self { r, masks })
    }
}

/// Bases b and factors f: see the [module](self).
pub(in crate::rsa) struct Blinded {
    pub(in crate::rsa) bases: Secret<Vec<Limb>>,
    pub(in crate::rsa) factors: Secret<Vec<Limb>>,
}

impl Blinded {
    /// Blinds encoded messages for keys with the moduli `n` and the exponent `e`, if there are random
    /// numbers.
    pub(super) fn new(
        engine: &dyn Engine,
        n: Moduli<'_>,
        e: &[Limb],
        ems: &[Limb],
        blinding: Option<&BlindingNumbers>,
    ) -> Self {
        let Some(BlindingNumbers { r, .. }) = blinding else {
            // Copies, because the check reads encoded messages that no backend has touched.
            return Self {
                bases: Secret::new(ems.to_vec()),
                factors: Secret::new(ems.to_vec()),
            };
        };
        // r^(e - 1)
        let powers = engine.public_powers(n, Exponent::one_less(e), r);
        let factors = engine.products(n, ems, &powers);
        let bases = engine.products(n, &factors, r);
        Self { bases, factors }
    }
}

/// Draws a random number from 1 to n - 1, for an n of `n_bits` bits; `octets` is scratch memory as
/// long as n.
///
/// Rejection sampling among numbers as long as n, at least half of which are below it. The highest
/// limb decides nearly all rejections; then only its octets are drawn again, which are independent
/// of the lower ones. The rejections say nothing about the accepted number, and are public.
///
/// Fails with [`Error::Rng`] if the generator fails, or if none of 128 candidates is accepted
/// because it is stuck.
pub(in crate::rsa) fn draw_below<R: TryCryptoRng + ?Sized>(
    n: &[Limb],
    n_bits: u32,
    rng: &mut R,
    octets: &mut [u8],
    number: &mut [Limb],
) -> Result<(), Error> {
    const ATTEMPTS: u32 = 128;
    let excess_bits = 8 * octets.len() as u32 - n_bits;
    let highest = n.len() - 1;
    let mut missing = octets.len();
    for _ in 0..ATTEMPTS {
        let filled = rng.try_fill_bytes(&mut octets[..missing]);
        filled.map_err(|_| Error::Rng)?;
        octets[0] &= 0xff >> excess_bits;
        octets_to_limbs(octets, number);
        if reveal(n[highest].ct_lt(&number[highest])) {
            missing = Limb::BYTES;
            continue;
        }
        let bits = number.iter().fold(Limb::ZERO, |bits, limb| bits | *limb);
        if reveal(is_below(number, n) & !bits.ct_eq(&Limb::ZERO)) {
            return Ok(());
        }
        missing = octets.len();
    }
    Err(Error::Rng)
}

#[cfg(test)]
mod tests;
