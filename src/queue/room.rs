//! The waiting room: requests from their call until a worker takes them, and callers for whom there is no room yet.
//!
//! Callers come in by several [doors](super::doors), each with a lock of its own. Workers, and callers who compute, let in from
//! all doors. They, and callers who wait for room, are under one lock, which may be taken before a door's, never after
//! it. No caller's code runs under a lock: wakers are called, and requests dropped, after it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::doors::{Doors, Place, Refused};
use super::inside::{Batch, Inside};
use super::policy::{Class, Policy};
use super::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, PoisonError, SeqCst, now, wait_timeout,
};
use super::turns::{Turns, Work};

pub(super) struct Room<T> {
    policy: Policy,
    doors: Doors<T>,
    /// The number of requests behind the doors and inside.
    waiting: AtomicUsize,
    /// Batches that are being computed.
    under_way: AtomicUsize,
    /// Those of them that callers compute.
    led: AtomicUsize,
    /// Workers that sleep and have not been called. May be too high, never too low.
    asleep: AtomicUsize,
    is_closed: AtomicBool,
    state: Mutex<State<T>>,
    /// Where workers sleep.
    work: Condvar,
    /// Where those sleep who have closed the room and wait for callers that compute.
    leaders_gone: Condvar,
}

struct State<T> {
    inside: Inside<T>,
    turns: Turns,
    /// Callers who wait for room, by the number of their first attempt.
    outside: BTreeMap<u64, Waker>,
    /// The next such number.
    next: u64,
    /// Workers that sleep.
    sleepers: usize,
}

/// Those of callers who waited for room.
type Wakers = Vec<(u64, Waker)>;

/// What became of a request that was let in with [`Room::enter_or_lead`].
pub(super) enum Entry<'a, T> {
    /// It waits for a worker.
    Waits(Place),
    /// It is the last of this batch, which the caller is to compute.
    Led(Batch<T>, UnderWay<'a, T>),
}

impl<T> Room<T> {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            doors: Doors::new(),
            waiting: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            led: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            state: Mutex::new(State {
                inside: Inside::new(),
                turns: Turns::new(),
                outside: BTreeMap::new(),
                next: 0,
                sleepers: 0,
            }),
            work: Condvar::new(),
            leaders_gone: Condvar::new(),
        }
    }

    /// Lets a request in that is so much work, and says where it waits.
    pub(super) fn enter(&self, work: Work, request: T) -> Result<Place, Refused<T>> {
        let (place, count) = self.enter_quietly(work, request)?;
        self.announce(count);
        Ok(place)
    }

    /// The same for a caller that has time: if its request is one of those that would be computed now, it gets them as its
    /// batch, and no worker has to be woken.
    pub(super) fn enter_or_lead(&self, work: Work, request: T) -> Result<Entry<'_, T>, Refused<T>> {
        let (place, count) = self.enter_quietly(work, request)?;
        Ok(match self.lead(place) {
            Some((batch, under_way)) => Entry::Led(batch, under_way),
            None => {
                self.announce(count);
                Entry::Waits(place)
            }
        })
    }

    /// Lets a request in without a word to the workers, and says how many wait with it.
    fn enter_quietly(&self, work: Work, request: T) -> Result<(Place, usize), Refused<T>> {
        // Under the lock of the door: who sees the number finds the request behind it.
        let reserve = |waiting| (waiting < self.policy.capacity).then_some(waiting + 1);
        let admit = || self.waiting.fetch_update(SeqCst, SeqCst, reserve).ok();
        let (place, before) = self.doors.enter(work, request, admit)?;
        Ok((place, before + 1))
    }

    /// Calls a worker, if one is to look at the `count` requests that wait now that another has come in.
    ///
    /// The first request is watched from now on by a worker, if one sleeps; to the others it matters whether there are
    /// enough. Who is about to sleep counts itself first, and then looks whether somebody has come.
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

    /// The request that waits there, and older ones of its class with it, if a batch may begin now and it is the turn of
    /// that class.
    fn lead(&self, place: Place) -> Option<(Batch<T>, UnderWay<'_, T>)> {
        let may_lead = || {
            let (waiting, under_way) = self.occupancy();
            self.policy.may_lead(waiting, under_way)
        };
        // Nobody's lock is taken for what cannot be.
        if !may_lead() {
            return None;
        }
        let mut state = self.lock();
        state.inside.let_in(&self.doors);
        let class = state.next_turn().filter(|class| class.work == place.work)?;
        if !may_lead() {
            return None;
        }
        let share = self
            .policy
            .caller_share(class, self.under_way.load(SeqCst))?;
        let is_passed_over = |oldest| share == 1 && oldest != place;
        if state
            .inside
            .oldest_of(class.work)
            .is_some_and(is_passed_over)
        {
            return None;
        }
        let own = state.inside.remove(place)?;
        let mut batch = state.inside.first(class.work, share.saturating_sub(1));
        batch.push((place.since, own));
        state.turns.end(class.work);
        // Before the requests are gone: who closes the room waits for either.
        self.led.fetch_add(1, SeqCst);
        let wakers = self.begin(&mut state, batch.len());
        drop(state);
        let is_led = true;
        let under_way = UnderWay { room: self, is_led };
        wake(wakers);
        Some((batch, under_way))
    }

    /// The same for a caller who waits for room: if there is none, `waker` will be woken when there is. `ticket` is the
    /// caller's place among those who wait, at first none; it has to be given back by
    /// [`stop_waiting`](Self::stop_waiting) if it is not used up by another call.
    pub(super) fn enter_or_wait(
        &self,
        work: Work,
        request: T,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Result<Place, Refused<T>> {
        // A waker is the caller's code.
        let waker = waker.clone();
        let request = match self.enter(work, request) {
            Err(Refused::Full(request)) => request,
            result => {
                let own = ticket.take();
                drop(own.and_then(|number| self.lock().outside.remove(&number)));
                return result;
            }
        };
        let mut state = self.lock();
        let number = *ticket.get_or_insert_with(|| state.number());
        let old = state.outside.insert(number, waker);
        drop(state);
        drop(old);
        // A place that became free before that was offered to others, if to anybody.
        let result = self.enter(work, request);
        if !matches!(result, Err(Refused::Full(_))) {
            *ticket = None;
            self.stop_waiting(number);
        }
        result
    }

    /// Takes a request back, if it has not been taken by a worker.
    pub(super) fn leave(&self, place: Place) -> Option<T> {
        // Under the lock of the requests: a worker that finds them gone does not find them counted.
        let uncount = || {
            self.waiting.fetch_sub(1, SeqCst);
        };
        // If it is not behind the door any more, it is inside or gone.
        let request = match self.doors.remove(place, uncount) {
            Some(request) => request,
            None => {
                let mut state = self.lock();
                let request = state.inside.remove(place)?;
                uncount();
                request
            }
        };
        let waker = self.lock().outside.pop_first();
        wake(waker);
        Some(request)
    }

    /// Gives up waiting for room.
    pub(super) fn stop_waiting(&self, ticket: u64) {
        let mut state = self.lock();
        let own = state.outside.remove(&ticket);
        // Who has been woken and does not come in lets another one try.
        let passed_on = match own {
            None if self.waiting.load(SeqCst) < self.policy.capacity => state.outside.pop_first(),
            _ => None,
        };
        drop(state);
        drop(own);
        wake(passed_on);
    }

    /// The next batch, when it is time for one; `None` when the room is closed and empty. Called by workers.
    pub(super) fn take(&self) -> Option<(Batch<T>, UnderWay<'_, T>)> {
        let mut state = self.lock();
        let class = loop {
            let waiting = self.waiting.load(SeqCst);
            let is_closed = self.is_closed.load(SeqCst);
            if waiting == 0 {
                if is_closed {
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
                state = self.sleep(state, waiting, None);
                continue;
            }
            state.inside.let_in(&self.doors);
            // It may have left meanwhile.
            let (Some(oldest), Some(class)) = (state.inside.oldest(), state.next_turn()) else {
                continue;
            };
            let age = now().saturating_duration_since(oldest.since);
            let under_way = self.under_way.load(SeqCst);
            let wait = self.policy.remaining_wait(waiting, age, under_way);
            if is_closed || wait == Some(Duration::ZERO) {
                break class;
            }
            state = self.sleep(state, waiting, wait);
        };
        let share = self.policy.share(class, self.under_way.load(SeqCst));
        let batch = state.inside.first(class.work, share);
        state.turns.end(class.work);
        let wakers = self.begin(&mut state, batch.len());
        drop(state);
        let is_led = false;
        let under_way = UnderWay { room: self, is_led };
        wake(wakers);
        Some((batch, under_way))
    }

    /// Counts a batch that has been taken, and returns whom there is room for now.
    fn begin(&self, state: &mut MutexGuard<'_, State<T>>, count: usize) -> Wakers {
        let under_way = self.under_way.fetch_add(1, SeqCst) + 1;
        let rest = self.waiting.fetch_sub(count, SeqCst) - count;
        // Someone else is to watch over the rest, unless it has to wait for the end of a batch.
        let wait = self.policy.remaining_wait(rest, Duration::ZERO, under_way);
        if rest > 0 && wait.is_some() {
            self.call_worker(state);
        }
        state.let_try(self.policy.capacity.saturating_sub(rest))
    }

    /// Lets nobody in from now on, and returns the requests that wait, if they are to be `cancelled`; else workers take
    /// them still.
    pub(super) fn close(&self, cancelled: bool) -> Vec<T> {
        let mut state = self.lock();
        self.is_closed.store(true, SeqCst);
        self.doors.close();
        state.inside.let_in(&self.doors);
        let wakers = core::mem::take(&mut state.outside);
        let requests = match cancelled {
            true => state.inside.take_all(),
            false => Vec::new(),
        };
        self.waiting.fetch_sub(requests.len(), SeqCst);
        self.work.notify_all();
        drop(state);
        wake(wakers);
        requests
    }

    /// Waits until the last caller that computes is done with it, once the room is closed and empty.
    pub(super) fn wait_for_leaders(&self) {
        let mut state = self.lock();
        while self.led.load(SeqCst) > 0 {
            let result = self.leaders_gone.wait(state);
            state = result.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many requests have come in so far.
    pub(super) fn accepted(&self) -> u64 {
        self.doors.count()
    }

    /// The number of requests that wait, and that of batches under way.
    pub(super) fn occupancy(&self) -> (usize, usize) {
        (self.waiting.load(SeqCst), self.under_way.load(SeqCst))
    }

    /// Whether there is neither room nor a shutdown.
    pub(super) fn is_full(&self) -> bool {
        !self.is_closed.load(SeqCst) && self.waiting.load(SeqCst) >= self.policy.capacity
    }

    /// Lets a worker that sleeps look at the room, if there is one that nobody has called.
    fn call_worker(&self, _under_lock: &MutexGuard<'_, State<T>>) {
        if self.asleep.load(SeqCst) > 0 {
            self.asleep.fetch_sub(1, SeqCst);
            self.work.notify_one();
        }
    }

    /// Sleeps, unless there are no longer `waiting` requests.
    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State<T>>,
        waiting: usize,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State<T>> {
        state.sleepers += 1;
        self.asleep.fetch_add(1, SeqCst);
        // Who has come before that was counted has called nobody.
        let mut state = match limit {
            _ if self.waiting.load(SeqCst) != waiting => state,
            Some(limit) => wait_timeout(&self.work, state, limit),
            None => {
                let result = self.work.wait(state);
                result.unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.sleepers -= 1;
        // Whoever was not called has woken by itself.
        self.asleep.fetch_min(state.sleepers, SeqCst);
        state
    }

    /// Nothing panics under the lock.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// The class whose turn it is, if a request waits.
    fn next_turn(&self) -> Option<Class> {
        let work = self.turns.next(self.inside.classes())?;
        Some(Class {
            work,
            waiting: self.inside.len(work),
            classes: self.inside.classes().count(),
        })
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The wakers of as many callers as there is room for.
    fn let_try(&mut self, room: usize) -> Wakers {
        let wakers = core::iter::from_fn(|| self.outside.pop_first());
        wakers.take(room).collect()
    }
}

/// A batch that is being computed, until this is dropped.
pub(super) struct UnderWay<'a, T> {
    room: &'a Room<T>,
    /// Whether a caller computes it.
    is_led: bool,
}

impl<T> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        let room = self.room;
        room.under_way.fetch_sub(1, SeqCst);
        // Fewer requests may be enough now.
        if room.waiting.load(SeqCst) > 0 {
            room.call_worker(&room.lock());
        }
        // Who closes the room does that first, and then looks whether somebody is there.
        if self.is_led && room.led.fetch_sub(1, SeqCst) == 1 && room.is_closed.load(SeqCst) {
            let _under_lock = room.lock();
            room.leaders_gone.notify_all();
        }
    }
}

fn wake(wakers: impl IntoIterator<Item = (u64, Waker)>) {
    for (_, waker) in wakers {
        super::wake(waker);
    }
}
