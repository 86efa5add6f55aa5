//! The waiting requests, by class and in the order of arrival.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::policy::{Class, Work};
use super::sync::Instant;

/// Requests with their times of arrival.
pub(super) type Batch<T> = Vec<(Instant, T)>;

/// Identifies a request in the queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Ticket {
    /// The order of arrival.
    pub(super) number: u64,
    pub(super) work: Work,
}

/// The waiting requests of all classes, by number.
///
/// A batch has requests of one class, and classes take turns, so that slow keys do not delay others.
/// This is round robin; because all requests of a class are the same work, no deficit counter is
/// needed.
pub(super) struct Requests<T> {
    /// Empty classes are kept: there are only as many as key lengths.
    classes: BTreeMap<Work, BTreeMap<u64, (Instant, T)>>,
    /// The class that had the last turn.
    last_turn: Option<Work>,
}

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        Self {
            classes: BTreeMap::new(),
            last_turn: None,
        }
    }

    pub(super) fn insert(&mut self, ticket: Ticket, since: Instant, request: T) {
        let class = self.classes.entry(ticket.work).or_default();
        class.insert(ticket.number, (since, request));
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(Instant, T)> {
        self.classes.get_mut(&ticket.work)?.remove(&ticket.number)
    }

    /// The number of requests of all classes.
    pub(super) fn count(&self) -> usize {
        self.classes.values().map(BTreeMap::len).sum()
    }

    /// Arrival of the oldest request.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let firsts = self.classes.values().filter_map(BTreeMap::first_key_value);
        firsts.map(|(_, (since, _))| *since).min()
    }

    /// Whether the request is the oldest of its class.
    pub(super) fn is_oldest(&self, ticket: Ticket) -> bool {
        let class = self.classes.get(&ticket.work);
        let oldest = class.and_then(BTreeMap::first_key_value);
        oldest.is_some_and(|(number, _)| *number == ticket.number)
    }

    /// The class that has the next turn, if a request waits.
    pub(super) fn next_turn(&self) -> Option<Class> {
        let waiting = || self.classes.iter().filter(|(_, class)| !class.is_empty());
        // The class with the next larger work, or else the smallest.
        let next = waiting().min_by_key(|(work, _)| (Some(**work) <= self.last_turn, **work));
        next.map(|(work, requests)| Class {
            work: *work,
            waiting: requests.len(),
            classes: waiting().count(),
        })
    }

    /// Takes the oldest requests of a class, at most `count`, in the order of arrival. The class has
    /// had its turn.
    pub(super) fn take_turn(&mut self, class: Work, count: usize) -> Batch<T> {
        self.last_turn = Some(class);
        let Some(requests) = self.classes.get_mut(&class).filter(|_| count > 0) else {
            return Vec::new();
        };
        // Faster than to pop one after the other.
        let rest = match requests.keys().nth(count).copied() {
            Some(number) => requests.split_off(&number),
            None => BTreeMap::new(),
        };
        core::mem::replace(requests, rest).into_values().collect()
    }

    /// Takes all requests.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        let classes = core::mem::take(&mut self.classes).into_values();
        let requests = classes.flat_map(BTreeMap::into_values);
        requests.map(|(_, request)| request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sync::now;
    use super::*;

    /// A class waits for at most one turn of each other class.
    #[test]
    fn classes_take_turns() {
        const RSA: [u32; 4] = [1024, 2048, 3072, 8192];
        let work = |bits| Work::of_request(bits, true);
        let mut requests = Requests::new();
        assert!(requests.next_turn().is_none());
        let mut turn = |classes: &[u32]| {
            for (number, bits) in (0..).zip(classes) {
                let work = work(*bits);
                requests.insert(Ticket { number, work }, now(), ());
            }
            let next = requests.next_turn().unwrap();
            assert_eq!((next.waiting, next.classes), (1, classes.len()));
            assert_eq!(requests.take_turn(next.work, 2).len(), 1);
            requests.take_all();
            RSA.iter()
                .position(|bits| work(*bits) == next.work)
                .unwrap()
        };
        assert_eq!([0; 6].map(|_| turn(&RSA[1..])), [1, 2, 3, 1, 2, 3]);
        // Alone, it has every turn.
        assert_eq!([0; 3].map(|_| turn(&RSA[2..3])), [2, 2, 2]);
        // A class that appears before or after the last turn's.
        assert_eq!([0; 4].map(|_| turn(&RSA[..3])), [0, 1, 2, 0]);
        assert_eq!([0; 3].map(|_| turn(&RSA)), [1, 2, 3]);
    }
}
