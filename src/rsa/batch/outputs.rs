//! The outputs of a batch.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use batch_modexp_core::secret::Secret;
use zeroize::Zeroize;

use super::{Batch, Items};
use crate::rsa::error::Error;

/// The outputs of a batch, in one buffer. They stay in the order in which items are computed, grouped
/// by key.
#[derive(Default)]
pub(in crate::rsa) struct Outputs {
    /// The distance between outputs in octets.
    stride: usize,
    octets: Vec<u8>,
    /// As in [`Items`]. The caller's thread reads each length, so they are short: they come from the
    /// caches of other threads.
    lens_plus_1: Vec<u16>,
    errors: Vec<Option<Box<Error>>>,
    /// For each position of the caller's batch the index of its item; above all of them if it is not
    /// certain. Empty if items are in the caller's order.
    order: Vec<usize>,
    /// For each item its position, if there is an order.
    positions: Vec<usize>,
}

impl Outputs {
    /// Allocates outputs of at most `stride` octets each.
    pub(in crate::rsa) fn new(count: usize, stride: usize) -> Secret<Self> {
        Secret::new(Self {
            stride,
            // A buffer that does not fit into the address space is refused by its allocation.
            octets: zeros(count.saturating_mul(stride)),
            lens_plus_1: vec![0; count],
            errors: vec![None; count],
            order: Vec::new(),
            positions: Vec::new(),
        })
    }

    /// A range of the items, to compute those of a batch.
    pub(in crate::rsa) fn items<'a>(
        &'a mut self,
        batch: Batch<'a>,
        range: Range<usize>,
    ) -> Items<'a> {
        let stride = self.stride;
        Items {
            batch,
            stride,
            octets: &mut self.octets[range.start * stride..range.end * stride],
            lens_plus_1: &mut self.lens_plus_1[range.clone()],
            errors: &mut self.errors[range],
        }
    }

    /// Assigns outputs to the positions of their items. A position that differs between the two lists
    /// gets none.
    pub(in crate::rsa) fn put_in_order(&mut self, [positions, copy]: [Vec<usize>; 2]) {
        self.order = vec![usize::MAX; self.len()];
        for (item, (&position, &copy)) in positions.iter().zip(&copy).enumerate() {
            if position == copy {
                self.order[position] = item;
            }
        }
        self.positions = positions;
    }

    /// The number of items.
    pub(in crate::rsa) fn len(&self) -> usize {
        self.lens_plus_1.len()
    }

    /// The index of the item at a position of the caller's batch, above all of them if it is not
    /// certain.
    fn item(&self, position: usize) -> usize {
        if self.is_in_order() {
            return position;
        }
        match self.order.get(position) {
            Some(&item) if self.positions.get(item) == Some(&position) => item,
            _ => usize::MAX,
        }
    }

    /// Whether items are in the caller's order.
    fn is_in_order(&self) -> bool {
        self.order.is_empty() && self.positions.is_empty()
    }

    /// The octets or the error of an item.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    pub(in crate::rsa) fn get(&self, index: usize) -> Result<&[u8], Error> {
        assert!(index < self.len(), "there is no item {index}");
        let item = self.item(index);
        match (self.lens_plus_1.get(item), self.errors.get(item)) {
            // A length that a fault has changed does not reach into another item.
            (Some(&len @ 1..), _) => self.octets[item * self.stride..][..self.stride]
                .get(..usize::from(len) - 1)
                .ok_or(Error::Fault { index }),
            (_, Some(Some(error))) => Err((**error).clone()),
            _ => Err(Error::Fault { index }),
        }
    }

    /// Fails with the error of the first failed item.
    pub(in crate::rsa) fn all_succeeded(&self) -> Result<(), Error> {
        // Looking at each item takes 5 % of a large verification on a GPU.
        let fits = |len_plus_1: &u16| (1..=self.stride + 1).contains(&usize::from(*len_plus_1));
        if self.is_in_order() && self.lens_plus_1.iter().all(fits) {
            return Ok(());
        }
        (0..self.len()).try_for_each(|index| self.get(index).map(|_| ()))
    }

    /// The octets of all items, one after the other, unless one has failed.
    pub(in crate::rsa) fn into_vec(self) -> Result<Vec<u8>, Error> {
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
        self.lens_plus_1.clear();
        self.errors.clear();
        self.order.clear();
        self.positions.clear();
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
