//! The requests that have been let in and wait to be taken, by class and in the order of arrival.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::array;

use super::doors::{DOORS, Doors, Place};
use super::sync::Instant;
use super::turns::Work;

/// Classes stay when they are empty: there are as many as lengths of keys.
pub(super) struct Inside<T>(BTreeMap<Work, Class<T>>);

/// The requests that are the same work, by the door by which they came.
struct Class<T>([BTreeMap<Place, T>; DOORS]);

/// Requests with the times at which they came in.
pub(super) type Batch<T> = Vec<(Instant, T)>;

impl<T> Inside<T> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Brings inside what is behind the doors.
    pub(super) fn let_in(&mut self, doors: &Doors<T>) {
        for (door, behind) in doors.take_all().enumerate() {
            for (work, mut behind) in behind {
                let class = self.0.entry(work).or_insert_with(Class::new);
                let inside = &mut class.0[door];
                // To append makes all of it anew.
                match behind.len() < inside.len() / 8 {
                    true => inside.extend(behind),
                    false => inside.append(&mut behind),
                }
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<T> {
        self.0.get_mut(&place.work)?.remove(place)
    }

    /// The classes with requests that wait, in ascending order of their work.
    pub(super) fn classes(&self) -> impl Iterator<Item = Work> {
        let waiting = self.0.iter().filter(|(_, class)| class.len() > 0);
        waiting.map(|(work, _)| *work)
    }

    /// The number of requests of a class.
    pub(super) fn len(&self, class: Work) -> usize {
        self.0.get(&class).map_or(0, Class::len)
    }

    /// Where the oldest request waits.
    pub(super) fn oldest(&self) -> Option<Place> {
        self.0.values().filter_map(Class::oldest).min()
    }

    /// The same for a class.
    pub(super) fn oldest_of(&self, class: Work) -> Option<Place> {
        self.0.get(&class)?.oldest()
    }

    /// Takes the oldest requests of a class, at most `count`. They are in the order of arrival for each door.
    pub(super) fn first(&mut self, class: Work, count: usize) -> Batch<T> {
        let class = self.0.get_mut(&class);
        class.map_or_else(Vec::new, |class| class.first(count))
    }

    /// Takes all requests.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        let classes = core::mem::take(&mut self.0).into_values();
        let requests = classes.flat_map(|class| class.0).flatten();
        requests.map(|(_, request)| request).collect()
    }
}

impl<T> Class<T> {
    fn new() -> Self {
        Self(array::from_fn(|_| BTreeMap::new()))
    }

    fn len(&self) -> usize {
        self.0.iter().map(BTreeMap::len).sum()
    }

    fn remove(&mut self, place: Place) -> Option<T> {
        self.0[place.door].remove(&place)
    }

    fn oldest(&self) -> Option<Place> {
        let firsts = self.0.iter().filter_map(BTreeMap::first_key_value);
        firsts.map(|(place, _)| *place).min()
    }

    fn first(&mut self, count: usize) -> Batch<T> {
        let all = self.len();
        // Few of many one by one, without a look at all the others.
        if count < all / 8 {
            let oldest = || {
                let place = self.oldest()?;
                Some((place.since, self.remove(place)?))
            };
            return core::iter::from_fn(oldest).take(count).collect();
        }
        // The first one that stays.
        let stays = (all > count).then(|| {
            let mut places: Vec<_> = self.0.iter().flat_map(BTreeMap::keys).collect();
            **places.select_nth_unstable(count).1
        });
        let mut batch = Vec::with_capacity(all.min(count));
        for inside in &mut self.0 {
            let rest = stays.map_or_else(BTreeMap::new, |place| inside.split_off(&place));
            let taken = core::mem::replace(inside, rest);
            batch.extend(
                taken
                    .into_iter()
                    .map(|(place, request)| (place.since, request)),
            );
        }
        batch
    }
}
