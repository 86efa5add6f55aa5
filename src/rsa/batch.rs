//! Batches: the sources of their items, and the items with keys of one class, which a backend
//! computes at a time.

mod outputs;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::limbs::is_below;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::reveal;
use crypto_bigint::Limb;
use zeroize::Zeroize;

pub(super) use self::outputs::Outputs;
use super::error::Error;
use super::key::{KeyParts, Private};
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
        match reveal(is_below(em, key.n().limbs)) {
            true => Ok(()),
            false => Err(Error::Fault { index: 0 }),
        }
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

    /// Whether an item has failed its check.
    #[cfg(feature = "cuda")]
    pub(super) fn is_fault(&self, item: usize) -> bool {
        matches!(self.error(item), Some(Error::Fault { .. }))
    }
}

/// Public properties that the keys of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct KeyClass<'a> {
    /// The width of n in bits.
    pub(super) n_width: u32,
    /// The public exponent, as short as possible.
    pub(super) e: &'a [Limb],
    /// Whether they are private keys: for private operations.
    pub(super) is_private: bool,
    /// `None` for public keys, and for private ones without CRT values.
    pub(super) prime: Option<PrimeClass>,
}

/// Public properties that the primes of a class share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PrimeClass {
    /// The width of both primes in bits.
    pub(super) width: u32,
    /// A bound on the lengths of both primes, and so of dP and dQ, in bits.
    pub(super) bits: u32,
}

impl<'a> KeyClass<'a> {
    /// The class of a key.
    pub(super) fn of(key: &'a KeyParts) -> Self {
        let numbers = key.private.as_ref().map(|private| &private.numbers);
        Self {
            n_width: key.n().width(),
            e: key.e.as_limbs(),
            is_private: numbers.is_some(),
            prime: match numbers {
                Some(Private::Crt(crt)) => Some(PrimeClass {
                    width: crt.p().width(),
                    bits: crt.prime_bits,
                }),
                Some(Private::Plain { .. }) | None => None,
            },
        }
    }

    /// The public exponent.
    pub(super) fn exponent(&self) -> PublicExponent {
        PublicExponent::of_limbs(self.e)
    }

    /// The public exponent less 1.
    pub(super) fn exponent_less_1(&self) -> PublicExponent {
        PublicExponent::one_less(self.e)
    }

    /// The number of exponentiations in a private operation.
    pub(super) fn exponentiations(&self) -> usize {
        match self.prime {
            Some(_) => 2,
            None => 1,
        }
    }

    /// Limbs in n.
    pub(super) fn limbs(&self) -> usize {
        (self.n_width / Limb::BITS) as usize
    }
}

/// The modulus n of each key.
pub(super) fn moduli<'a>(keys: &[&'a KeyParts]) -> Vec<ModulusRef<'a>> {
    keys.iter().map(|key| key.n()).collect()
}
