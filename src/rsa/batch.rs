//! One call on a batch: sorts items by key class, has a backend compute each class, and collects
//! the outputs.

use alloc::borrow::Cow;

use batch_modexp_core::secret::Secret;

use super::backend::{Items, Operations, RsaBackend};
use super::error::Error;
use super::key::{KeyHandle, PublicKey};
use super::output::{Buffers, Outputs, Size, Slots};
use super::private_op::class::{Key, Positions, sort};
use super::private_op::{Batch, Source, Streams};

/// Runs private operations, one for each of `keys`, and returns the outputs that pass their check.
/// `is_blinded` blinds the bases and requires `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn private_ops<B: RsaBackend + ?Sized>(
    backend: &B,
    keys: &[&KeyHandle],
    source: &impl Source<KeyHandle>,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Secret<Outputs>, Error> {
    each_class(keys, source, streams, is_blinded, |batch, slots| {
        backend.compute(Items::new(Operations::Private(batch), slots))
    })
}

/// Runs public operations, one for each of `keys`, and returns the outputs that `source` makes of
/// the results.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn public_ops<B: RsaBackend + ?Sized>(
    backend: &B,
    keys: &[&PublicKey],
    source: &impl Source<PublicKey>,
    streams: &Streams,
) -> Result<Secret<Outputs>, Error> {
    each_class(keys, source, streams, false, |batch, slots| {
        backend.compute(Items::new(Operations::Public(batch), slots))
    })
}

/// Sorts items by class, and has `compute` fill the slots of each class.
fn each_class<K: Key>(
    keys: &[&K],
    source: &impl Source<K>,
    streams: &Streams,
    is_blinded: bool,
    compute: impl Fn(Batch<'_, K>, Slots<'_>) -> Result<(), Error>,
) -> Result<Secret<Outputs>, Error> {
    let (positions, classes) = sort(keys);
    let keys = match &positions {
        Positions::Same => Cow::Borrowed(keys),
        Positions::Sorted([positions, _]) => positions.iter().map(|&i| keys[i]).collect(),
    };
    let sizes = classes.iter().map(|(_, range)| {
        // Keys of one class may differ in length by some bits.
        let lens = keys[range.clone()].iter().map(|key| source.output_len(key));
        Size {
            count: range.len(),
            max_len: lens.max().unwrap_or(0),
        }
    });
    let mut buffers = Buffers::new(sizes.collect());
    for ((class, range), mut slots) in classes.into_iter().zip(buffers.slots()) {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: &positions,
            first: range.start,
            source,
            streams,
            is_blinded,
        };
        match compute(batch, slots.reborrow()) {
            // A backend's error about one item concerns its width. All numbers of a class are
            // equally wide, so every item of the class gets it.
            Err(error) if error.index().is_some() => {
                for item in 0..range.len() {
                    slots.fail(item, error.clone().at(batch.error_index(item)));
                }
            }
            result => result?,
        }
    }
    Ok(buffers.finish(&positions))
}
