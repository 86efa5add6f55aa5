//! One call: sorts items by their keys' classes, has a backend compute each class, and collects the outputs.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::secret::Secret;
use crypto_bigint::Limb;

use super::backend::{Items, RsaBackend};
use super::error::Error;
use super::key::KeyHandle;
use super::output::{Buffers, Outputs};
use super::private_op::class::{KeyClass, Positions, sort};
use super::private_op::{Batch, Source, Streams};

/// The key of each item.
#[derive(Clone, Copy)]
pub(super) enum Keys<'s, 'k> {
    /// One key for so many items.
    One(&'k KeyHandle, usize),
    Each(&'s [&'k KeyHandle]),
}

/// Runs private operations, one for each of `keys`, and returns the outputs of those that pass their check. With
/// `is_blinded` the bases are blinded, for which there must be `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn private_ops<B: RsaBackend + ?Sized>(
    backend: &B,
    keys: Keys<'_, '_>,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Secret<Outputs>, Error> {
    let Sorted {
        keys,
        positions,
        classes,
    } = keys.sorted();
    let size = |(class, range): &(KeyClass, Range<usize>)| {
        let octets = keys[range.clone()].first().map_or(0, |key| key.size());
        // Keys of one class may differ in length by some bits.
        let has_one_size = keys[range.clone()].iter().all(|key| key.size() == octets);
        let stride = if has_one_size {
            octets
        } else {
            class.limbs() * Limb::BYTES
        };
        (range.len(), stride)
    };
    let mut buffers = Buffers::new(classes.iter().map(size));
    for (index, (class, range)) in classes.into_iter().enumerate() {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: &positions,
            first: range.start,
            source,
            streams,
            is_blinded,
        };
        let done = backend.private_ops(Items::new(&batch, buffers.class(index)));
        if let Err(error) = done {
            // All numbers of a class are equally wide: what is wrong with one item is wrong with all.
            if error.index().is_none() {
                return Err(error);
            }
            let mut slots = buffers.class(index);
            for item in 0..range.len() {
                let position = positions.of(range.start + item).unwrap_or(item);
                slots.fail(item, error.clone().at(position));
            }
        }
    }
    Ok(buffers.finish(positions.items()))
}

/// The keys of all items, those of one class next to each other, and of one key among them.
struct Sorted<'s, 'k> {
    keys: Cow<'s, [&'k KeyHandle]>,
    positions: Positions,
    classes: Vec<(KeyClass, Range<usize>)>,
}

impl<'s, 'k> Keys<'s, 'k> {
    fn sorted(self) -> Sorted<'s, 'k> {
        let keys = match self {
            Self::One(_, 0) => &[][..],
            Self::One(key, count) => {
                return Sorted {
                    keys: Cow::Owned(vec![key; count]),
                    positions: Positions::Same,
                    classes: Vec::from([(KeyClass::of(key.parts()), 0..count)]),
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
