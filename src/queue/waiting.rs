//! Waiting requests until a worker takes them, and callers that wait for space.
//!
//! Callers put requests into a lock-free queue, the *injector*. Workers and computing callers sort
//! them by class, under the one lock. The lock also guards the callers that wait for space. No
//! caller's code runs under it: wakers are called, and requests dropped, after its release.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use crossbeam_queue::SegQueue;

use super::policy::{Policy, Work};
use super::requests::{Batch, Requests, Ticket};
use super::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, Instant, Mutex, MutexGuard, PoisonError, SeqCst,
    now, wait_timeout, yield_now,
};

pub(super) struct Waiting<T> {
    policy: Policy,
    injector: SegQueue<(Ticket, Instant, T)>,
    /// Requests accepted so far, including cancelled ones.
    accepted: AtomicU64,
    /// Requests in the injector and sorted, and those about to enter.
    count: AtomicUsize,
    /// Batches under way.
    under_way: AtomicUsize,
    /// Workers that sleep and have not been called. May be too high, never too low.
    asleep: AtomicUsize,
    is_closed: AtomicBool,
    state: Mutex<State<T>>,
    /// Workers sleep here.
    work: Condvar,
    /// Threads that have closed the queue sleep here until no batch is under way.
    idle: Condvar,
}

struct State<T> {
    requests: Requests<T>,
    /// Callers that wait for space, by the number of their first attempt.
    blocked: BTreeMap<u64, Waker>,
    /// The number of the next such caller.
    next: u64,
    /// Sleeping workers.
    sleepers: usize,
}

/// The state while it is locked.
type Locked<'a, T> = MutexGuard<'a, State<T>>;

/// Why a request was refused. With `Full`, it is returned to the caller; else it is dropped.
pub(super) enum Refused<T> {
    Full(T),
    Closed,
}

/// A batch, and the guard that counts it as under way.
pub(super) type Begun<'a, T> = (Batch<T>, UnderWay<'a, T>);

/// The result of [`Waiting::push_or_lead`].
pub(super) enum Pushed<'a, T> {
    /// The request waits for a worker.
    Waits(Ticket),
    /// The caller must compute this batch; its request is the last.
    Led(Begun<'a, T>),
}

impl<T> Waiting<T> {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            injector: SegQueue::new(),
            accepted: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            state: Mutex::new(State {
                requests: Requests::new(),
                blocked: BTreeMap::new(),
                next: 0,
                sleepers: 0,
            }),
            work: Condvar::new(),
            idle: Condvar::new(),
        }
    }

    /// Inserts a request of the given work.
    pub(super) fn push(&self, work: Work, request: T) -> Result<Ticket, Refused<T>> {
        let (ticket, count) = self.push_quietly(work, request)?;
        self.announce(count);
        Ok(ticket)
    }

    /// Inserts a request of a caller that may compute. If its request would be computed at once,
    /// the caller gets the batch, and no worker needs to be woken.
    pub(super) fn push_or_lead(&self, work: Work, request: T) -> Result<Pushed<'_, T>, Refused<T>> {
        let (ticket, count) = self.push_quietly(work, request)?;
        Ok(match self.lead(ticket) {
            Some(begun) => Pushed::Led(begun),
            None => {
                self.announce(count);
                Pushed::Waits(ticket)
            }
        })
    }

    /// Inserts a request without calling a worker; returns the number that wait, this one included.
    fn push_quietly(&self, work: Work, request: T) -> Result<(Ticket, usize), Refused<T>> {
        // Counted first: workers do not end while a request is counted, even if it is not there
        // yet.
        let reserve = |count| (count < self.policy.capacity).then_some(count + 1);
        let before = self.count.fetch_update(SeqCst, SeqCst, reserve);
        if self.is_closed.load(SeqCst) {
            if before.is_ok() {
                self.count.fetch_sub(1, SeqCst);
            }
            return Err(Refused::Closed);
        }
        let Ok(before) = before else {
            return Err(Refused::Full(request));
        };
        let number = self.accepted.fetch_add(1, SeqCst);
        let ticket = Ticket { number, work };
        self.injector.push((ticket, now(), request));
        Ok((ticket, before + 1))
    }

    /// Calls a worker, if one must look at the `count` waiting requests after another was inserted.
    ///
    /// A sleeping worker watches the first request; later ones matter only if there are enough for
    /// a batch. A worker that is about to sleep counts itself first, and then looks for requests.
    fn announce(&self, count: usize) {
        if self.asleep.load(SeqCst) == 0 {
            return;
        }
        let under_way = self.under_way.load(SeqCst);
        let wait = self.policy.remaining_wait(count, Duration::ZERO, under_way);
        if wait.is_some_and(|wait| count == 1 || wait.is_zero()) {
            self.call_worker(&self.lock());
        }
    }

    /// Takes the request and older ones of its class, if a batch may begin and that class has its
    /// turn.
    fn lead(&self, ticket: Ticket) -> Option<Begun<'_, T>> {
        let may_lead = |count| self.policy.may_lead(count, self.under_way.load(SeqCst));
        // Avoids the lock if a batch may not begin.
        if !may_lead(self.count.load(SeqCst)) {
            return None;
        }
        let mut state = self.lock();
        self.sort_in(&mut state);
        // Others may be counted, but not inserted yet.
        if !may_lead(state.requests.count()) {
            return None;
        }
        let next = state.requests.next_turn();
        let class = next.filter(|class| class.work == ticket.work)?;
        let under_way = self.under_way.load(SeqCst);
        let share = self.policy.caller_share(class, under_way)?;
        if share == 1 && !state.requests.is_oldest(ticket) {
            return None;
        }
        let own = state.requests.remove(ticket)?;
        let others = share.saturating_sub(1);
        let mut batch = state.requests.take_turn(class.work, others);
        batch.push(own);
        Some(self.begin(state, batch))
    }

    /// Inserts a request of a caller that can wait for space; if there is none, `waker` is woken
    /// when there is.
    ///
    /// `turn` is the caller's place among those that wait, initially `None`. Unless another call
    /// uses it up, [`stop_waiting`](Self::stop_waiting) must release it.
    pub(super) fn push_or_wait(
        &self,
        work: Work,
        request: T,
        turn: &mut Option<u64>,
        waker: &Waker,
    ) -> Result<Ticket, Refused<T>> {
        let mut result = self.push(work, request);
        if let Err(Refused::Full(request)) = result {
            // Cloned and dropped outside the lock: a waker is the caller's code.
            let waker = waker.clone();
            let mut state = self.lock();
            let number = *turn.get_or_insert(state.next);
            state.next += 1;
            let old = state.blocked.insert(number, waker);
            drop(state);
            drop(old);
            // Space that became free before the waker was stored woke somebody else.
            result = self.push(work, request);
        }
        let is_refused = matches!(result, Err(Refused::Full(_)));
        if let Some(number) = turn.take_if(|_| !is_refused) {
            self.stop_waiting(number);
        }
        result
    }

    /// Removes a request, unless a worker has taken it.
    pub(super) fn cancel(&self, ticket: Ticket) -> Option<T> {
        let mut state = self.lock();
        self.sort_in(&mut state);
        let (_, request) = state.requests.remove(ticket)?;
        self.count.fetch_sub(1, SeqCst);
        let waker = state.blocked.pop_first();
        drop(state);
        wake(waker);
        Some(request)
    }

    /// Gives up waiting for space.
    pub(super) fn stop_waiting(&self, turn: u64) {
        let mut state = self.lock();
        let own = state.blocked.remove(&turn);
        // A caller that was woken and gives up passes the space on.
        let passed_on = match own {
            None if self.count.load(SeqCst) < self.policy.capacity => state.blocked.pop_first(),
            _ => None,
        };
        drop(state);
        drop(own);
        wake(passed_on);
    }

    /// Returns the next batch, when it is time for one; `None` when the queue is closed and empty.
    /// Called by workers.
    pub(super) fn take(&self) -> Option<Begun<'_, T>> {
        let mut state = self.lock();
        let class = loop {
            let count = self.count.load(SeqCst);
            let is_closed = self.is_closed.load(SeqCst);
            if count == 0 && is_closed {
                return None;
            }
            // Callers that were woken for space may be slow; the others need not wait for them.
            if count == 0 && !state.blocked.is_empty() {
                let wakers = core::mem::take(&mut state.blocked);
                drop(state);
                wake(wakers);
                state = self.lock();
                continue;
            }
            self.sort_in(&mut state);
            let sorted = state.requests.count();
            let mut wait = None;
            if let (Some(oldest), Some(class)) =
                (state.requests.oldest(), state.requests.next_turn())
            {
                let age = now().saturating_duration_since(oldest);
                let under_way = self.under_way.load(SeqCst);
                wait = self.policy.remaining_wait(sorted, age, under_way);
                if is_closed || wait == Some(Duration::ZERO) {
                    break class;
                }
            }
            if sorted < count {
                // The others are counted, but not inserted yet.
                drop(state);
                yield_now();
                state = self.lock();
                continue;
            }
            state = self.sleep(state, count, wait.unwrap_or(Duration::MAX));
        };
        let share = self.policy.share(class, self.under_way.load(SeqCst));
        let batch = state.requests.take_turn(class.work, share);
        Some(self.begin(state, batch))
    }

    /// Sorts the requests of the injector by class.
    fn sort_in(&self, state: &mut Locked<'_, T>) {
        while let Some((ticket, since, request)) = self.injector.pop() {
            state.requests.insert(ticket, since, request);
        }
    }

    /// Counts a batch that was taken, and wakes the callers for whom there is space.
    fn begin(&self, mut state: Locked<'_, T>, batch: Batch<T>) -> Begun<'_, T> {
        // Before `count` drops: a thread that closes the queue waits for either.
        let under_way = self.under_way.fetch_add(1, SeqCst) + 1;
        let rest = self.count.fetch_sub(batch.len(), SeqCst) - batch.len();
        // Another worker must watch the rest, unless it waits for the end of a batch.
        let wait = self.policy.remaining_wait(rest, Duration::ZERO, under_way);
        if rest > 0 && wait.is_some() {
            self.call_worker(&state);
        }
        let space = self.policy.capacity.saturating_sub(rest);
        let blocked = core::iter::from_fn(|| state.blocked.pop_first());
        let wakers: Vec<_> = blocked.take(space).collect();
        drop(state);
        let begun = (batch, UnderWay(self));
        wake(wakers);
        begun
    }

    /// Stops accepting requests. Returns the waiting requests if they are `cancelled`; otherwise
    /// workers still take them.
    pub(super) fn close(&self, cancelled: bool) -> Vec<T> {
        let mut state = self.lock();
        self.is_closed.store(true, SeqCst);
        self.sort_in(&mut state);
        let wakers = core::mem::take(&mut state.blocked);
        let requests = match cancelled {
            true => state.requests.take_all(),
            false => Vec::new(),
        };
        self.count.fetch_sub(requests.len(), SeqCst);
        self.work.notify_all();
        drop(state);
        wake(wakers);
        requests
    }

    /// Waits until no batch is under way, once the queue is closed and empty.
    pub(super) fn wait_until_idle(&self) {
        let mut state = self.lock();
        while self.under_way.load(SeqCst) > 0 {
            state = wait_timeout(&self.idle, state, Duration::MAX);
        }
    }

    /// Requests accepted so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(SeqCst)
    }

    /// The numbers of waiting requests and of batches under way.
    pub(super) fn occupancy(&self) -> (usize, usize) {
        (self.count.load(SeqCst), self.under_way.load(SeqCst))
    }

    /// Whether the queue is open but has no space.
    pub(super) fn is_full(&self) -> bool {
        !self.is_closed.load(SeqCst) && self.count.load(SeqCst) >= self.policy.capacity
    }

    /// Wakes a sleeping worker that has not been called, if there is one.
    fn call_worker(&self, _under_lock: &Locked<'_, T>) {
        if self.asleep.load(SeqCst) > 0 {
            self.asleep.fetch_sub(1, SeqCst);
            self.work.notify_one();
        }
    }

    /// Sleeps for at most `limit`, unless the number of requests differs from `count`.
    fn sleep<'a>(&self, mut state: Locked<'a, T>, count: usize, limit: Duration) -> Locked<'a, T> {
        state.sleepers += 1;
        self.asleep.fetch_add(1, SeqCst);
        // Callers that came before `asleep` was raised have called no worker.
        if self.count.load(SeqCst) == count {
            state = wait_timeout(&self.work, state, limit);
        }
        state.sleepers -= 1;
        // Some workers have woken without a call.
        self.asleep.fetch_min(state.sleepers, SeqCst);
        state
    }

    /// A poisoned lock is taken anyway: nothing panics under it.
    fn lock(&self) -> Locked<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a batch as under way until it is dropped.
pub(super) struct UnderWay<'a, T>(&'a Waiting<T>);

impl<T> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        let Self(queue) = self;
        let was_last = queue.under_way.fetch_sub(1, SeqCst) == 1;
        // With a batch less, fewer requests may suffice to begin one.
        if queue.count.load(SeqCst) > 0 {
            queue.call_worker(&queue.lock());
        }
        // A closing thread sets `is_closed` before it reads `under_way`.
        if was_last && queue.is_closed.load(SeqCst) {
            let _under_lock = queue.lock();
            queue.idle.notify_all();
        }
    }
}

fn wake(wakers: impl IntoIterator<Item = (u64, Waker)>) {
    wakers.into_iter().for_each(|(_, waker)| super::wake(waker));
}
