//! How callers come in: by several doors, each with a lock of its own, so that they seldom wait for each other.

use alloc::collections::BTreeMap;
use core::array;

use super::sync::{AtomicUsize, Instant, Mutex, MutexGuard, PoisonError, SeqCst, door, now};
use super::turns::Work;

/// So many callers can come in at the same time.
pub(super) const DOORS: usize = 16;

pub(super) struct Doors<T>([Door<T>; DOORS]);

/// In a cache line of its own, or two where they are fetched by twos.
#[repr(align(128))]
struct Door<T> {
    behind: Mutex<Behind<T>>,
    /// How many have come in by it so far.
    count: AtomicUsize,
}

/// What has come in by a door, until it is let in further.
struct Behind<T> {
    requests: ByWork<T>,
    is_closed: bool,
}

/// The requests of each class, in the order of arrival.
pub(super) type ByWork<T> = BTreeMap<Work, BTreeMap<Place, T>>;

/// Where a request waits: in the order of arrival.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Place {
    pub(super) since: Instant,
    /// The first of its door has number 0.
    number: usize,
    pub(super) door: usize,
    pub(super) work: Work,
}

/// Why a request was not let in; it comes back.
pub(super) enum Refused<T> {
    Full(T),
    Closed(T),
}

impl<T> Doors<T> {
    pub(super) fn new() -> Self {
        Self(array::from_fn(|_| Door {
            behind: Mutex::new(Behind {
                requests: BTreeMap::new(),
                is_closed: false,
            }),
            count: AtomicUsize::new(0),
        }))
    }

    /// Lets a request in by the caller's door if `admit` does, which is called under the lock of that door and says what is
    /// returned with the request's place.
    pub(super) fn enter<R>(
        &self,
        work: Work,
        request: T,
        admit: impl FnOnce() -> Option<R>,
    ) -> Result<(Place, R), Refused<T>> {
        let door = door() % DOORS;
        let mut behind = self.0[door].lock();
        if behind.is_closed {
            return Err(Refused::Closed(request));
        }
        let Some(admitted) = admit() else {
            return Err(Refused::Full(request));
        };
        let place = Place {
            since: now(),
            number: self.0[door].count.fetch_add(1, SeqCst),
            door,
            work,
        };
        let class = behind.requests.entry(work).or_default();
        class.insert(place, request);
        Ok((place, admitted))
    }

    /// Takes a request back that is still behind its door; `leaving` is called under the lock of that door.
    pub(super) fn remove(&self, place: Place, leaving: impl FnOnce()) -> Option<T> {
        let mut behind = self.0[place.door].lock();
        let class = behind.requests.get_mut(&place.work)?;
        let request = class.remove(&place)?;
        leaving();
        Some(request)
    }

    /// Takes what is behind each door.
    pub(super) fn take_all(&self) -> impl Iterator<Item = ByWork<T>> {
        self.0
            .iter()
            .map(|door| core::mem::take(&mut door.lock().requests))
    }

    /// Lets nobody in any more.
    pub(super) fn close(&self) {
        for door in &self.0 {
            door.lock().is_closed = true;
        }
    }

    /// How many have come in so far.
    pub(super) fn count(&self) -> u64 {
        let counts = self.0.iter().map(|door| door.count.load(SeqCst));
        counts.map(|count| count as u64).sum()
    }
}

impl<T> Door<T> {
    /// Nothing panics under the lock.
    fn lock(&self) -> MutexGuard<'_, Behind<T>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
