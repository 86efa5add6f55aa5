//! The RSA private operation on many items of one key class, from encoded messages to checked
//! results.
//!
//! Encoded messages are also those of public operations.
//!
//! All numbers are secret. They are in flat buffers, one item after another, with as many limbs as
//! the class has, least significant limb first. The keys' [class](super::batch::KeyClass) and order
//! are public.

pub(super) mod blinding;
mod check;
mod crt;

use alloc::vec;
use alloc::vec::Vec;
use core::iter;

use batch_modexp_core::engine::{Engine, Moduli, SecretPowers};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::{Choice, CtEq, Limb};

use self::blinding::{BlindingNumbers, Operands};
use self::check::is_below;
use super::batch::{Batch, Key, Representatives, crt_values, d_less_1, moduli};
use super::error::Error;
use super::key::{Crt, KeyHandle, PublicKey};
use super::octets::{octets_to_limbs, write_octets};
use super::output::Slots;

/// Exponentiates on a backend. Its results are not trusted.
pub(super) type Exponentiate<'a> =
    &'a dyn Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

/// Computes the items of `batch` on the calling thread: exponentiations with `exponentiate`,
/// everything else on `engine`.
///
/// # Errors
///
/// [`Error::Rng`], and the error of `exponentiate`. An item that cannot be encoded, or whose result
/// is wrong, has its error in its slot.
pub(super) fn run(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    batch: Batch<'_, KeyHandle>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let encoded = EncodedItems::new(batch)?;
    let results = private_op(engine, exponentiate, &encoded)?;
    encoded.check(engine, &results, slots);
    Ok(())
}

/// Computes `ems[i]^d mod n` for each item, blinded if there are random numbers, and unchecked.
fn private_op(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    encoded: &EncodedItems<'_, KeyHandle>,
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let (class, keys) = (&encoded.batch.class, encoded.batch.keys);
    let blinded = encoded.blind(engine);
    let Operands { bases, factors } = blinded.unwrap_or_else(|| Operands::unblinded(&encoded.ems));
    // b^(d - 1)
    let powers = match class.prime {
        Some(prime) => {
            let keys: Vec<&Crt> = keys.iter().map(crt_values).collect();
            let moduli = crt::both(&keys, Crt::p, Crt::q);
            let exponents = crt::both(
                &keys,
                |key| key.dp_less_1.as_limbs(),
                |key| key.dq_less_1.as_limbs(),
            );
            let residues = crt::reduce(engine, &keys, &bases);
            let halves = powers(exponentiate, &moduli, &exponents, prime.bits, &residues)?;
            crt::recombine(engine, &keys, &halves, class.limbs())
        }
        None => {
            let exponents: Vec<_> = keys.iter().map(|key| d_less_1(key)).collect();
            powers(
                exponentiate,
                &moduli(keys),
                &exponents,
                class.n_width,
                &bases,
            )?
        }
    };
    // f b^(d - 1) = m^d
    Ok(engine.products(&moduli(keys), &powers, &factors))
}

/// `bases[i]^exponents[i] mod moduli[i]` by the backend.
fn powers(
    exponentiate: Exponentiate<'_>,
    moduli: Moduli<'_>,
    exponents: &[&[Limb]],
    exponent_bits: u32,
    bases: &[Limb],
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let mut powers = Secret::new(vec![Limb::ZERO; bases.len()]);
    exponentiate(SecretPowers {
        moduli,
        exponents,
        exponent_bits,
        bases,
        out: &mut powers,
    })?;
    Ok(powers)
}

/// Whether a source may make this number, for the modulus `n`.
fn is_accepted(number: &[Limb], n: &[Limb], accepted: Representatives) -> Choice {
    let is_below = is_below(number, n);
    match accepted {
        Representatives::Encodings | Representatives::BelowModulus => is_below,
        Representatives::Sp800_56b => {
            let (low, high) = (number[0], number.iter().zip(n).skip(1));
            // No bits but the lowest one: 0 and 1.
            let above_1 = high
                .clone()
                .fold(low & !Limb::ONE, |bits, (a, _)| bits | *a);
            // n is odd, so n - 1 differs from it in the lowest bit.
            let from_last = high.fold(low ^ n[0] ^ Limb::ONE, |bits, (a, b)| bits | (*a ^ *b));
            is_below & !above_1.ct_eq(&Limb::ZERO) & !from_last.ct_eq(&Limb::ZERO)
        }
    }
}

/// Encoded messages of a batch, and their blinding numbers if it is blinded. Wiped on drop.
///
/// For public operations an encoded message is the number to be raised to e.
pub(super) struct EncodedItems<'a, K: Key> {
    pub(super) batch: Batch<'a, K>,
    /// Items that could not be encoded, ascending. Computed as zeros.
    failed: Vec<(usize, Error)>,
    pub(super) ems: Secret<Vec<Limb>>,
    pub(super) blinding: Option<BlindingNumbers>,
}

impl<'a, K: Key> EncodedItems<'a, K> {
    /// Gets the encoded messages from the source, and draws blinding numbers if the batch is blinded.
    pub(super) fn new(batch: Batch<'a, K>) -> Result<Self, Error> {
        let (keys, limbs) = (batch.keys, batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut ems = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut failed = Vec::new();
        let accepted = batch.source.accepted();
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for ((item, key), em) in keys.iter().enumerate().zip(ems.chunks_exact_mut(limbs)) {
            let Some(position) = batch.position_with_key(item) else {
                failed.push((item, batch.fault(item)));
                continue;
            };
            let octets = &mut octets[..key.size()];
            let encoded = batch.source.encode(position, key, &mut randomness, octets);
            let encoded = encoded.and_then(|()| {
                octets_to_limbs(octets, em);
                // A check modulo p and q would not notice a number above n.
                match reveal(is_accepted(em, key.modulus().limbs, accepted)) {
                    true => Ok(()),
                    false => Err(accepted.error(octets.len())),
                }
            });
            match encoded {
                Ok(()) => (),
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => {
                    em.fill(Limb::ZERO);
                    failed.push((item, error.at(position)));
                }
            }
        }
        let blinding = match batch.is_blinded {
            true => Some(BlindingNumbers::draw(&batch.class, keys, &mut randomness)?),
            false => None,
        };
        Ok(Self {
            batch,
            failed,
            ems,
            blinding,
        })
    }

    /// Writes the results that have passed to their slots, decoded by the source.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one result for each item.
    fn write(self, results: &[Limb], passed: impl IntoIterator<Item = bool>, mut slots: Slots<'_>) {
        let Self { batch, failed, .. } = self;
        let (count, limbs) = (batch.keys.len(), batch.class.limbs());
        assert_eq!(results.len(), count * limbs, "a result for each item");
        assert_eq!(slots.len(), count, "a slot for each item");
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let mut failed = failed.into_iter().peekable();
        let items = batch.keys.iter().zip(results.chunks_exact(limbs));
        for ((item, (key, result)), passed) in items.enumerate().zip(passed) {
            if let Some((_, error)) = failed.next_if(|failed| failed.0 == item) {
                slots.fail(item, error);
                continue;
            }
            let Some(position) = batch.position_with_key(item).filter(|_| passed) else {
                slots.fail(item, batch.fault(item));
                continue;
            };
            let octets = &mut octets[..key.size()];
            write_octets(result, octets);
            slots.write(item, batch.source.output_len(key), |output| {
                let len = batch.source.decode(position, key, octets, output);
                len.map_err(|error| error.at(position))
            });
        }
    }
}

impl EncodedItems<'_, KeyHandle> {
    /// The bases and factors of blinded items: see [`blinding`].
    pub(super) fn blind(&self, engine: &dyn Engine) -> Option<Operands> {
        let (batch, blinding) = (&self.batch, self.blinding.as_ref()?);
        let blinded = blinding::blind(engine, &batch.class, batch.keys, &self.ems, blinding);
        Some(blinded)
    }

    /// Checks results against the encoded messages, and writes those that pass to their slots,
    /// decoded by the source. This is the only path from a private operation to the caller.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one result for each item.
    pub(super) fn check(self, engine: &dyn Engine, results: &[Limb], slots: Slots<'_>) {
        let masks = self.blinding.as_ref().map(|blinding| &blinding.masks[..]);
        let verdicts = check::verdicts(engine, &self.batch, &self.ems, results, masks);
        self.write(results, verdicts, slots);
    }
}

impl EncodedItems<'_, PublicKey> {
    /// Writes the powers of a public operation to their slots, decoded by the source. They are not
    /// checked.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one power for each item.
    pub(super) fn write_public(self, powers: &[Limb], slots: Slots<'_>) {
        self.write(powers, iter::repeat(true), slots);
    }
}

#[cfg(all(test, feature = "std"))]
pub(super) mod campaign;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
