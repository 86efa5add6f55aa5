//! Private operations for a backend: lanes of keys of one class, which can be cut like a slice.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use super::batch::{Batch, Source};
use super::chunk::Chunk;
use super::group::{KeyClass, Positions, sort};
use super::opened::Opened;
use super::places::{Place, Places, Room};
use super::random::Streams;
use super::{Helpers, RsaPrivateOp};
use crate::engine::Engine;
use crate::rsa::{Error, KeyHandle};

/// The key of each lane of a batch.
#[derive(Clone, Copy)]
pub(in crate::rsa) enum Keys<'s, 'k> {
    /// So many lanes of one key, which nobody need look for the runs of.
    One(&'k KeyHandle, usize),
    Each(&'s [&'k KeyHandle]),
}

/// The keys of all lanes, those of one class next to each other, and of one key among them.
struct Arranged<'s, 'k> {
    keys: Cow<'s, [&'k KeyHandle]>,
    positions: Positions,
    classes: Vec<(KeyClass, Range<usize>)>,
}

impl<'s, 'k> Keys<'s, 'k> {
    fn arranged(self, helpers: Helpers<'_>) -> Arranged<'s, 'k> {
        let keys = match self {
            Self::One(_, 0) => &[][..],
            Self::One(key, count) => {
                return Arranged {
                    keys: Cow::Owned(helpers.map(count, |_| key)),
                    positions: Positions::Same,
                    classes: Vec::from([(KeyClass::of(key.parts()), 0..count)]),
                };
            }
            Self::Each(keys) => keys,
        };
        let (positions, classes) = sort(keys);
        let keys = match &positions {
            Positions::Same => Cow::Borrowed(keys),
            Positions::Sorted([positions, _]) => positions.iter().map(|&i| keys[i]).collect(),
        };
        Arranged {
            keys,
            positions,
            classes,
        }
    }
}

/// Runs private operations, one for each of `keys`, and returns the results that pass their check, each with the
/// position of its lane in its error. With `is_blinded` the bases are blinded, for which there must be `streams`.
///
/// # Errors
///
/// [`Error::Rng`], or the backend's error if it failed as a whole.
pub(in crate::rsa) fn private_ops<B, P>(
    backend: &B,
    keys: Keys<'_, '_>,
    source: &dyn Source,
    streams: &Streams,
    is_blinded: bool,
) -> Result<Vec<P>, Error>
where
    B: RsaPrivateOp + ?Sized,
    P: Place,
{
    let helpers = backend.helpers();
    let Arranged {
        keys,
        positions,
        classes,
    } = keys.arranged(helpers);
    // Whatever a backend forgets is a fault.
    let fault = |index| P::of(Err(Error::Fault { index }));
    let place = |lane| fault(positions.of(lane).unwrap_or(lane));
    // Those of one class may be made by the backend.
    let mut places = match helpers.can_make_beside(keys.len()) && classes.len() == 1 {
        true => Vec::new(),
        false => helpers.map(keys.len(), place),
    };
    for (class, range) in classes {
        let batch = Batch {
            class,
            keys: &keys[range.clone()],
            positions: &positions,
            start: range.start,
            source,
            streams,
            is_blinded,
        };
        let ops = PrivateOps {
            batch: &batch,
            engine: backend.engine().0,
            first: 0,
            places: P::places(room(&mut places, &range, &place)),
        };
        let done = backend.private_op(ops);
        let places = room(&mut places, &range, &place).made();
        if let Err(error) = done {
            // All numbers of a class are equally wide: what is wrong with one lane is wrong with all.
            for (lane, place) in places.iter_mut().enumerate() {
                let position = batch.position(lane).unwrap_or(lane);
                if error.index().is_none() {
                    return Err(error);
                }
                *place = P::of(Err(error.clone().at(position)));
            }
        }
    }
    if let Positions::Same = positions {
        return Ok(places);
    }
    // In the caller's order, and with the caller's positions already.
    let mut results: Vec<P> = (0..keys.len()).map(fault).collect();
    for (lane, place) in places.into_iter().enumerate() {
        if let Some(position) = positions.of(lane) {
            results[position] = place;
        }
    }
    Ok(results)
}

/// The places of a class, or of all lanes where none are made yet.
fn room<'a, P>(
    places: &'a mut Vec<P>,
    range: &Range<usize>,
    make: &'a (dyn Fn(usize) -> P + Sync),
) -> Room<'a, P> {
    if !places.is_empty() {
        return Room::Made(&mut places[range.clone()]);
    }
    Room::Unmade {
        places,
        count: range.len(),
        make,
    }
}

/// Private operations that a backend is to compute: lanes whose keys have all public numbers but n in common.
///
/// It can be [cut](Self::split_at) like a slice, so that threads or devices get parts. Whoever has a part
/// [opens](Self::open) it, which makes the message representatives and the blinding factors on the calling thread,
/// computes, and [delivers](Chunk::deliver) the candidates, which are checked there. Lanes that nobody delivers
/// fail with [`Error::Fault`].
#[allow(missing_debug_implementations)]
pub struct PrivateOps<'a> {
    pub(super) batch: &'a Batch<'a>,
    pub(super) engine: &'a dyn Engine,
    /// The first lane of the batch that is in here; there are as many as places.
    pub(super) first: usize,
    pub(super) places: Places<'a>,
}

impl<'a> PrivateOps<'a> {
    /// The number of lanes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of each lane. Those of one key are neighbours.
    #[must_use]
    pub fn keys(&self) -> &'a [&'a KeyHandle] {
        &self.batch.keys[self.first..][..self.places.len()]
    }

    /// Whether the lanes have blinding factors: all or none.
    #[must_use]
    pub fn is_blinded(&self) -> bool {
        self.batch.is_blinded
    }

    /// How many exponentiations a lane is: two for keys with CRT values, else one.
    #[must_use]
    pub fn exponentiations(&self) -> usize {
        self.batch.class.exponentiations()
    }

    /// The width of the moduli of those exponentiations, in bits.
    #[cfg(feature = "std")]
    pub(super) fn exponentiation_bits(&self) -> u32 {
        let class = &self.batch.class;
        class.prime.map_or(class.n_width, |prime| prime.width)
    }

    /// The same lanes once more, for a second attempt.
    #[must_use]
    pub fn again(&mut self) -> PrivateOps<'_> {
        PrivateOps {
            batch: self.batch,
            engine: self.engine,
            first: self.first,
            places: self.places.reborrow(),
        }
    }

    /// The first `middle` lanes, and the others.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn split_at(self, middle: usize) -> (Self, Self) {
        let (head, tail) = self.places.split_at(middle);
        let Self {
            batch,
            engine,
            first,
            ..
        } = self;
        let part = |first, places| PrivateOps {
            batch,
            engine,
            first,
            places,
        };
        (part(first, head), part(first + middle, tail))
    }

    /// Parts of `len` lanes, the last one perhaps of fewer.
    ///
    /// # Panics
    ///
    /// If `len` is 0.
    pub fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
        assert!(len > 0, "parts of no lanes");
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let ops = rest.take().filter(|ops| !ops.is_empty())?;
            let middle = len.min(ops.len());
            let (part, others) = ops.split_at(middle);
            rest = Some(others);
            Some(part)
        })
    }

    /// Makes the representatives and, if they are blinded, the random numbers to blind them with, on the calling thread.
    ///
    /// A few hundred lanes at a time are best: their numbers stay in a cache.
    ///
    /// # Errors
    ///
    /// [`Error::Rng`].
    pub fn open(self) -> Result<Chunk<'a>, Error> {
        let opened = Opened::new(self.batch, self.range())?;
        Ok(Chunk::new(self.batch, self.engine, opened, self.places))
    }

    /// The lanes of the batch that are in here.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.places.len()
    }

    /// Computes all lanes on the calling thread, the exponentiations on `backend` and all else on its engine.
    pub(super) fn compute_on<B>(self, backend: &B, lanes_at_a_time: usize) -> Result<(), Error>
    where
        B: RsaPrivateOp + ?Sized,
    {
        let ops = PrivateOps {
            engine: backend.engine().0,
            ..self
        };
        for ops in ops.chunks(lanes_at_a_time) {
            let chunk = ops.open()?;
            let candidates = chunk.candidates(backend)?;
            chunk.close(candidates)?;
        }
        Ok(())
    }
}
