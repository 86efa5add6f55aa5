//! Batches: the sources of their items, and the items with keys of one class, which a backend
//! computes at a time.

mod items;
mod outputs;

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;

use batch_modexp_core::PublicExponent;
use batch_modexp_core::limbs::is_below;
use batch_modexp_core::monty::ModulusRef;
use batch_modexp_core::secret::{Secret, reveal};
use crypto_bigint::Limb;

pub use self::items::Items;
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

/// Computes one operation for each of `count` items: private or public ones, as the keys of the
/// source are. Returns the outputs that `source` makes of the results; those of private operations
/// have passed their check.
///
/// Sorts items by key class, and has a backend compute each class by `on_backend`.
///
/// `is_blinded` blinds the bases of private operations and requires `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(super) fn compute_by_class(
    count: usize,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
    on_backend: impl Fn(Items<'_>) -> Result<(), Error>,
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
        match on_backend(items.reborrow()) {
            // A backend's error about one item concerns its width. All numbers of a class are
            // equally wide, so every item of the class gets it, unless it has an error of its own.
            Err(error) if error.index().is_some() => {
                for item in 0..items.len() {
                    if items.error(item).is_none() {
                        items.fail(item, error.clone());
                    }
                }
            }
            result => result?,
        }
    }
    if let Some(lists) = lists {
        outputs.put_in_order(lists);
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
        (KeyClass::of(run[0]), ptr::from_ref(run[0]), start, end)
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
