//! Batches: items with keys of one class, where their numbers come from, and where results go.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::engine::Exponent;
use batch_modexp_core::monty::ModulusRef;
use crypto_bigint::{Choice, CtEq, Limb};

use super::error::Error;
use super::key::{KeyHandle, KeyParts, Private};
use super::limbs::is_below;
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

impl<'a> KeyClass<'a> {
    /// The public exponent.
    pub(super) fn exponent(&self) -> Exponent<'a> {
        Exponent::new(self.e)
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
            n_width: self.n().bits(),
            e: self.e.as_limbs(),
            is_private: numbers.is_some(),
            prime: match numbers {
                Some(Private::Crt(crt)) => Some(PrimeClass {
                    width: crt.p().bits(),
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

/// Items with keys of one class, grouped by key. A range of them is a batch too.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) class: KeyClass<'a>,
    pub(super) keys: &'a [&'a KeyParts],
    /// The caller's positions of the items of all classes.
    pub(super) positions: &'a Positions,
    /// The index of the first of these items among those of all classes.
    pub(super) first: usize,
    pub(super) source: &'a dyn Source,
    pub(super) streams: &'a Streams,
    pub(super) is_blinded: bool,
}

impl Batch<'_> {
    /// A range of the items.
    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self {
            keys: &self.keys[range.clone()],
            first: self.first + range.start,
            ..*self
        }
    }

    /// The caller's position of an item, if the item has the caller's key for that position. So no
    /// item is signed with a wrong key, even if a fault changes the list of keys or positions.
    pub(super) fn position_with_key(&self, item: usize) -> Option<usize> {
        let position = self.positions.of(self.first + item)?;
        let is_same = ptr::eq(self.source.key(position), self.keys[item]);
        is_same.then_some(position)
    }

    /// The index in the error of an item without a result.
    pub(super) fn error_index(&self, item: usize) -> usize {
        let number = self.first + item;
        // The error of an item without a position is never returned to a caller.
        self.positions.of(number).unwrap_or(number)
    }

    pub(super) fn fault(&self, item: usize) -> Error {
        let index = self.error_index(item);
        Error::Fault { index }
    }
}

/// The caller's positions of sorted items.
pub(super) enum Positions {
    /// Items are in the caller's order: there is one key.
    Same,
    /// The same list twice, so that a fault in one cannot give a result to another item's caller.
    Sorted([Vec<usize>; 2]),
}

impl Positions {
    /// The caller's position of an item, unless the two lists differ.
    pub(super) fn of(&self, item: usize) -> Option<usize> {
        match self {
            Self::Same => Some(item),
            Self::Sorted([positions, copy]) => {
                let position = positions[item];
                (position == copy[item]).then_some(position)
            }
        }
    }
}
