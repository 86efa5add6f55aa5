//! The items that a backend computes, with the places of their outputs.

use alloc::boxed::Box;

use zeroize::Zeroize;

use super::Batch;
use crate::rsa::error::Error;

/// Items for a backend to compute: private operations, or public ones (verification and
/// encryption). Their keys share all public numbers except n.
///
/// Items can be [split](Self::split_at) like a slice, to divide them among threads or devices.
pub struct Items<'a> {
    pub(in crate::rsa) batch: Batch<'a>,
    /// The octets of an item's output at most.
    pub(super) stride: usize,
    /// The outputs of the items, `stride` octets for each.
    pub(super) octets: &'a mut [u8],
    /// For each item the length of its output in octets plus 1, or 0 without an output.
    pub(super) lens_plus_1: &'a mut [u16],
    /// The errors of failed items. An item with neither output nor error is a
    /// [fault](Error::Fault).
    pub(super) errors: &'a mut [Option<Box<Error>>],
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
    pub(in crate::rsa) fn write(
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
    pub(in crate::rsa) fn fail(&mut self, item: usize, error: Error) {
        let [position, _] = self.batch.positions.of(item);
        self.lens_plus_1[item] = 0;
        self.errors[item] = Some(Box::new(error.at(position)));
    }

    /// The error of a failed item.
    pub(in crate::rsa) fn error(&self, item: usize) -> Option<&Error> {
        self.errors[item]
            .as_deref()
            .filter(|_| self.lens_plus_1[item] == 0)
    }

    /// Whether an item has failed its check.
    #[cfg(feature = "cuda")]
    pub(in crate::rsa) fn is_fault(&self, item: usize) -> bool {
        matches!(self.error(item), Some(Error::Fault { .. }))
    }
}
