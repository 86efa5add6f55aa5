//! Batches: the sources of their items, and the items with keys of one class, which a backend
//! computes at a time. `Outputs` has those of all.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::{mem, ptr};

use batch_modexp_core::limbs::is_below;
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::Limb;
use zeroize::Zeroize;

use super::error::Error;
use super::key::{KeyClass, KeyParts};
use super::random::{Randomness, Streams};

/// Provides encoded messages, and receives the results of private or public operations.
///
/// Its keys are all private or all public, and so are the operations. All methods are called from any
/// thread, and again for an item that is recomputed after a device was lost. The index in an error
/// is ignored: see [`Items::fail`].
pub(super) trait Source: Sync {
    /// The caller's key for the item at `position` of the caller's batch.
    fn key(&self, position: usize) -> &KeyParts;

    /// Writes the encoded message of the item at `position`: a number, most significant octet first,
    /// as long as the modulus. The caller [checks](Self::check) it. If `randomness` fails, the whole
    /// batch fails.
    fn encode(
        &self,
        position: usize,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error>;

    /// Fails if a number may not be raised with this key. By default it must be below n, which holds
    /// for encodings. The number is as wide as n.
    fn check(&self, key: &KeyParts, em: &[Limb]) -> Result<(), Error> {
        let is_below_n = reveal(is_below(em, key.n().limbs));
        is_below_n.then_some(()).ok_or(Error::Fault { index: 0 })
    }

    /// The largest output of an item with this key, in octets. By default that of a result.
    fn output_len(&self, key: &KeyParts) -> usize {
        key.n_octets()
    }

    /// Turns a result, as long as the modulus, into the caller's output, and returns its length.
    /// The result may be overwritten. By default the output is the result.
    fn decode(
        &self,
        position: usize,
        result: &mut [u8],
        output: &mut [u8],
    ) -> Result<usize, Error> {
        let _ = position;
        output.copy_from_slice(result);
        Ok(result.len())
    }
}

/// The inputs of items with keys of one class, grouped by key. A range of them is a batch too.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) class: KeyClass<'a>,
    pub(super) keys: &'a [&'a KeyParts],
    pub(super) positions: Positions<'a>,
    pub(super) source: &'a dyn Source,
    pub(super) streams: &'a Streams,
    pub(super) is_blinded: bool,
}

impl Batch<'_> {
    /// A range of the items.
    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self {
            keys: &self.keys[range.clone()],
            positions: self.positions.range(range),
            ..*self
        }
    }

    /// The caller's position of an item, if both are equal and the item has the caller's key for
    /// that position; otherwise a fault. So no item is signed with a wrong key, even if a fault
    /// changes the list of keys or positions.
    pub(super) fn position(&self, item: usize) -> Result<usize, Error> {
        let [position, copy] = self.positions.of(item);
        let is_certain = position == copy && ptr::eq(self.source.key(position), self.keys[item]);
        is_certain
            .then_some(position)
            .ok_or(Error::Fault { index: 0 })
    }
}

/// The positions of items in the caller's batch, twice: a fault in one of them cannot give a result
/// to another item's caller.
#[derive(Clone, Copy)]
pub(super) enum Positions<'a> {
    /// Items are in the caller's order, from this position on.
    From([usize; 2]),
    /// A list.
    Lists([&'a [usize]; 2]),
}

impl Positions<'_> {
    fn range(self, range: Range<usize>) -> Self {
        match self {
            Self::From(firsts) => Self::From(firsts.map(|first| first + range.start)),
            Self::Lists(lists) => Self::Lists(lists.map(|list| &list[range.clone()])),
        }
    }

    /// The position of an item by both.
    pub(super) fn of(self, item: usize) -> [usize; 2] {
        match self {
            Self::From(firsts) => firsts.map(|first| first + item),
            Self::Lists(lists) => lists.map(|list| list[item]),
        }
    }
}

/// Items for a backend to compute: private operations, or public ones (verification and
/// encryption). Their keys share all public numbers except n.
///
/// Items can be [split](Self::split_at) like a slice, to divide them among threads or devices.
pub struct Items<'a> {
    pub(super) batch: Batch<'a>,
    /// The octets of an item's output at most.
    stride: usize,
    /// The outputs of the items, `stride` octets for each.
    octets: &'a mut [u8],
    /// For each item the length of its output in octets plus 1, or 0 without an output.
    lens_plus_1: &'a mut [u16],
    /// The errors of failed items. An item with neither output nor error is a
    /// [fault](Error::Fault).
    errors: &'a mut [Option<Box<Error>>],
}

impl<'a> Items<'a> {
    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lens_plus_1.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Splits into the first `middle` items and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer than `middle` items.
    #[must_use]
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let (count, batch, stride) = (self.len(), self.batch, self.stride);
        let octets = self.octets.split_at_mut(middle * stride);
        let lens_plus_1 = self.lens_plus_1.split_at_mut(middle);
        let errors = self.errors.split_at_mut(middle);
        let part = |range, octets, lens_plus_1, errors| Self {
            batch: batch.range(range),
            stride,
            octets,
            lens_plus_1,
            errors,
        };
        (
            part(0..middle, octets.0, lens_plus_1.0, errors.0),
            part(middle..count, octets.1, lens_plus_1.1, errors.1),
        )
    }

    /// Splits into parts of `len` items; the last may have fewer.
    ///
    /// # Panics
    ///
    /// If `len` is 0.
    pub fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
        assert!(len > 0, "parts of no items");
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let items = rest.take().filter(|items| !items.is_empty())?;
            let middle = len.min(items.len());
            let (part, others) = items.split_at(middle);
            rest = Some(others);
            Some(part)
        })
    }

    /// Borrows the same items for one attempt, so that another can follow.
    #[must_use]
    pub fn reborrow(&mut self) -> Items<'_> {
        Items {
            batch: self.batch,
            stride: self.stride,
            octets: self.octets,
            lens_plus_1: self.lens_plus_1,
            errors: self.errors,
        }
    }

    /// The number of exponentiations for one item: two for private keys with CRT values, else one.
    #[must_use]
    pub fn exponentiations(&self) -> usize {
        self.batch.class.exponentiations()
    }

    /// The width of the moduli of these exponentiations, in bits.
    #[must_use]
    pub fn exponentiation_bits(&self) -> u32 {
        let class = &self.batch.class;
        class.prime.map_or(class.n_width, |prime| prime.width)
    }

    /// Has `write` fill up to `len` octets with an item's output; it returns the length of the output.
    pub(super) fn write(
        &mut self,
        item: usize,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) {
        let octets = &mut self.octets[item * self.stride..][..self.stride][..len];
        match write(octets) {
            Ok(len) => self.lens_plus_1[item] = len as u16 + 1,
            Err(error) => {
                octets.zeroize();
                self.fail(item, error);
            }
        }
    }

    /// Marks an item as failed. The error gets the caller's position.
    pub(super) fn fail(&mut self, item: usize, error: Error) {
        let [position, _] = self.batch.positions.of(item);
        self.lens_plus_1[item] = 0;
        self.errors[item] = Some(Box::new(error.at(position)));
    }

    /// The error of a failed item.
    pub(super) fn error(&self, item: usize) -> Option<&Error> {
        self.errors[item]
            .as_deref()
            .filter(|_| self.lens_plus_1[item] == 0)
    }
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
    pub(super) fn new(count: usize, stride: usize) -> Secret<Self> {
        Secret::new(Self {
            stride,
            // A buffer that does not fit into the address space is refused by its allocation.
            octets: zeros(count.saturating_mul(stride)),
            lens_plus_1: vec![0; count],
            errors: vec![None; count],
            ..Self::default()
        })
    }

    /// A range of the items, to compute those of a batch.
    pub(super) fn items<'a>(&'a mut self, batch: Batch<'a>, range: Range<usize>) -> Items<'a> {
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
    pub(super) fn put_in_order(&mut self, [positions, copy]: [Vec<usize>; 2]) {
        self.order = vec![usize::MAX; self.len()];
        for (item, (&position, &copy)) in positions.iter().zip(&copy).enumerate() {
            if position == copy {
                self.order[position] = item;
            }
        }
        self.positions = positions;
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
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
    pub(super) fn get(&self, index: usize) -> Result<&[u8], Error> {
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
    pub(super) fn all_succeeded(&self) -> Result<(), Error> {
        // Looking at each item takes 5 % of a large verification on a GPU.
        let fits = |len_plus_1: &u16| (1..=self.stride + 1).contains(&usize::from(*len_plus_1));
        if self.is_in_order() && self.lens_plus_1.iter().all(fits) {
            return Ok(());
        }
        (0..self.len()).try_for_each(|index| self.get(index).map(|_| ()))
    }

    /// The octets of all items, one after the other, unless one has failed.
    pub(super) fn into_vec(self) -> Result<Vec<u8>, Error> {
        self.all_succeeded()?;
        let is_full = |len_plus_1: &u16| usize::from(*len_plus_1) == self.stride + 1;
        if self.is_in_order() && self.lens_plus_1.iter().all(is_full) {
            return Ok(self.octets);
        }
        let octets = (0..self.len()).flat_map(|index| self.get(index).unwrap_or_default());
        Ok(octets.copied().collect())
    }
}

impl Zeroize for Outputs {
    fn zeroize(&mut self) {
        mem::take(self).octets.zeroize();
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
