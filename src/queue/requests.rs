//! The requests that wait, by class and in the order of arrival.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::sync::Instant;
use super::turns::Work;

/// Requests with the times at which they came in.
pub(super) type Batch<T> = Vec<(Instant, T)>;

/// A request in the queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Ticket {
    /// Requests are numbered in the order of arrival.
    pub(super) number: u64,
    pub(super) work: Work,
}

/// Classes stay when they are empty: there are as many as lengths of keys.
pub(super) struct Requests<T>(BTreeMap<Work, Class<T>>);

/// By number.
type Class<T> = BTreeMap<u64, (Instant, T)>;

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn insert(&mut self, ticket: Ticket, since: Instant, request: T) {
        let class = self.0.entry(ticket.work).or_default();
        class.insert(ticket.number, (since, request));
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(Instant, T)> {
        self.0.get_mut(&ticket.work)?.remove(&ticket.number)
    }

    /// The classes with requests that wait, in ascending order of their work.
    pub(super) fn classes(&self) -> impl Iterator<Item = Work> {
        let waiting = self.0.iter().filter(|(_, class)| !class.is_empty());
        waiting.map(|(work, _)| *work)
    }

    /// The number of requests of a class.
    pub(super) fn len(&self, class: Work) -> usize {
        self.0.get(&class).map_or(0, BTreeMap::len)
    }

    /// When the oldest request came in.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let oldest = |class: &Class<T>| Some(class.first_key_value()?.1.0);
        self.0.values().filter_map(oldest).min()
    }

    /// Whether it is the oldest of its class.
    pub(super) fn is_oldest(&self, ticket: Ticket) -> bool {
        let class = self.0.get(&ticket.work);
        let oldest = class.and_then(BTreeMap::first_key_value);
        oldest.is_some_and(|(number, _)| *number == ticket.number)
    }

    /// Takes the oldest requests of a class, at most `count`, in the order of arrival.
    pub(super) fn first(&mut self, class: Work, count: usize) -> Batch<T> {
        let Some(class) = self.0.get_mut(&class) else {
            return Vec::new();
        };
        if count >= class.len() {
            return core::mem::take(class).into_values().collect();
        }
        let oldest = core::iter::from_fn(|| class.pop_first());
        oldest.take(count).map(|(_, request)| request).collect()
    }

    /// Takes all requests.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        let classes = core::mem::take(&mut self.0).into_values();
        let requests = classes.flat_map(BTreeMap::into_values);
        requests.map(|(_, request)| request).collect()
    }
}
