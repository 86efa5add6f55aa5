//! Computes a batch: sorts its items by key class, and gives each class to a backend.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::secret::Secret;

use super::backend::{Items, RsaBackend};
use super::batch::{Batch, KeyClass, Positions, Source};
use super::error::Error;
use super::key::KeyParts;
use super::output::{Outputs, Size};
use super::random::Streams;

/// Computes one operation for each of `count` items: private or public ones, as the keys of the
/// source are. Returns the outputs that `source` makes of the results; those of private operations
/// have passed their check.
///
/// `is_blinded` blinds the bases of private operations and requires `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn compute<B: RsaBackend + ?Sized>(
    backend: &B,
    count: usize,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Secret<Outputs>, Error> {
    let keys: Vec<&KeyParts> = (0..count).map(|position| source.key(position)).collect();
    let (positions, classes) = sort(&keys);
    let keys = match &positions {
        Positions::Same => keys,
        Positions::Sorted([positions, _]) => positions.iter().map(|&i| keys[i]).collect(),
    };
    let size = |(_, range): &(KeyClass<'_>, Range<usize>)| {
        // Keys of one class may differ in length by some bits.
        let lens = keys[range.clone()].iter().map(|key| source.output_len(key));
        Size {
            count: range.len(),
            max_len: lens.max().unwrap_or(0),
        }
    };
    let sizes: Vec<Size> = classes.iter().map(size).collect();
    let mut outputs = Outputs::new(&sizes);
    for ((class, range), mut slots) in classes.into_iter().zip(outputs.slots(&sizes)) {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: &positions,
            first: range.start,
            source,
            streams,
            is_blinded,
        };
        match backend.compute(Items::new(batch, slots.reborrow())) {
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
    outputs.put_in_order(&sizes, &positions);
    Ok(outputs)
}

/// Sorts items by key: returns their positions, and the range of each class.
///
/// Items of one key are adjacent, because a backend prepares each modulus once for a run.
pub(super) fn sort<'a>(keys: &[&'a KeyParts]) -> (Positions, Vec<(KeyClass<'a>, Range<usize>)>) {
    // Sorts runs of items with one key, of which there are often few.
    let mut start = 0;
    let mut runs: Vec<_> = keys
        .chunk_by(|a, b| ptr::eq(*a, *b))
        .map(|run| {
            start += run.len();
            let class = run[0].class();
            (class, ptr::from_ref(run[0]), start - run.len(), run.len())
        })
        .collect();
    if let [run] = &runs[..] {
        return (Positions::Same, Vec::from([(run.0, 0..run.3)]));
    }
    runs.sort_unstable();

    let mut positions = Vec::with_capacity(keys.len());
    let mut classes = Vec::new();
    for runs in runs.chunk_by(|a, b| a.0 == b.0) {
        let first = positions.len();
        positions.extend(runs.iter().flat_map(|run| run.2..run.2 + run.3));
        classes.push((runs[0].0, first..positions.len()));
    }
    let copy = positions.clone();
    (Positions::Sorted([positions, copy]), classes)
}
