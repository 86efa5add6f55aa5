//! Batches: items with keys of one class, where their numbers come from, and where results go.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::limbs::is_below;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::{Choice, CtEq, Limb};
use zeroize::Zeroize;

use super::error::Error;
use super::key::{KeyHandle, KeyParts, Private};
use super::random::{Randomness, Streams};

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

impl KeyClass<'_> {
    /// The public exponent.
    pub(super) fn exponent(&self) -> PublicExponent {
        PublicExponent::of_limbs(self.e)
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

impl KeyParts {
    pub(super) fn class(&self) -> KeyClass<'_> {
        let numbers = self.private.as_ref().map(|private| &private.numbers);
        KeyClass {
            n_width: self.n().width(),
            e: self.e.as_limbs(),
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
}

/// The modulus n of each key.
pub(super) fn moduli<'a>(keys: &[&'a KeyParts]) -> Vec<ModulusRef<'a>> {
    keys.iter().map(|key| key.n()).collect()
}

/// Provides encoded messages, and receives the results of private or public operations.
///
/// Its keys are all private or all public, and so are the operations. All methods are called from any
/// thread, and again for an item that is recomputed after a device was lost. The index in an error
/// is ignored; the caller sets it.
pub(super) trait Source: Sync {
    /// The caller's key for the item at `position` of the caller's batch.
    fn key(&self, position: usize) -> &KeyParts;

    /// The numbers that [`encode`](Self::encode) may write.
    fn accepted(&self) -> Accepted {
        Accepted::Encodings
    }

    /// Writes the encoded message of the item at `position`: a number, most significant octet first,
    /// as long as the modulus. The caller checks that it is [accepted](Self::accepted). If
    /// `randomness` fails, the whole batch fails.
    fn encode(
        &self,
        position: usize,
        randomness: &mut Randomness,
        em: &mut [u8],
    ) -> Result<(), Error>;

    /// The largest output of an item with this key, in octets. By default that of a result.
    fn output_len(&self, key: &KeyParts) -> usize {
        key.size()
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

/// The numbers that a source may make. Any other one fails its item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Accepted {
    /// Encodings of messages: below n, or else [`Error::Fault`].
    Encodings,
    /// Blocks from others, below n (RFC 8017, sections 5.1.2 and 5.2.1), or else
    /// [`Error::BlockOutOfRange`].
    BelowModulus,
    /// Blocks from others, above 1 and below n - 1 (SP 800-56B Rev. 2, section 7.1.2).
    Sp800_56b,
}

impl Accepted {
    /// Whether a number is accepted for the modulus `n`, in constant time.
    pub(super) fn includes(self, number: &[Limb], n: &[Limb]) -> Choice {
        let is_below = is_below(number, n);
        match self {
            Self::Encodings | Self::BelowModulus => is_below,
            Self::Sp800_56b => {
                let (low, high) = (number[0], number.iter().zip(n).skip(1));
                // No bits but the lowest one: 0 and 1.
                let above_1 = high
                    .clone()
                    .fold(low & !Limb::ONE, |bits, (a, _)| bits | *a);
                // n is odd, so n - 1 differs from it in the lowest bit.
                let from_last = high.fold(low ^ n[0] ^ Limb::ONE, |bits, (a, b)| bits | (*a ^ *b));
                is_below & !above_1.ct_eq(&Limb::ZERO) & !from_last.ct_eq(&Limb::ZERO)
            }
        }
    }

    /// The error of any other number, for a batch of one and a modulus of `len` octets.
    pub(super) fn error(self, len: usize) -> Error {
        match self {
            Self::Encodings => Error::Fault { index: 0 },
            Self::BelowModulus | Self::Sp800_56b => Error::BlockOutOfRange {
                index: 0,
                len,
                expected: len,
            },
        }
    }
}

/// Copies a block that should be as long as the modulus. The error is that of a batch of one.
pub(super) fn copy_block(block: &[u8], em: &mut [u8]) -> Result<(), Error> {
    if block.len() != em.len() {
        return Err(Error::BlockOutOfRange {
            index: 0,
            len: block.len(),
            expected: em.len(),
        });
    }
    em.copy_from_slice(block);
    Ok(())
}

/// A source of blocks from others, whose results are the caller's outputs.
pub(super) struct Blocks<'f, 'b> {
    /// The key and the block at each position of the batch.
    pub(super) item: &'f (dyn Fn(usize) -> (&'b KeyHandle, &'b [u8]) + Sync),
    pub(super) accepted: Accepted,
    /// Fails if a key may not be used; the error is that of a batch of one.
    pub(super) check_key: fn(&KeyHandle) -> Result<(), Error>,
}

impl Source for Blocks<'_, '_> {
    fn key(&self, position: usize) -> &KeyParts {
        (self.item)(position).0.parts()
    }

    fn accepted(&self) -> Accepted {
        self.accepted
    }

    fn encode(&self, position: usize, _: &mut Randomness, em: &mut [u8]) -> Result<(), Error> {
        let (key, block) = (self.item)(position);
        (self.check_key)(key)?;
        copy_block(block, em)
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
        let fault = || self.fault(item);
        is_certain.then_some(position).ok_or_else(fault)
    }

    pub(super) fn fault(&self, item: usize) -> Error {
        let [index, _] = self.positions.of(item);
        Error::Fault { index }
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
    pub(super) stride: usize,
    /// The outputs of the items, `stride` octets for each.
    pub(super) octets: &'a mut [u8],
    /// For each item the length of its output in octets plus 1, or 0 without an output.
    pub(super) lens: &'a mut [u16],
    /// The errors of failed items. An item with neither output nor error is a
    /// [fault](Error::Fault).
    pub(super) errors: &'a mut [Option<Box<Error>>],
}

impl<'a> Items<'a> {
    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lens.len()
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
        let lens = self.lens.split_at_mut(middle);
        let errors = self.errors.split_at_mut(middle);
        let part = |range, octets, lens, errors| Self {
            batch: batch.range(range),
            stride,
            octets,
            lens,
            errors,
        };
        (
            part(0..middle, octets.0, lens.0, errors.0),
            part(middle..count, octets.1, lens.1, errors.1),
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
            lens: self.lens,
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
            Ok(len) => self.lens[item] = len as u16 + 1,
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

    /// The error of a failed item.
    pub(super) fn error(&self, item: usize) -> Option<&Error> {
        self.errors[item]
            .as_deref()
            .filter(|_| self.lens[item] == 0)
    }

    /// Whether an item has failed its check.
    #[cfg(feature = "cuda")]
    pub(super) fn is_fault(&self, item: usize) -> bool {
        matches!(self.error(item), Some(Error::Fault { .. }))
    }
}
