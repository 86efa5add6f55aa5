//! The waiting room: requests from their call until a worker takes them, and callers for whom there is no room yet.
//!
//! All of it is under one lock. No caller's code runs under that lock: wakers are called, and requests dropped, after it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::task::Waker;
use core::time::Duration;

use super::sync::{
    Condvar, Instant, Mutex, MutexGuard, PoisonError, TryLockError, now, wait_timeout,
};

/// When a batch begins; see [`QueueBuilder`](super::QueueBuilder).
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The most requests that wait.
    pub(super) capacity: usize,
    /// With fewer an idle backend waits.
    pub(super) min_batch: usize,
    /// The most requests of a batch, and enough for one beside another.
    pub(super) max_batch: usize,
    /// How long the oldest request waits for others.
    pub(super) max_wait: Duration,
}

impl Policy {
    /// For how much longer to wait for more than the `waiting` requests, of which the oldest came `age` ago, while
    /// `under_way` batches are being computed; zero to begin now.
    fn remaining_wait(&self, waiting: usize, age: Duration, under_way: usize) -> Duration {
        let enough = match under_way {
            0 => self.min_batch,
            _ => self.max_batch,
        };
        // Where no more can come, there is nothing to wait for.
        if waiting >= enough.min(self.max_batch).min(self.capacity) {
            return Duration::ZERO;
        }
        self.max_wait.saturating_sub(age)
    }
}

pub(super) struct Room<T> {
    policy: Policy,
    state: Mutex<State<T>>,
    /// Where workers sleep.
    work: Condvar,
}

struct State<T> {
    /// By number, which is their order of arrival, with the time at which they came in.
    waiting: BTreeMap<u64, (Instant, T)>,
    /// Callers who wait for room, by the number of their first attempt.
    outside: BTreeMap<u64, Waker>,
    /// The next number.
    next: u64,
    /// Batches that are being computed.
    under_way: usize,
    /// Workers that sleep.
    asleep: usize,
    is_closed: bool,
}

/// Requests with the times at which they came in.
pub(super) type Batch<T> = Vec<(Instant, T)>;

/// Why a request was not let in; it comes back.
pub(super) enum Refused<T> {
    Full(T),
    Closed(T),
}

impl<T> Room<T> {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: Mutex::new(State {
                waiting: BTreeMap::new(),
                outside: BTreeMap::new(),
                next: 0,
                under_way: 0,
                asleep: 0,
                is_closed: false,
            }),
            work: Condvar::new(),
        }
    }

    /// Lets a request in and says under which number.
    pub(super) fn enter(&self, request: T) -> Result<u64, Refused<T>> {
        let since = now();
        self.admit(&mut self.lock(), since, request)
    }

    /// The same for a caller who waits for room: if there is none, `waker` will be woken when there is. `ticket` is the
    /// caller's place among those who wait, at first none; it has to be given back by
    /// [`stop_waiting`](Self::stop_waiting) if it is not used up by another call.
    pub(super) fn enter_or_wait(
        &self,
        request: T,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Result<u64, Refused<T>> {
        // A waker is the caller's code.
        let waker = waker.clone();
        let since = now();
        let mut state = self.lock();
        let result = self.admit(&mut state, since, request);
        let old = match result {
            Err(Refused::Full(_)) => {
                let number = *ticket.get_or_insert_with(|| state.number());
                state.outside.insert(number, waker)
            }
            _ => ticket
                .take()
                .and_then(|number| state.outside.remove(&number)),
        };
        drop(state);
        drop(old);
        result
    }

    /// Every caller passes through here, one at a time.
    fn admit(&self, state: &mut State<T>, since: Instant, request: T) -> Result<u64, Refused<T>> {
        if state.is_closed {
            return Err(Refused::Closed(request));
        }
        if state.waiting.len() >= self.policy.capacity {
            return Err(Refused::Full(request));
        }
        let number = state.number();
        state.waiting.insert(number, (since, request));
        // The first request is watched from now on by a worker, if one sleeps; to the others it matters whether
        // there are enough.
        let count = state.waiting.len();
        let wait = self
            .policy
            .remaining_wait(count, Duration::ZERO, state.under_way);
        if state.asleep > 0 && (count == 1 || wait.is_zero()) {
            self.work.notify_one();
        }
        Ok(number)
    }

    /// Takes a request back, if it has not been taken by a worker.
    pub(super) fn leave(&self, number: u64) -> Option<T> {
        let mut state = self.lock();
        let (_, request) = state.waiting.remove(&number)?;
        let waker = state.outside.pop_first();
        drop(state);
        wake(waker);
        Some(request)
    }

    /// Gives up waiting for room.
    pub(super) fn stop_waiting(&self, ticket: u64) {
        let mut state = self.lock();
        let own = state.outside.remove(&ticket);
        // Who has been woken and does not come in lets another one try.
        let passed_on = match own {
            None if state.waiting.len() < self.policy.capacity => state.outside.pop_first(),
            _ => None,
        };
        drop(state);
        drop(own);
        wake(passed_on);
    }

    /// The next batch, when it is time for one; `None` when the room is closed and empty. Called by workers.
    pub(super) fn take(&self) -> Option<(Batch<T>, UnderWay<'_, T>)> {
        let mut state = self.lock();
        loop {
            let Some(first) = state.waiting.first_key_value() else {
                if state.is_closed {
                    return None;
                }
                // Whoever was woken while there was room may be slow to come; the others need not wait for that.
                if !state.outside.is_empty() {
                    let wakers = core::mem::take(&mut state.outside);
                    drop(state);
                    wake(wakers);
                    state = self.lock();
                    continue;
                }
                state = self.sleep(state, None);
                continue;
            };
            let age = now().saturating_duration_since(first.1.0);
            let count = state.waiting.len();
            let wait = self.policy.remaining_wait(count, age, state.under_way);
            if state.is_closed || wait.is_zero() {
                break;
            }
            state = self.sleep(state, Some(wait));
        }
        let batch = state.first(self.policy.max_batch);
        state.under_way += 1;
        // Someone else is to watch over the rest.
        if !state.waiting.is_empty() && state.asleep > 0 {
            self.work.notify_one();
        }
        let wakers = state.let_try(self.policy.capacity);
        drop(state);
        wake(wakers);
        Some((batch.into_values().collect(), UnderWay(self)))
    }

    /// Lets nobody in from now on, and returns the requests that wait, if they are to be `cancelled`; else workers take
    /// them still.
    pub(super) fn close(&self, cancelled: bool) -> Vec<T> {
        let mut state = self.lock();
        state.is_closed = true;
        let wakers = core::mem::take(&mut state.outside);
        let requests = match cancelled {
            true => core::mem::take(&mut state.waiting),
            false => BTreeMap::new(),
        };
        self.work.notify_all();
        drop(state);
        wake(wakers);
        requests.into_values().map(|(_, request)| request).collect()
    }

    /// The number of requests that wait, and that of batches under way.
    pub(super) fn occupancy(&self) -> (usize, usize) {
        let state = self.lock();
        (state.waiting.len(), state.under_way)
    }

    /// Whether there is neither room nor a shutdown.
    pub(super) fn is_full(&self) -> bool {
        let state = self.lock();
        !state.is_closed && state.waiting.len() >= self.policy.capacity
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State<T>>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State<T>> {
        state.asleep += 1;
        let mut state = match limit {
            Some(limit) => wait_timeout(&self.work, state, limit),
            None => {
                let result = self.work.wait(state);
                result.unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.asleep -= 1;
        state
    }

    /// Tries for some microseconds before it sleeps: the lock is held for a tenth of one, and whoever sleeps costs its holder a
    /// system call. Nothing panics under the lock.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        const DOUBLINGS: u32 = 6;
        for doubling in 0..DOUBLINGS {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(state)) => return state.into_inner(),
                Err(TryLockError::WouldBlock) => (0..1 << doubling).for_each(|_| spin_loop()),
            }
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes the oldest requests, at most `count`.
    fn first(&mut self, count: usize) -> BTreeMap<u64, (Instant, T)> {
        let mut taken = core::mem::take(&mut self.waiting);
        if taken.len() > count {
            // Numbers have gaps, where requests have left.
            let next = taken.keys().nth(count).copied();
            self.waiting = next.map_or_else(BTreeMap::new, |next| taken.split_off(&next));
        }
        taken
    }

    /// The wakers of as many callers as there is room for.
    fn let_try(&mut self, capacity: usize) -> Vec<(u64, Waker)> {
        let room = capacity.saturating_sub(self.waiting.len());
        let wakers = core::iter::from_fn(|| self.outside.pop_first());
        wakers.take(room).collect()
    }
}

/// A batch that is being computed, until this is dropped.
pub(super) struct UnderWay<'a, T>(&'a Room<T>);

impl<T> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.under_way -= 1;
        // Fewer requests may be enough now.
        if !state.waiting.is_empty() && state.asleep > 0 {
            self.0.work.notify_one();
        }
    }
}

fn wake(wakers: impl IntoIterator<Item = (u64, Waker)>) {
    for (_, waker) in wakers {
        super::wake(waker);
    }
}
