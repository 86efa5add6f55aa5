//! Where results go: a place for each lane, of one of two types.

use alloc::vec::Vec;

use super::super::signature::Signature;
use crate::rsa::Error;
use crate::secret::Secret;

/// What comes of a lane: the octets of the result, as many as the modulus has, or what its source makes of them.
pub(in crate::rsa) type Octets = Result<Secret<Vec<u8>>, Error>;

/// A result as its caller gets it.
///
/// The threads that check results put them to their places. A pass over a whole batch after that would take the calling thread a good part of
/// what devices take for all else.
pub(in crate::rsa) trait Place: Send + Sized {
    /// What becomes of a result.
    fn of(result: Octets) -> Self;

    /// The error, if it is one.
    #[cfg(feature = "cuda")]
    fn error(&self) -> Option<&Error>;

    /// Places of this type.
    fn places(room: Room<'_, Self>) -> Places<'_>;
}

impl Place for Octets {
    fn of(result: Octets) -> Self {
        result
    }

    #[cfg(feature = "cuda")]
    fn error(&self) -> Option<&Error> {
        self.as_ref().err()
    }

    fn places(room: Room<'_, Self>) -> Places<'_> {
        Places::Secret(room)
    }
}

impl Place for Result<Signature, Error> {
    fn of(result: Octets) -> Self {
        result.map(|octets| Signature::new(octets.into_inner()))
    }

    #[cfg(feature = "cuda")]
    fn error(&self) -> Option<&Error> {
        self.as_ref().err()
    }

    fn places(room: Room<'_, Self>) -> Places<'_> {
        Places::Signatures(room)
    }
}

/// Places of one type, one for each lane.
pub(in crate::rsa) enum Room<'a, P> {
    Made(&'a mut [P]),
    /// So many, which whoever computes is to make; others do when they first need them.
    Unmade {
        places: &'a mut Vec<P>,
        count: usize,
        /// The place of each lane.
        make: &'a (dyn Fn(usize) -> P + Sync),
    },
}

impl<'a, P> Room<'a, P> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Made(places) => places.len(),
            Self::Unmade { count, .. } => *count,
        }
    }

    fn reborrow(&mut self) -> Room<'_, P> {
        match self {
            Self::Made(places) => Room::Made(places),
            Self::Unmade {
                places,
                count,
                make,
            } => Room::Unmade {
                places,
                count: *count,
                make: *make,
            },
        }
    }

    /// All places, on the calling thread if they were not made before.
    pub(super) fn made(self) -> &'a mut [P] {
        match self {
            Self::Made(places) => places,
            Self::Unmade {
                places,
                count,
                make,
            } => {
                places.extend((places.len()..count).map(make));
                places
            }
        }
    }

    fn split_at(self, middle: usize) -> [Self; 2] {
        let (head, tail) = self.made().split_at_mut(middle);
        [head, tail].map(Self::Made)
    }
}

/// Places that can be cut like a slice, one for each lane.
pub(in crate::rsa) enum Places<'a> {
    /// For octets that are wiped on drop.
    Secret(Room<'a, Octets>),
    /// For signatures, which are for everybody.
    Signatures(Room<'a, Result<Signature, Error>>),
}

impl Places<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Secret(room) => room.len(),
            Self::Signatures(room) => room.len(),
        }
    }

    /// The same places, for a while.
    pub(super) fn reborrow(&mut self) -> Places<'_> {
        match self {
            Self::Secret(room) => Places::Secret(room.reborrow()),
            Self::Signatures(room) => Places::Signatures(room.reborrow()),
        }
    }

    /// The first `middle`, and the others.
    pub(super) fn split_at(self, middle: usize) -> (Self, Self) {
        match self {
            Self::Secret(room) => {
                let [head, tail] = room.split_at(middle);
                (Self::Secret(head), Self::Secret(tail))
            }
            Self::Signatures(room) => {
                let [head, tail] = room.split_at(middle);
                (Self::Signatures(head), Self::Signatures(tail))
            }
        }
    }

    /// Puts a result to place `lane`.
    pub(super) fn put(&mut self, lane: usize, result: Octets) {
        match self {
            Self::Secret(room) => room.reborrow().made()[lane] = Place::of(result),
            Self::Signatures(room) => room.reborrow().made()[lane] = Place::of(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// Results get to their places through cuts and for a while, and are what the caller gets.
    #[test]
    fn results_get_to_their_places() {
        fn fill<P: Place>() -> Vec<P> {
            let fault = |index| P::of(Err(Error::Fault { index }));
            let mut results: Vec<P> = (0..5).map(fault).collect();
            let mut all = P::places(Room::Made(&mut results));
            all.put(0, Ok(Secret::new(vec![10])));
            let (mut head, tail) = all.split_at(2);
            head.reborrow().put(1, Ok(Secret::new(vec![11])));
            let (mut middle, last) = tail.split_at(2);
            middle.put(1, Ok(Secret::new(vec![13])));
            assert_eq!([head.len(), middle.len(), last.len()], [2, 2, 1]);
            results
        }
        fn octets<T: AsRef<[u8]>>(results: Vec<Result<T, Error>>) -> Vec<Result<u8, Error>> {
            let octet = |result: Result<T, Error>| result.map(|octets| octets.as_ref()[0]);
            results.into_iter().map(octet).collect()
        }
        let expected = [
            Ok(10),
            Ok(11),
            Err(Error::Fault { index: 2 }),
            Ok(13),
            Err(Error::Fault { index: 4 }),
        ];
        let secret = fill::<Octets>().into_iter();
        let secret = secret
            .map(|result| result.map(Secret::into_inner))
            .collect();
        assert_eq!(octets(secret), expected);
        assert_eq!(octets(fill::<Result<Signature, Error>>()), expected);
    }

    /// Places are made when they are first needed, and once.
    #[test]
    fn room_is_made() {
        let make = |i| 2 * i;
        let mut places = Vec::new();
        let mut room = Room::Unmade {
            places: &mut places,
            count: 5,
            make: &make,
        };
        assert_eq!(room.len(), 5);
        assert!(matches!(&room, Room::Unmade { places, .. } if places.is_empty()));
        room.reborrow().made()[1] = 7;
        let [head, tail] = room.split_at(2);
        assert_eq!([head.len(), tail.len()], [2, 3]);
        assert_eq!([head.made(), tail.made()].concat(), [0, 7, 4, 6, 8]);
        assert_eq!(places, [0, 7, 4, 6, 8]);
    }
}
