//! Base blinding (Chaum, 1982; Kocher, 1996): `(m * r^e)^d * r^-1 = m^d` for a fresh random r.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{CtEq, Limb};
use rand_core::TryCryptoRng;

use super::check::is_below;
use crate::Error;
use crate::backend::numbers::Numbers;
use crate::rsa::KeyHandle;
use crate::rsa::octets::octets_to_limbs;
use crate::secret::{Secret, reveal};

/// The blinding factors of lanes, in flat buffers.
pub(super) struct Blinds {
    /// A random number r for each lane, from 1 to n - 1.
    pub(super) numbers: Secret<Vec<Limb>>,
    /// Its inverse modulo n; empty until [`invert`](Self::invert) is called.
    pub(super) inverses: Secret<Vec<Limb>>,
    /// Random numbers for the check: one for the p of each lane, and then one for the q of each.
    pub(super) masks: Secret<Vec<u16>>,
}

impl Blinds {
    /// Fresh ones for lanes of `keys`, whose moduli have `limbs` limbs.
    ///
    /// Fails with [`Error::Rng`] if the generator fails.
    pub(super) fn draw<R: TryCryptoRng + ?Sized>(
        keys: &[&KeyHandle],
        limbs: usize,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let mut numbers = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for (key, number) in keys.iter().zip(numbers.chunks_exact_mut(limbs)) {
            draw(key, rng, &mut octets[..key.size()], number)?;
        }
        let mut blinds = Self::of(numbers, keys.len());
        for mask in &mut *blinds.masks {
            *mask = rng.try_next_u32().map_err(|_| Error::Rng)? as u16;
        }
        Ok(blinds)
    }

    /// Those with the given numbers for so many lanes, and masks that are all alike.
    pub(super) fn of(numbers: Secret<Vec<Limb>>, lanes: usize) -> Self {
        Self {
            numbers,
            inverses: Secret::new(Vec::new()),
            masks: Secret::new(vec![1; 2 * lanes]),
        }
    }

    /// Computes the inverses, for lanes of `keys`, if that has not been done.
    ///
    /// Fails with [`Error::Rng`] if a number has none, which is as likely as guessing a prime factor.
    pub(super) fn invert(&mut self, keys: &[&KeyHandle]) -> Result<(), Error> {
        if self.inverses.len() == self.numbers.len() {
            return Ok(());
        }
        let moduli: Vec<_> = keys.iter().map(|key| key.parts().n.as_ref()).collect();
        let mut inverses = Secret::new(vec![Limb::ZERO; self.numbers.len()]);
        let inverted = Numbers::fastest().invert(&moduli, &self.numbers, &mut inverses);
        inverted.ok_or(Error::Rng)?;
        self.inverses = inverses;
        Ok(())
    }
}

/// Draws a random number from 1 to n - 1, of the n of `key`, by way of `octets`, as many as n has.
///
/// By rejection sampling among the numbers that are as long as n, at least half of which are below it. How many
/// candidates were rejected says nothing about the one that was not, and is public.
///
/// Fails with [`Error::Rng`] if the generator fails, or if none of 128 candidates will do: then it is stuck.
fn draw<R: TryCryptoRng + ?Sized>(
    key: &KeyHandle,
    rng: &mut R,
    octets: &mut [u8],
    number: &mut [Limb],
) -> Result<(), Error> {
    const ATTEMPTS: u32 = 128;
    let n = key.parts().n.modulus().as_ref().as_limbs();
    let excess_bits = 8 * key.size() as u32 - key.bits();
    for _ in 0..ATTEMPTS {
        rng.try_fill_bytes(octets).map_err(|_| Error::Rng)?;
        octets[0] &= 0xff >> excess_bits;
        octets_to_limbs(octets, number);
        let bits = number.iter().fold(Limb::ZERO, |bits, limb| bits | *limb);
        if reveal(is_below(number, n) & !bits.ct_eq(&Limb::ZERO)) {
            return Ok(());
        }
    }
    Err(Error::Rng)
}

#[cfg(test)]
mod tests;
