//! The requests that have been let in and wait to be taken, in the order of arrival.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::array;

use super::doors::{DOORS, Doors, Place};
use super::sync::Instant;

/// By the door by which they came.
pub(super) struct Inside<T>([BTreeMap<Place, T>; DOORS]);

/// Requests with the times at which they came in.
pub(super) type Batch<T> = Vec<(Instant, T)>;

impl<T> Inside<T> {
    pub(super) fn new() -> Self {
        Self(array::from_fn(|_| BTreeMap::new()))
    }

    /// Brings inside what is behind the doors.
    pub(super) fn let_in(&mut self, doors: &Doors<T>) {
        for (inside, mut behind) in self.0.iter_mut().zip(doors.take_all()) {
            // To append makes all of it anew.
            match behind.len() < inside.len() / 8 {
                true => inside.extend(behind),
                false => inside.append(&mut behind),
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<T> {
        self.0[place.door].remove(&place)
    }

    /// Where the oldest request waits.
    pub(super) fn oldest(&self) -> Option<Place> {
        let firsts = self.0.iter().filter_map(BTreeMap::first_key_value);
        firsts.map(|(place, _)| *place).min()
    }

    /// Takes the oldest requests, at most `count`. They are in the order of arrival for each door.
    pub(super) fn first(&mut self, count: usize) -> Batch<T> {
        let all = self.0.iter().map(BTreeMap::len).sum::<usize>();
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
