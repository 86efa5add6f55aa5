//! The output octets of all items in one buffer, and the errors of failed items.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use batch_modexp_core::secret::Secret;
use zeroize::Zeroize;

use super::error::Error;

/// The outputs of a batch.
///
/// Items are computed in *sorted* order, grouped by key class, and looked up by their *position* in
/// the caller's batch.
#[derive(Default)]
pub(super) struct Outputs {
    octets: Vec<u8>,
    /// For each item its length in octets plus 1, or 0 without a result.
    lens: Vec<u16>,
    /// For each class its first item, the offset of its octets, and the distance between items in
    /// octets.
    classes: Vec<Class>,
    /// The item at each position; `None` if items are not reordered.
    items: Option<Vec<usize>>,
    /// The failed positions, in ascending order.
    errors: Vec<(usize, Error)>,
}

struct Class {
    first: usize,
    offset: usize,
    stride: usize,
}

impl Outputs {
    pub(super) fn len(&self) -> usize {
        self.lens.len()
    }

    pub(super) fn get(&self, position: usize) -> Result<&[u8], &Error> {
        assert!(position < self.len(), "there is no item {position}");
        if let Ok(at) = self.errors.binary_search_by_key(&position, |error| error.0) {
            return Err(&self.errors[at].1);
        }
        let item = self
            .items
            .as_ref()
            .map_or(position, |items| items[position]);
        let class = self.classes.partition_point(|class| class.first <= item);
        let class = &self.classes[class - 1];
        let start = class.offset + (item - class.first) * class.stride;
        Ok(&self.octets[start..][..usize::from(self.lens[item]) - 1])
    }

    pub(super) fn first_error(&self) -> Option<&Error> {
        self.errors.first().map(|(_, error)| error)
    }

    pub(super) fn into_vec(mut self) -> Result<Vec<u8>, Error> {
        if !self.errors.is_empty() {
            return Err(self.errors.swap_remove(0).1);
        }
        // Nothing moves if all results have full length and are in order.
        if let ([class], None) = (&self.classes[..], &self.items)
            && self
                .lens
                .iter()
                .all(|&len| usize::from(len) == class.stride + 1)
        {
            return Ok(self.octets);
        }
        let octets = (0..self.len()).flat_map(|position| self.get(position).unwrap_or_default());
        Ok(octets.copied().collect())
    }
}

impl Zeroize for Outputs {
    fn zeroize(&mut self) {
        self.octets.zeroize();
        self.lens.clear();
        self.errors.clear();
    }
}

/// Buffers for the outputs of a batch.
pub(super) struct Buffers {
    outputs: Secret<Outputs>,
    errors: Vec<Option<Box<Error>>>,
}

impl Buffers {
    /// Allocates buffers, from the number of items and the longest result in octets of each class.
    pub(super) fn new(classes: impl Iterator<Item = (usize, usize)>) -> Self {
        let (mut first, mut offset) = (0, 0);
        let classes = classes
            .map(|(count, stride)| {
                let class = Class {
                    first,
                    offset,
                    stride,
                };
                first += count;
                // A buffer that does not fit into the address space is refused by its allocation.
                offset = count.saturating_mul(stride).saturating_add(offset);
                class
            })
            .collect();
        Self {
            outputs: Secret::new(Outputs {
                octets: zeros(offset),
                lens: vec![0; first],
                classes,
                ..Outputs::default()
            }),
            errors: vec![None; first],
        }
    }

    /// The slots of class `index`.
    pub(super) fn class(&mut self, index: usize) -> Slots<'_> {
        let outputs = &mut *self.outputs;
        let Class {
            first,
            offset,
            stride,
        } = outputs.classes[index];
        let (end, end_offset) = match outputs.classes.get(index + 1) {
            Some(next) => (next.first, next.offset),
            None => (outputs.lens.len(), outputs.octets.len()),
        };
        Slots {
            stride,
            octets: &mut outputs.octets[offset..end_offset],
            lens: &mut outputs.lens[first..end],
            errors: &mut self.errors[first..end],
        }
    }

    /// Returns the outputs. If items are sorted, `items` maps positions to items; a position
    /// without an item is a [fault](Error::Fault).
    pub(super) fn finish(mut self, items: Option<Vec<Option<usize>>>) -> Secret<Outputs> {
        let outputs = &mut *self.outputs;
        for position in 0..outputs.lens.len() {
            let item = items
                .as_ref()
                .map_or(Some(position), |items| items[position]);
            // An item without result or error, which a backend forgot, is a fault.
            let error = match item {
                Some(item) if outputs.lens[item] > 0 => continue,
                Some(item) => self.errors[item].take(),
                None => None,
            };
            let error = error.map_or(Error::Fault { index: position }, |error| *error);
            outputs.errors.push((position, error));
        }
        // A position with an error is never looked up, so its item does not matter.
        let known = |items: Vec<Option<usize>>| items.into_iter().map(Option::unwrap_or_default);
        outputs.items = items.map(|items| known(items).collect());
        self.outputs
    }
}

/// Allocates `len` zeros; large buffers are zeroed by the operating system when threads first write
/// to a page.
///
/// glibc zeroes allocations of up to 32 MiB on the calling thread, which took 5 % of a batch of
/// 65,536 RSA-2048 signatures on an H100. Larger ones are mapped, and pages that are never written
/// take no memory.
fn zeros(len: usize) -> Vec<u8> {
    const FEW: usize = 1 << 20;
    const LARGER_THAN_GLIBC_FILLS: usize = 33 << 20;
    let mut zeros = match len {
        0..FEW => vec![0; len],
        _ => vec![0; len.max(LARGER_THAN_GLIBC_FILLS)],
    };
    zeros.truncate(len);
    zeros
}

/// Slots for the results of items of one class. They can be split like a slice.
pub(super) struct Slots<'a> {
    stride: usize,
    octets: &'a mut [u8],
    lens: &'a mut [u16],
    errors: &'a mut [Option<Box<Error>>],
}

impl Slots<'_> {
    pub(super) fn len(&self) -> usize {
        self.lens.len()
    }

    /// Splits into the first `middle` slots and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer than `middle` slots.
    pub(super) fn split_at<'s>(self, middle: usize) -> (Slots<'s>, Slots<'s>)
    where
        Self: 's,
    {
        let stride = self.stride;
        let octets = self.octets.split_at_mut(middle * stride);
        let lens = self.lens.split_at_mut(middle);
        let errors = self.errors.split_at_mut(middle);
        let slots = |octets, lens, errors| Slots {
            stride,
            octets,
            lens,
            errors,
        };
        (
            slots(octets.0, lens.0, errors.0),
            slots(octets.1, lens.1, errors.1),
        )
    }

    /// Borrows the same slots.
    pub(super) fn reborrow(&mut self) -> Slots<'_> {
        Slots {
            stride: self.stride,
            octets: self.octets,
            lens: self.lens,
            errors: self.errors,
        }
    }

    /// Has `write` fill up to `len` octets of an item's slot; it returns the length of the result.
    pub(super) fn write(
        &mut self,
        item: usize,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) {
        let octets = &mut self.octets[item * self.stride..][..len];
        match write(octets) {
            Ok(len) => {
                self.lens[item] = len as u16 + 1;
                self.errors[item] = None;
            }
            Err(error) => {
                octets.zeroize();
                self.fail(item, error);
            }
        }
    }

    /// Marks an item as failed.
    pub(super) fn fail(&mut self, item: usize, error: Error) {
        self.lens[item] = 0;
        self.errors[item] = Some(Box::new(error));
    }

    /// Whether an item has failed its check.
    #[cfg(feature = "cuda")]
    pub(super) fn is_fault(&self, item: usize) -> bool {
        matches!(self.errors[item].as_deref(), Some(Error::Fault { .. }))
    }
}
