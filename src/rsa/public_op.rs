//! The RSA public operation on many items: powers with the public exponents of their keys.
//!
//! Numbers are in flat buffers, as in the [private operation](super::private_op). The engine is
//! constant-time in the bases; each source states how it treats bases and powers.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::engine::Engine;
use batch_modexp_core::requests::{Exponent, Product};
use batch_modexp_core::secret::Secret;
use crypto_bigint::{BoxedUint, Limb};

use super::error::Error;
use super::key::PublicKey;
use super::octets::{octets_to_limbs, write_octets};
use super::output::Slots;
use super::private_op::class::{Key, KeyClass, Positions};
use super::private_op::{Randomness, Streams};

/// Provides bases, and receives their powers. Both methods are called from any thread.
pub(super) trait Source: Sync {
    /// Writes the base of the item at `position` of the caller's batch: a number below n, most
    /// significant octet first, as long as the modulus. The index in an error is ignored. If `randomness`
    /// fails, the whole batch fails.
    fn base(
        &self,
        position: usize,
        key: &PublicKey,
        randomness: &mut Randomness,
        base: &mut [u8],
    ) -> Result<(), Error>;

    /// The largest output of an item with this key, in octets.
    fn output_len(&self, key: &PublicKey) -> usize;

    /// Turns a power, as long as the modulus, into the caller's output, and returns its length. The
    /// power may be overwritten. The index in an error is ignored.
    fn output(
        &self,
        position: usize,
        key: &PublicKey,
        power: &mut [u8],
        output: &mut [u8],
    ) -> Result<usize, Error>;
}

/// Items with equally wide moduli and one exponent, grouped by key.
pub(super) struct PublicBatch<'a> {
    pub(super) class: KeyClass,
    pub(super) keys: &'a [&'a PublicKey],
    /// The caller's positions of the items of all classes.
    pub(super) positions: &'a Positions,
    /// The index of the first of these items among those of all classes.
    pub(super) first: usize,
    pub(super) source: &'a dyn Source,
    pub(super) streams: &'a Streams,
}

impl PublicBatch<'_> {
    /// The exponent of all keys; `None` without keys.
    pub(super) fn exponent(&self) -> Option<&BoxedUint> {
        self.keys.first().map(|key| key.exponent())
    }

    /// The caller's position of an item, unless a fault has changed it.
    fn position(&self, item: usize) -> Option<usize> {
        self.positions.of(self.first + item)
    }
}

/// Computes a range of items of `batch` with `engine` on the calling thread.
///
/// # Errors
///
/// [`Error::Rng`]. An item without a base or an output has its error in its slot.
pub(super) fn run(
    engine: &dyn Engine,
    batch: &PublicBatch<'_>,
    range: Range<usize>,
    slots: Slots<'_>,
) -> Result<(), Error> {
    let Some(exponent) = batch.exponent() else {
        return Ok(());
    };
    let bases = Bases::new(batch, range.clone())?;
    let moduli: Vec<_> = batch.keys[range].iter().map(|key| key.params()).collect();
    let mut powers = Secret::new(vec![Limb::ZERO; bases.numbers.len()]);
    engine.mul_public_power(Product {
        moduli: &moduli,
        exponent: Exponent::new(exponent),
        bases: &bases.numbers,
        factors: None,
        out: &mut powers,
        times_base: None,
    });
    bases.write_outputs(batch, &powers, slots);
    Ok(())
}

/// The bases of some items.
pub(super) struct Bases {
    items: Range<usize>,
    /// One number for each item, as wide as the moduli; any number for a failed item.
    pub(super) numbers: Secret<Vec<Limb>>,
    /// The items without a base, with their errors, in order.
    failed: Vec<(usize, Error)>,
}

impl Bases {
    /// Makes the bases of a range of items of `batch`.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`].
    pub(super) fn new(batch: &PublicBatch<'_>, items: Range<usize>) -> Result<Self, Error> {
        let (keys, limbs) = (&batch.keys[items.clone()], batch.class.limbs());
        let mut randomness = batch.streams.next();
        let mut numbers = Secret::new(vec![Limb::ZERO; keys.len() * limbs]);
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let mut failed = Vec::new();
        let each = items.clone().zip(keys);
        for ((item, key), base) in each.zip(numbers.chunks_exact_mut(limbs)) {
            let Some(position) = batch.position(item) else {
                failed.push((item, Error::Fault { index: item }));
                continue;
            };
            let octets = &mut octets[..key.octets()];
            match batch.source.base(position, key, &mut randomness, octets) {
                Ok(()) => octets_to_limbs(octets, base),
                Err(Error::Rng) => return Err(Error::Rng),
                Err(error) => failed.push((item, error.at(position))),
            }
        }
        Ok(Self {
            items,
            numbers,
            failed,
        })
    }

    /// Makes the outputs of these items of `batch` from the powers of their bases.
    pub(super) fn write_outputs(
        self,
        batch: &PublicBatch<'_>,
        powers: &[Limb],
        mut slots: Slots<'_>,
    ) {
        let (first, limbs) = (self.items.start, batch.class.limbs());
        let mut octets = Secret::new(vec![0; limbs * Limb::BYTES]);
        let mut failed = self.failed.into_iter().peekable();
        for (item, power) in self.items.zip(powers.chunks_exact(limbs)) {
            let (slot, key) = (item - first, batch.keys[item]);
            if let Some((_, error)) = failed.next_if(|failed| failed.0 == item) {
                slots.fail(slot, error);
                continue;
            }
            let Some(position) = batch.position(item) else {
                slots.fail(slot, Error::Fault { index: item });
                continue;
            };
            let octets = &mut octets[..key.octets()];
            write_octets(power, octets);
            slots.write(slot, batch.source.output_len(key), |output| {
                let len = batch.source.output(position, key, octets, output);
                len.map_err(|error| error.at(position))
            });
        }
    }
}
