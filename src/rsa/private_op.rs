//! The RSA private operation on many items of one key class, from encoded messages to checked
//! results. A public operation differs only in its power, and is not checked.
//!
//! All numbers are secret. They are in flat buffers, one item after another, with as many limbs as
//! the class has, least significant limb first. The keys' [class](super::batch::KeyClass) and order
//! are public.

pub(super) mod blinding;
mod crt;

use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use batch_modexp_core::engine::{Comparison, Engine, Moduli, SecretPowers};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::Limb;

use self::blinding::{Blinded, BlindingNumbers};
use super::batch::{Batch, moduli};
use super::error::Error;
use super::key::Crt;
use super::limbs::{is_below, octets_to_limbs, write_octets};
use super::output::Slots;

/// Exponentiates on a backend. Its results are not trusted.
pub(super) type Exponentiate<'a> =
    &'a dyn Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

/// Computes the items of `batch` on the calling thread: secret exponentiations with `exponentiate`,
/// everything else on `engine`.
///
/// # Errors
///
/// [`Error::Rng`], and the error of `exponentiate`. An item that cannot be encoded, or whose result
/// is wrong, has its error in its slot.
pub(super) fn run(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    batch: Batch<'_>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let encoded = EncodedItems::new(batch)?;
    match batch.class.is_private {
        true => {
            let results = private_op(engine, exponentiate, &encoded)?;
            encoded.check(engine, &results, slots);
        }
        false => {
            let (n, e) = (moduli(batch.keys), batch.class.exponent());
            let results = engine.public_powers(&n, e, &encoded.ems);
            encoded.write_public(&results, slots);
        }
    }
    Ok(())
}

/// Computes `ems[i]^d mod n` for each item, blinded if there are random numbers, and unchecked.
fn private_op(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    encoded: &EncodedItems<'_>,
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let (class, keys) = (&encoded.batch.class, encoded.batch.keys);
    let n = moduli(keys);
    let Blinded { bases, factors } = encoded.blind(engine);
    // b^(d - 1)
    let powers = match class.prime {
        Some(prime) => {
            let keys: Vec<&Crt> = keys.iter().map(|key| key.crt()).collect();
            let primes = crt::both(&keys, Crt::p, Crt::q);
            let exponents = crt::both(
                &keys,
                |key| key.dp_less_1.as_limbs(),
                |key| key.dq_less_1.as_limbs(),
            );
            let residues = crt::reduce(engine, &keys, &bases);
            let halves = secret_powers(exponentiate, &primes, &exponents, prime.bits, &residues)?;
            crt::recombine(engine, &keys, &halves, class.limbs())
        }
        None => {
            let exponents: Vec<_> = keys.iter().map(|key| key.d_less_1()).collect();
            secret_powers(exponentiate, &n, &exponents, class.n_width, &bases)?
        }
    };
    // f b^(d - 1) = m^d
    Ok(engine.products(&n, &powers, &factors))
}

/// `bases[i]^exponents[i] mod moduli[i]` by the backend.
fn secret_powers(
    exponentiate: Exponentiate<'_>,
    moduli: Moduli<'_>,
    exponents: &[&[Limb]],
    exponent_bits: u32,
    bases: &[Limb],
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let mut out = Secret::new(vec![Limb::ZERO; bases.len()]);
    exponentiate(SecretPowers {
        moduli,
        exponents,
        exponent_bits,
        bases,
        out: &mut out,
    })?;
    Ok(out)
}

/// Encoded messages of a batch, and their blinding numbers if it is blinded. Wiped on drop.
///
/// For public operations an encoded message is the number to be raised to e.
pub(super) struct EncodedItems<'a> {
    pub(super) batch: Batch<'a>,
    /// For each item why it could not be encoded. Such items are computed as zeros.
    errors: Vec<Option<Error>>,
    pub(super) ems: Secret<Vec<Limb>>,
    pub(super) blinding: Option<BlindingNumbers>,
}

impl<'a> EncodedItems<'a> {
    /// Gets the encoded messages from the source, and draws blinding numbers if the batch is blinded.
    pub(super) fn new(batch: Batch<'a>) -> Result<Self, Error> {
        let (keys, limbs) = (batch.keys, batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut ems = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut errors = Vec::with_capacity(keys.len());
        let accepted = batch.source.accepted();
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for ((item, key), em) in keys.iter().enumerate().zip(ems.chunks_exact_mut(limbs)) {
            let Some(position) = batch.position_with_key(item) else {
                errors.push(Some(batch.fault(item)));
                continue;
            };
            let octets = &mut octets[..key.size()];
            let encoded = batch.source.encode(position, &mut randomness, octets);
            let encoded = encoded.and_then(|()| {
                octets_to_limbs(octets, em);
                // A check modulo p and q would not notice a number above n.
                match reveal(accepted.includes(em, key.n().limbs)) {
                    true => Ok(()),
                    false => Err(accepted.error(octets.len())),
                }
            });
            errors.push(match encoded {
                Ok(()) => None,
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => {
                    em.fill(Limb::ZERO);
                    Some(error.at(position))
                }
            });
        }
        let blinding = match batch.is_blinded {
            true => Some(BlindingNumbers::draw(&batch.class, keys, &mut randomness)?),
            false => None,
        };
        Ok(Self {
            batch,
            errors,
            ems,
            blinding,
        })
    }

    /// Writes the results that have passed to their slots, decoded by the source.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one result for each item.
    fn write(self, results: &[Limb], passed: &[bool], mut slots: Slots<'_>) {
        let Self { batch, errors, .. } = self;
        let (count, limbs) = (batch.keys.len(), batch.class.limbs());
        assert_eq!(results.len(), count * limbs, "a result for each item");
        assert_eq!(slots.len(), count, "a slot for each item");
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let items = batch.keys.iter().zip(results.chunks_exact(limbs));
        let items = items.zip(errors).zip(passed).enumerate();
        for (item, (((key, result), error), passed)) in items {
            if let Some(error) = error {
                slots.fail(item, error);
                continue;
            }
            let Some(position) = batch.position_with_key(item).filter(|_| *passed) else {
                slots.fail(item, batch.fault(item));
                continue;
            };
            let octets = &mut octets[..key.size()];
            write_octets(result, octets);
            slots.write(item, batch.source.output_len(key), |output| {
                let len = batch.source.decode(position, octets, output);
                len.map_err(|error| error.at(position))
            });
        }
    }
}

impl EncodedItems<'_> {
    /// The bases and factors of the items: see [`blinding`].
    pub(super) fn blind(&self, engine: &dyn Engine) -> Blinded {
        let (class, n) = (&self.batch.class, moduli(self.batch.keys));
        Blinded::new(engine, &n, class.e, &self.ems, self.blinding.as_ref())
    }

    /// Checks results of private operations against the encoded messages, and writes those that have
    /// passed to their slots, decoded by the source. This is the only path from a private operation
    /// to the caller.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one result for each item.
    pub(super) fn check(self, engine: &dyn Engine, results: &[Limb], slots: Slots<'_>) {
        let passed = self.verdicts(engine, results);
        self.write(results, &passed, slots);
    }

    /// Writes results of public operations, unchecked, to their slots, decoded by the source.
    ///
    /// # Panics
    ///
    /// If a key is private, or there is not one slot and one result for each item.
    pub(super) fn write_public(self, results: &[Limb], slots: Slots<'_>) {
        let mut runs = self.batch.keys.chunk_by(|a, b| ptr::eq(*a, *b));
        let are_public = runs.all(|run| run[0].private.is_none());
        assert!(are_public, "results of private keys must be checked");
        let passed = vec![true; slots.len()];
        self.write(results, &passed, slots);
    }

    /// Whether each result is below its modulus and its power of e equals the encoded message of
    /// its item.
    ///
    /// The encoded messages are those that the source made, not copies that a backend may have
    /// touched. The power is computed on the calling thread by an engine of this crate, not by the
    /// backend.
    ///
    /// It uses numbers of the key's record, so no result passes under a record that differs from
    /// the imported one. With SIMD lanes and keys with primes, the power is computed modulo p and
    /// q, which takes less time than modulo n. Blinded items have masks: see [`Comparison`].
    fn verdicts(&self, engine: &dyn Engine, results: &[Limb]) -> Vec<bool> {
        let (class, keys) = (&self.batch.class, self.batch.keys);
        let crts: Vec<&Crt> = match class.prime {
            Some(_) => keys.iter().map(|key| key.crt()).collect(),
            None => Vec::new(),
        };
        let p: Vec<_> = crts.iter().map(|key| key.p()).collect();
        let q: Vec<_> = crts.iter().map(|key| key.q()).collect();
        let agree = engine.powers_agree(
            &moduli(keys),
            &Comparison {
                factors: [&p, &q],
                exponent: class.exponent(),
                bases: results,
                expected: &self.ems,
                masks: self.blinding.as_ref().map(|blinding| &blinding.masks[..]),
            },
        );
        let mut items = results.chunks_exact(class.limbs()).zip(agree);
        let mut verdicts = Vec::with_capacity(keys.len());
        for run in keys.chunk_by(|a, b| ptr::eq(*a, *b)) {
            let key = run[0];
            let n = key.n().limbs;
            let items = items.by_ref().take(run.len());
            let passed = items.map(|(result, agree)| reveal(agree & is_below(result, n)));
            let first = verdicts.len();
            verdicts.extend(passed);
            // Last, so that it covers the computation above.
            if !key.is_intact() {
                verdicts[first..].fill(false);
            }
        }
        verdicts
    }
}

#[cfg(all(test, feature = "std"))]
pub(super) mod campaign;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
