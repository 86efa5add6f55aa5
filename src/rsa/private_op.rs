//! The RSA private operation on many items of one key class, from encoded messages to checked
//! results.
//!
//! Batches, their sources and encoded messages are also those of the [public
//! operation](super::public_op).
//!
//! All numbers are secret. They are in flat buffers, one item after another, with as many limbs as
//! the class has, least significant limb first. The keys' [class](KeyClass) and order are public.

pub(super) mod blinding;
mod check;
pub(super) mod class;
mod crt;
mod random;

use alloc::vec;
use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

use batch_modexp_core::engine::{Engine, SecretPowers};
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::Limb;

use self::blinding::{Blinded, Blinds};
pub(super) use self::check::ct_eq;
use self::check::is_below;
use self::class::{Key, KeyClass, Positions, PrimeClass};
pub(super) use self::random::{Randomness, Streams};
use super::error::Error;
use super::key::{Crt, KeyHandle, PublicKey};
use super::octets::{octets_to_limbs, write_octets};
use super::output::Slots;

/// Exponentiates on a backend. Its results are not trusted.
pub(super) type Exponentiate<'a> =
    &'a dyn Fn(SecretPowers<'_>) -> Result<(), batch_modexp_core::Error>;

/// Provides encoded messages, and receives the results of private or public operations with keys
/// `K`. All methods are called from any thread, and again for an item that is recomputed after a
/// device was lost. The index in an error is ignored; the caller sets it.
pub(super) trait Source<K: Key>: Sync {
    /// Whether `key` is the caller's key for the item at `position` of the caller's batch.
    fn has_key(&self, position: usize, key: &K) -> bool;

    /// Writes the encoded message of the item at `position`: a number below n, most significant
    /// octet first, as long as the modulus. Any other number fails with [`Error::Fault`]. If
    /// `randomness` fails, the whole batch fails.
    fn encode(
        &self,
        position: usize,
        key: &K,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error>;

    /// The largest output of an item with this key, in octets. By default that of a result.
    fn output_len(&self, key: &K) -> usize {
        key.size()
    }

    /// Turns a result, as long as the modulus, into the caller's output, and returns its length.
    /// The result may be overwritten. By default the output is the result.
    fn decode(
        &self,
        position: usize,
        key: &K,
        result: &mut [u8],
        output: &mut [u8],
    ) -> Result<usize, Error> {
        let _ = (position, key);
        output.copy_from_slice(result);
        Ok(result.len())
    }
}

/// Items with keys of one class, grouped by key. A range of them is a batch too.
pub(super) struct Batch<'a, K: Key> {
    pub(super) class: KeyClass,
    pub(super) keys: &'a [&'a K],
    /// The caller's positions of the items of all classes.
    pub(super) positions: &'a Positions,
    /// The index of the first of these items among those of all classes.
    pub(super) first: usize,
    pub(super) source: &'a dyn Source<K>,
    pub(super) streams: &'a Streams,
    pub(super) is_blinded: bool,
}

impl<K: Key> Clone for Batch<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for Batch<'_, K> {}

impl<K: Key> Batch<'_, K> {
    /// A range of the items.
    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self {
            keys: &self.keys[range.clone()],
            first: self.first + range.start,
            ..*self
        }
    }

    /// The caller's position of an item, if the item has the caller's key for that position. So no
    /// item is signed with a wrong key, even if a fault changes the list of keys or positions.
    fn position_with_key(&self, item: usize) -> Option<usize> {
        let position = self.positions.of(self.first + item)?;
        let has_key = self.source.has_key(position, self.keys[item]);
        has_key.then_some(position)
    }

    /// The index in the error of an item without a result.
    pub(super) fn error_index(&self, item: usize) -> usize {
        let number = self.first + item;
        // The error of an item without a position is never returned to a caller.
        self.positions.of(number).unwrap_or(number)
    }

    fn fault(&self, item: usize) -> Error {
        let index = self.error_index(item);
        Error::Fault { index }
    }
}

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
    let encoded = Encoded::new(batch)?;
    let results = private_op(engine, exponentiate, &encoded)?;
    encoded.check(engine, &results, slots);
    Ok(())
}

/// Computes `ems[i]^d mod n` for each item, blinded if there are random numbers, and unchecked.
fn private_op(
    engine: &dyn Engine,
    exponentiate: Exponentiate<'_>,
    encoded: &Encoded<'_, KeyHandle>,
) -> Result<Secret<Vec<Limb>>, batch_modexp_core::Error> {
    let (class, keys) = (&encoded.batch.class, encoded.batch.keys);
    // Blinded, b = m r^e and f = m r^(e - 1). Otherwise both are m.
    let Blinded { bases, factors } = encoded.blind(engine);
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
    let exponents: Vec<_> = crt::both(
        &keys,
        |crt| crt.dp_less_1.as_limbs(),
        |crt| crt.dq_less_1.as_limbs(),
    );
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
        moduli: &class::moduli(keys),
        exponents: &exponents,
        exponent_bits: class.n_width,
        bases,
        out: &mut powers,
    })?;
    Ok(powers)
}

/// Encoded messages of a batch, and their blinds if it is blinded. Wiped on drop.
///
/// For public operations an encoded message is the number to be raised to e.
pub(super) struct Encoded<'a, K: Key> {
    pub(super) batch: Batch<'a, K>,
    /// Items that could not be encoded, ascending. Computed as zeros.
    failed: Vec<(usize, Error)>,
    pub(super) ems: Secret<Vec<Limb>>,
    pub(super) blinds: Option<Blinds>,
}

impl<'a, K: Key> Encoded<'a, K> {
    /// Gets the encoded messages from the source, and draws blinds if the batch is blinded.
    pub(super) fn new(batch: Batch<'a, K>) -> Result<Self, Error> {
        let (keys, limbs) = (batch.keys, batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut ems = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut failed = Vec::new();
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        for ((item, key), em) in keys.iter().enumerate().zip(ems.chunks_exact_mut(limbs)) {
            let Some(position) = batch.position_with_key(item) else {
                failed.push((item, batch.fault(item)));
                continue;
            };
            let octets = &mut octets[..key.size()];
            match batch.source.encode(position, key, &mut randomness, octets) {
                Ok(()) => {
                    octets_to_limbs(octets, em);
                    // No source of this crate makes such a number. A check modulo p and q would not
                    // notice it.
                    if !reveal(is_below(em, key.modulus().limbs)) {
                        em.fill(Limb::ZERO);
                        failed.push((item, batch.fault(item)));
                    }
                }
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => failed.push((item, error.at(position))),
            }
        }
        let blinds = match batch.is_blinded {
            true => Some(Blinds::draw(keys, limbs, &mut randomness)?),
            false => None,
        };
        Ok(Self {
            batch,
            failed,
            ems,
            blinds,
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

impl Encoded<'_, KeyHandle> {
    /// The operands of the exponentiation: see [`blinding`].
    pub(super) fn blind(&self, engine: &dyn Engine) -> Blinded {
        match &self.blinds {
            Some(blinds) => Blinded::new(engine, self.batch.keys, &self.ems, blinds),
            None => Blinded::plain(&self.ems),
        }
    }

    /// Checks results against the encoded messages, and writes those that pass to their slots,
    /// decoded by the source. This is the only path from a private operation to the caller.
    ///
    /// # Panics
    ///
    /// If there is not one slot and one result for each item.
    pub(super) fn check(self, engine: &dyn Engine, results: &[Limb], slots: Slots<'_>) {
        let (class, keys) = (&self.batch.class, self.batch.keys);
        let masks = self.blinds.as_ref().map(|blinds| &blinds.masks[..]);
        let verdicts = check::verdicts(engine, class, keys, &self.ems, results, masks);
        self.write(results, verdicts, slots);
    }
}

impl Encoded<'_, PublicKey> {
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
