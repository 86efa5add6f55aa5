//! Computes a batch: sorts its items by key class, gives each class to a backend, and keeps the
//! outputs.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::secret::Secret;
use zeroize::Zeroize;

use super::backend::RsaBackend;
use super::batch::{Batch, Items, KeyClass, Positions, Source};
use super::error::Error;
use super::key::KeyParts;
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
    let lens = keys.iter().map(|key| source.output_len(key));
    let mut outputs = Outputs::new(count, lens.max().unwrap_or(0));
    let (positions, classes) = sort(&keys);
    let lists = positions.map(|list| [list.clone(), list]);
    let keys = match &lists {
        None => keys,
        Some([list, _]) => list.iter().map(|&position| keys[position]).collect(),
    };
    for (class, range) in classes {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: match &lists {
                None => Positions::From([range.start; 2]),
                Some(lists) => Positions::Lists(lists.each_ref().map(|list| &list[range.clone()])),
            },
            source,
            streams,
            is_blinded,
        };
        let mut items = outputs.items(batch, range);
        match backend.compute(items.reborrow()) {
            // A backend's error about one item concerns its width. All numbers of a class are
            // equally wide, so every item of the class gets it, unless it has an error of its own.
            Err(error) if error.index().is_some() => {
                for item in 0..items.len() {
                    if items.error(item).is_none() {
                        let [position, _] = batch.positions.of(item);
                        items.fail(item, error.clone().at(position));
                    }
                }
            }
            result => result?,
        }
    }
    if let Some(lists) = lists {
        outputs.put_in_order(lists.each_ref().map(Vec::as_slice));
    }
    Ok(outputs)
}

/// The positions of sorted items, unless their order is the caller's, and the range of each class.
type Sorted<'a> = (Option<Vec<usize>>, Vec<(KeyClass<'a>, Range<usize>)>);

/// Sorts items by key.
///
/// Items of one key are adjacent, because a backend prepares each modulus once for a run. Lists for
/// large batches with one key would take longer than all else that is done here.
fn sort<'a>(keys: &[&'a KeyParts]) -> Sorted<'a> {
    // Sorts runs of items with one key, of which there are often few.
    let mut end = 0;
    let runs = keys.chunk_by(|a, b| ptr::eq(*a, *b)).map(|run| {
        let start = end;
        end += run.len();
        (run[0].class(), ptr::from_ref(run[0]), start, end)
    });
    let mut runs: Vec<_> = runs.collect();
    if let [(class, _, start, end)] = runs[..] {
        return (None, Vec::from([(class, start..end)]));
    }
    runs.sort_unstable();

    let mut positions = Vec::with_capacity(keys.len());
    let mut classes = Vec::new();
    for runs in runs.chunk_by(|a, b| a.0 == b.0) {
        let first = positions.len();
        positions.extend(runs.iter().flat_map(|&(_, _, start, end)| start..end));
        classes.push((runs[0].0, first..positions.len()));
    }
    (Some(positions), classes)
}

/// The outputs of a batch, in one buffer. They stay in the order in which items are computed, grouped
/// by key.
#[derive(Default)]
pub(super) struct Outputs {
    /// The distance between outputs in octets.
    stride: usize,
    octets: Vec<u8>,
    /// As in [`Items`]. The caller's thread reads each length, so they are short: they come from the
    /// caches of other threads.
    lens: Vec<u16>,
    errors: Vec<Option<Box<Error>>>,
    /// For each position of the caller's batch the index of its item; above all of them if it is not
    /// certain. Empty if items are in the caller's order.
    order: Vec<usize>,
}

impl Outputs {
    /// Allocates outputs of at most `stride` octets each.
    pub(super) fn new(count: usize, stride: usize) -> Secret<Self> {
        Secret::new(Self {
            stride,
            // A buffer that does not fit into the address space is refused by its allocation.
            octets: zeros(count.saturating_mul(stride)),
            lens: vec![0; count],
            errors: vec![None; count],
            order: Vec::new(),
        })
    }

    /// A range of the items, to compute those of a batch.
    pub(super) fn items<'a>(&'a mut self, batch: Batch<'a>, range: Range<usize>) -> Items<'a> {
        let stride = self.stride;
        Items {
            batch,
            stride,
            octets: &mut self.octets[range.start * stride..range.end * stride],
            lens: &mut self.lens[range.clone()],
            errors: &mut self.errors[range],
        }
    }

    /// Assigns outputs to the positions of their items. A position that differs between the two lists
    /// gets none.
    pub(super) fn put_in_order(&mut self, [positions, copy]: [&[usize]; 2]) {
        self.order = vec![usize::MAX; self.len()];
        for (item, (&position, &copy)) in positions.iter().zip(copy).enumerate() {
            if position == copy {
                self.order[position] = item;
            }
        }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.lens.len()
    }

    /// The index of the item at a position of the caller's batch, above all of them if it is not
    /// certain.
    fn item(&self, position: usize) -> usize {
        match self.order.is_empty() {
            true => position,
            false => self.order[position],
        }
    }

    /// The octets or the error of an item.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    pub(super) fn get(&self, index: usize) -> Result<&[u8], Error> {
        assert!(index < self.len(), "there is no item {index}");
        let item = self.item(index);
        match (self.lens.get(item), self.errors.get(item)) {
            // A length that a fault has changed does not reach into another item.
            (Some(&len @ 1..), _) => self.octets[item * self.stride..][..self.stride]
                .get(..usize::from(len) - 1)
                .ok_or(Error::Fault { index }),
            (_, Some(Some(error))) => Err((**error).clone()),
            _ => Err(Error::Fault { index }),
        }
    }

    /// Fails with the error of the first failed item.
    pub(super) fn all_succeeded(&self) -> Result<(), Error> {
        (0..self.len()).try_for_each(|index| self.get(index).map(|_| ()))
    }

    /// The octets of all items, one after the other, unless one has failed.
    pub(super) fn into_vec(self) -> Result<Vec<u8>, Error> {
        let mut is_in_order = true;
        for index in 0..self.len() {
            let is_full = self.get(index)?.len() == self.stride;
            is_in_order &= is_full && self.item(index) == index;
        }
        if is_in_order {
            return Ok(self.octets);
        }
        let octets = (0..self.len()).flat_map(|index| self.get(index).unwrap_or_default());
        Ok(octets.copied().collect())
    }
}

impl Zeroize for Outputs {
    fn zeroize(&mut self) {
        self.octets.zeroize();
        self.lens.clear();
        self.errors.clear();
        self.order.clear();
    }
}

/// Allocates `len` zeros; large buffers are zeroed by the operating system when threads first write
/// to a page.
///
/// glibc zeroes allocations of up to 32 MiB on the calling thread, which took 5 % of a batch of
/// 65,536 RSA-2048 signatures on an H100. Larger ones are mapped. The excess is returned, because
/// wiping a vector writes all of its capacity.
fn zeros(len: usize) -> Vec<u8> {
    const FEW: usize = 1 << 20;
    const LARGER_THAN_GLIBC_FILLS: usize = 33 << 20;
    let mut zeros = match len {
        0..FEW => vec![0; len],
        _ => vec![0; len.max(LARGER_THAN_GLIBC_FILLS)],
    };
    zeros.truncate(len);
    zeros.shrink_to_fit();
    zeros
}

#[cfg(test)]
mod tests;
