//! One call on a batch: sorts items by key class, has a backend compute each class, and collects
//! the outputs.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::secret::Secret;

use super::backend::{Items, Operations, RsaBackend};
use super::error::Error;
use super::key::{KeyHandle, PublicKey};
use super::output::{Buffers, Outputs, Slots};
use super::private_op::class::{Key, KeyClass, Positions, sort};
use super::private_op::{Batch, Source, Streams};
use super::public_op::{self, PublicBatch};

/// The key of each item.
pub(super) enum Keys<'s, 'k, K> {
    /// One key for `count` items; no grouping needed.
    One(&'k K, usize),
    Each(&'s [&'k K]),
}

/// Runs private operations, one for each of `keys`, and returns the outputs that pass their check.
/// `is_blinded` blinds the bases and requires `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn private_ops<B: RsaBackend + ?Sized>(
    backend: &B,
    keys: Keys<'_, '_, KeyHandle>,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Secret<Outputs>, Error> {
    let sorted = keys.sorted();
    let compute = |class: Class<'_, KeyHandle>, slots: Slots<'_>| {
        let batch = Batch {
            class: class.class,
            keys: class.keys,
            positions: class.positions,
            first: class.first,
            source,
            streams,
            is_blinded,
        };
        backend.compute(Items::new(Operations::Private(&batch), slots))
    };
    sorted.each_class(KeyHandle::size, compute)
}

/// Runs public operations, one for each of `keys`, and returns the outputs that `source` makes of
/// the results.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn public_ops<B: RsaBackend + ?Sized>(
    backend: &B,
    keys: Keys<'_, '_, PublicKey>,
    source: &dyn public_op::Source,
    streams: &Streams,
) -> Result<Secret<Outputs>, Error> {
    let sorted = keys.sorted();
    let compute = |class: Class<'_, PublicKey>, slots: Slots<'_>| {
        let batch = PublicBatch {
            class: class.class,
            keys: class.keys,
            positions: class.positions,
            first: class.first,
            source,
            streams,
        };
        backend.compute(Items::new(Operations::Public(&batch), slots))
    };
    sorted.each_class(|key| source.output_len(key), compute)
}

/// The keys of all items, grouped by class and, within a class, by key.
struct Sorted<'s, 'k, K> {
    keys: Cow<'s, [&'k K]>,
    positions: Positions,
    classes: Vec<(KeyClass, Range<usize>)>,
}

/// The items of one class.
struct Class<'a, K> {
    class: KeyClass,
    keys: &'a [&'a K],
    positions: &'a Positions,
    /// The index of the first of these items among those of all classes.
    first: usize,
}

impl<'s, 'k, K: Key> Keys<'s, 'k, K> {
    fn sorted(self) -> Sorted<'s, 'k, K> {
        let keys = match self {
            Self::One(_, 0) => &[][..],
            Self::One(key, count) => {
                return Sorted {
                    keys: Cow::Owned(vec![key; count]),
                    positions: Positions::Same,
                    classes: Vec::from([(key.class(), 0..count)]),
                };
            }
            Self::Each(keys) => keys,
        };
        let (positions, classes) = sort(keys);
        let keys = match &positions {
            Positions::Same => Cow::Borrowed(keys),
            Positions::Sorted([positions, _]) => positions.iter().map(|&i| keys[i]).collect(),
        };
        Sorted {
            keys,
            positions,
            classes,
        }
    }
}

impl<K: Key> Sorted<'_, '_, K> {
    /// Has `compute` fill the slots of each class. `output_len` bounds the octets of an item's
    /// output.
    fn each_class(
        &self,
        output_len: impl Fn(&K) -> usize,
        compute: impl Fn(Class<'_, K>, Slots<'_>) -> Result<(), Error>,
    ) -> Result<Secret<Outputs>, Error> {
        let size = |(_, range): &(KeyClass, Range<usize>)| {
            // Keys of one class may differ in length by some bits.
            let lens = self.keys[range.clone()].iter().map(|key| output_len(key));
            (range.len(), lens.max().unwrap_or(0))
        };
        let mut buffers = Buffers::new(self.classes.iter().map(size));
        for (index, (class, range)) in self.classes.iter().enumerate() {
            let class = Class {
                class: *class,
                keys: &self.keys[range.clone()],
                positions: &self.positions,
                first: range.start,
            };
            if let Err(error) = compute(class, buffers.class(index)) {
                // A backend's error about one item concerns its width. All numbers of a class are equally
                // wide, so every item of the class gets it.
                if error.index().is_none() {
                    return Err(error);
                }
                let mut slots = buffers.class(index);
                for item in 0..range.len() {
                    let position = self.positions.of(range.start + item).unwrap_or(item);
                    slots.fail(item, error.clone().at(position));
                }
            }
        }
        Ok(buffers.finish(self.positions.items()))
    }
}
