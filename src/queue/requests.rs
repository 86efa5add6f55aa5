//! The waiting requests, by class and in the order of arrival.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::sync::Instant;
use super::turns::Work;

/// Requests with their times of arrival.
pub(super) type Batch<T> = Vec<(Instant, T)>;

/// Identifies a request in the queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Ticket {
    /// The order of arrival.
    pub(super) number: u64,
    pub(super) work: Work,
}

/// The waiting requests of all classes. Empty classes are kept: there are only as many as key
/// lengths.
pub(super) struct Requests<T>(BTreeMap<Work, Class<T>>);

struct Class<T> {
    /// Sorted by number. The first one is not cancelled.
    requests: VecDeque<Numbered<T>>,
    /// The number of requests that are not cancelled.
    len: usize,
}

struct Numbered<T> {
    number: u64,
    since: Instant,
    /// `None` if cancelled.
    request: Option<T>,
}

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn insert(&mut self, ticket: Ticket, since: Instant, request: T) {
        let class = self.0.entry(ticket.work).or_insert_with(Class::new);
        class.insert(ticket.number, since, request);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(Instant, T)> {
        self.0.get_mut(&ticket.work)?.remove(ticket.number)
    }

    /// The classes with waiting requests, in ascending order of work.
    pub(super) fn classes(&self) -> impl Iterator<Item = Work> {
        let waiting = self.0.iter().filter(|(_, class)| class.len > 0);
        waiting.map(|(work, _)| *work)
    }

    /// The number of requests of a class.
    pub(super) fn len(&self, class: Work) -> usize {
        self.0.get(&class).map_or(0, |class| class.len)
    }

    /// The number of requests of all classes.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(|class| class.len).sum()
    }

    /// Arrival of the oldest request.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let oldest = |class: &Class<T>| Some(class.requests.front()?.since);
        self.0.values().filter_map(oldest).min()
    }

    /// Whether the request is the oldest of its class.
    pub(super) fn is_oldest(&self, ticket: Ticket) -> bool {
        let class = self.0.get(&ticket.work);
        let oldest = class.and_then(|class| class.requests.front());
        oldest.is_some_and(|oldest| oldest.number == ticket.number)
    }

    /// Takes the oldest requests of a class, at most `count`, in the order of arrival.
    pub(super) fn first(&mut self, class: Work, count: usize) -> Batch<T> {
        let class = self.0.get_mut(&class);
        class.map_or_else(Vec::new, |class| class.first(count))
    }

    /// Takes all requests.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        let classes = core::mem::take(&mut self.0).into_values();
        let requests = classes.flat_map(|class| class.requests);
        requests.filter_map(|numbered| numbered.request).collect()
    }
}

impl<T> Class<T> {
    const fn new() -> Self {
        Self {
            requests: VecDeque::new(),
            len: 0,
        }
    }

    fn insert(&mut self, number: u64, since: Instant, request: T) {
        let request = Some(request);
        self.requests.push_back(Numbered {
            number,
            since,
            request,
        });
        self.len += 1;
        // Requests get their numbers before they are inserted, so a few may arrive out of order.
        let mut at = self.requests.len() - 1;
        while at > 0 && self.requests[at - 1].number > number {
            self.requests.swap(at - 1, at);
            at -= 1;
        }
    }

    fn remove(&mut self, number: u64) -> Option<(Instant, T)> {
        let at = self
            .requests
            .binary_search_by_key(&number, |numbered| numbered.number);
        let numbered = &mut self.requests[at.ok()?];
        let removed = (numbered.since, numbered.request.take()?);
        self.len -= 1;
        // Keeps cancelled requests from piling up behind one that waits long.
        if self.requests.len() > 2 * self.len + 64 {
            self.requests.retain(|numbered| numbered.request.is_some());
        }
        self.drop_cancelled();
        Some(removed)
    }

    fn first(&mut self, count: usize) -> Batch<T> {
        let count = count.min(self.len);
        let mut batch = Vec::with_capacity(count);
        while batch.len() < count {
            let Some(numbered) = self.requests.pop_front() else {
                break;
            };
            batch.extend(numbered.request.map(|request| (numbered.since, request)));
        }
        self.len -= batch.len();
        self.drop_cancelled();
        batch
    }

    /// Drops cancelled requests at the front.
    fn drop_cancelled(&mut self) {
        while self
            .requests
            .front()
            .is_some_and(|first| first.request.is_none())
        {
            self.requests.pop_front();
        }
    }
}
