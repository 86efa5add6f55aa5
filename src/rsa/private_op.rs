//! The RSA private operation on many items of one key class, from encoded messages to checked results.
//!
//! All numbers are in flat buffers, those of all items one after the other, each as many limbs long as the class says,
//! least significant limb first. They are secret; the keys' [class](KeyClass) and order are public.

pub(super) mod blinding;
mod check;
pub(super) mod class;
mod crt;
mod random;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::requests::SecretPowers;
use batch_modexp_core::secret::Secret;
use crypto_bigint::Limb;

use self::blinding::{Blinded, Blinds};
pub(super) use self::check::ct_eq;
use self::class::{KeyClass, Positions, PrimeClass};
pub(super) use self::random::{Randomness, Streams};
use super::error::Error;
use super::key::{Crt, KeyHandle};
use super::octets::{octets_to_limbs, write_octets};
use super::output::Slots;

/// Exponentiates on a backend. Nobody trusts what comes back.
pub(super) type Exponentiate<'a> =
    &'a dyn Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

/// Where encoded messages come from, and what becomes of the results.
pub(super) trait Source: Sync {
    /// Whether `key` is the one that the caller gave for the item at `position` of its batch.
    fn has_key(&self, position: usize, key: &KeyHandle) -> bool;

    /// Writes the encoded message of the item at `position` of the caller's batch: a number below n, most
    /// significant octet first, as many octets as the modulus has. An item that cannot be encoded has an error
    /// of its own, with any index; but if `randomness` fails, the whole batch does.
    ///
    /// Called from any thread, and more than once for an item that is computed again after a device was lost.
    fn encode(
        &self,
        position: usize,
        key: &KeyHandle,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error>;

    /// Makes the caller's output of a result that has passed its check, in place, and returns its length in octets. By default
    /// the output is the result. An error has the position as its index.
    ///
    /// Called from any thread.
    fn decode(&self, position: usize, key: &KeyHandle, result: &mut [u8]) -> Result<usize, Error> {
        let _ = (position, key);
        Ok(result.len())
    }
}

/// Items whose keys are of one class, those of one key next to each other.
pub(super) struct Batch<'a> {
    pub(super) class: KeyClass,
    pub(super) keys: &'a [&'a KeyHandle],
    /// The positions in the caller's batch of the items of all classes.
    pub(super) positions: &'a Positions,
    /// The number of the first item here among those of all classes.
    pub(super) first: usize,
    pub(super) source: &'a dyn Source,
    pub(super) streams: &'a Streams,
    pub(super) is_blinded: bool,
}

impl Batch<'_> {
    /// The position of an item in the caller's batch, if the item has the key that the caller gave for that position. So no
    /// key signs what another one should, even if a fault has struck the list of keys or positions.
    fn position_with_key(&self, item: usize) -> Option<usize> {
        let position = self.positions.of(self.first + item)?;
        let has_key = self.source.has_key(position, self.keys[item]);
        has_key.then_some(position)
    }

    /// The error of an item without a result.
    fn fault(&self, item: usize) -> Error {
        let number = self.first + item;
        // Nobody gets the error of an item without a position.
        let index = self.positions.of(number).unwrap_or(number);
        Error::Fault { index }
    }
}

/// Computes a range of the items of `batch` on the calling thread: the exponentiations by `exponentiate`, everything else on
/// `engine`.
///
/// # Errors
///
/// [`Error::Rng`], and the error of `exponentiate`. An item that cannot be encoded or whose result is wrong has the error in its
/// slot.
pub(super) fn run(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    batch: &Batch<'_>,
    range: Range<usize>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let encoded = Encoded::new(batch, range)?;
    let keys = encoded.keys(batch);
    let results = private_op(engine, exponentiate, &batch.class, keys, &encoded)?;
    encoded.check(engine, batch, &results, slots);
    Ok(())
}

/// `ems[i]^d mod n` of each item, blinded if there are random numbers, and not yet checked.
fn private_op(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    class: &KeyClass,
    keys: &[&KeyHandle],
    encoded: &Encoded,
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    // b = m r^e and f = m r^(e - 1); without blinding m and m.
    let Blinded { bases, factors } = encoded.blind(engine, keys);
    // b^(d - 1)
    let powers = match class.prime {
        Some(prime) => modulo_primes(engine, exponentiate, class, prime, keys, &bases)?,
        None => modulo_n(exponentiate, class, keys, &bases)?,
    };
    // f b^(d - 1) = m^d
    Ok(blinding::unblind(engine, keys, &powers, &factors))
}

/// `bases[i]^(d - 1) mod n` by the Chinese remainder theorem (RFC 8017, section 5.2.1, step 2.b).
fn modulo_primes(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    class: &KeyClass,
    prime: PrimeClass,
    keys: &[&KeyHandle],
    bases: &[Limb],
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let keys: Vec<&Crt> = keys.iter().map(class::crt).collect();
    let residues = crt::reduce(engine, &keys, bases);
    let moduli: Vec<_> = crt::both(&keys, Crt::p, Crt::q);
    let exponents: Vec<_> = crt::both(&keys, |crt| &*crt.dp_less_1, |crt| &*crt.dq_less_1);
    let mut halves = Secret::new(vec![Limb::ZERO; residues.len()]);
    exponentiate(SecretPowers {
        moduli: &moduli,
        exponents: &exponents,
        exponent_bits: prime.bits,
        bases: &residues,
        out: &mut halves,
    })?;
    Ok(crt::recombine(engine, &keys, &halves, class.limbs()))
}

/// `bases[i]^(d - 1) mod n`, for keys without CRT values.
fn modulo_n(
    exponentiate: Exponentiate<'_>,
    class: &KeyClass,
    keys: &[&KeyHandle],
    bases: &[Limb],
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let exponents: Vec<_> = keys.iter().map(|key| class::d_less_1(key)).collect();
    let mut powers = Secret::new(vec![Limb::ZERO; bases.len()]);
    exponentiate(SecretPowers {
        moduli: &blinding::moduli(keys),
        exponents: &exponents,
        exponent_bits: class.n_width,
        bases,
        out: &mut powers,
    })?;
    Ok(powers)
}

/// The encoded messages of a range of items, and the random numbers that blind them. Wiped on drop.
pub(super) struct Encoded {
    /// The items of the batch.
    pub(super) range: Range<usize>,
    /// Items that could not be encoded, counted in the range, ascending. They are computed as zeros.
    failed: Vec<(usize, Error)>,
    pub(super) ems: Secret<Vec<Limb>>,
    pub(super) blinds: Option<Blinds>,
}

impl Encoded {
    /// Asks the source for encoded messages, and draws random numbers if the batch is blinded.
    pub(super) fn new(batch: &Batch<'_>, range: Range<usize>) -> Result<Self, Error> {
        let (keys, limbs) = (&batch.keys[range.clone()], batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut ems = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut failed = Vec::new();
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for ((i, key), em) in keys.iter().enumerate().zip(ems.chunks_exact_mut(limbs)) {
            let Some(position) = batch.position_with_key(range.start + i) else {
                failed.push((i, batch.fault(range.start + i)));
                continue;
            };
            let octets = &mut octets[..key.size()];
            match batch.source.encode(position, key, &mut randomness, octets) {
                Ok(()) => octets_to_limbs(octets, em),
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => failed.push((i, error.at(position))),
            }
        }
        let blinds = match batch.is_blinded {
            true => Some(Blinds::draw(keys, limbs, &mut randomness)?),
            false => None,
        };
        Ok(Self {
            range,
            failed,
            ems,
            blinds,
        })
    }

    pub(super) fn keys<'a>(&self, batch: &Batch<'a>) -> &'a [&'a KeyHandle] {
        &batch.keys[self.range.clone()]
    }

    /// The items of the exponentiation: see [`blinding`].
    pub(super) fn blind(&self, engine: &dyn Engine, keys: &[&KeyHandle]) -> Blinded {
        match &self.blinds {
            Some(blinds) => Blinded::new(engine, keys, &self.ems, blinds),
            None => Blinded::plain(&self.ems),
        }
    }

    /// Checks results against the encoded messages, and writes those that pass to their slots, as the source decodes them.
    /// No other way leads from a result to the caller.
    ///
    /// # Panics
    ///
    /// If there is not a slot and a result for each item.
    pub(super) fn check(
        self,
        engine: &dyn Engine,
        batch: &Batch<'_>,
        results: &[Limb],
        mut slots: Slots<'_>,
    ) {
        let (keys, limbs) = (self.keys(batch), batch.class.limbs());
        assert_eq!(results.len(), keys.len() * limbs, "a result for each item");
        assert_eq!(slots.len(), keys.len(), "a slot for each item");
        let masks = self.blinds.as_ref().map(|blinds| &blinds.masks[..]);
        let verdicts = check::verdicts(engine, &batch.class, keys, &self.ems, results, masks);
        let mut failed = self.failed.into_iter().peekable();
        let items = keys.iter().zip(results.chunks_exact(limbs)).zip(verdicts);
        for (i, ((key, result), passed)) in items.enumerate() {
            if let Some((_, error)) = failed.next_if(|failed| failed.0 == i) {
                slots.fail(i, error);
                continue;
            }
            let number = self.range.start + i;
            match batch.position_with_key(number).filter(|_| passed) {
                Some(position) => slots.write(i, key.size(), |octets| {
                    write_octets(result, octets);
                    batch.source.decode(position, key, octets)
                }),
                None => slots.fail(i, batch.fault(number)),
            }
        }
    }
}

#[cfg(all(test, feature = "std"))]
pub(super) mod campaign;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
