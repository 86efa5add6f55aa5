//! Distributes the slots of a device to calls.

use alloc::vec::Vec;
use std::sync::{Condvar, Mutex, PoisonError};

use super::lock;

/// A pool of slots, each free or leased to a call.
pub(super) struct Pool<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    count: usize,
    size: fn(&S) -> usize,
}

struct State<S> {
    /// Free slots, sorted by size. The largest ones, at the end, are leased first. The others then
    /// need no buffers, or small ones, until that many calls are under way, and calls seldom have
    /// to wait for larger buffers.
    free: Vec<S>,
    /// The number of calls that have arrived. `served` counts those that got their slots, in FIFO
    /// order; otherwise a large call would starve while small ones arrive.
    arrived: u64,
    served: u64,
}

impl<S> Pool<S> {
    /// Makes a pool. `size` orders the slots; calls may change the size of theirs.
    pub(super) fn new(slots: Vec<S>, size: fn(&S) -> usize) -> Self {
        Self {
            size,
            count: slots.len(),
            state: Mutex::new(State {
                free: slots,
                arrived: 0,
                served: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes `count` slots, clamped to at least one and at most all. Waits in FIFO order.
    pub(super) fn acquire(&self, count: usize) -> Vec<S> {
        let count = count.clamp(1, self.count);
        let mut state = lock(&self.state);
        let turn = state.arrived;
        state.arrived += 1;
        while state.served != turn || state.free.len() < count {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        let left = state.free.len() - count;
        let slots = state.free.split_off(left);
        // The next call may also find enough slots.
        self.changed.notify_all();
        slots
    }

    /// Returns slots.
    pub(super) fn release(&self, slots: Vec<S>) {
        let mut state = lock(&self.state);
        state.free.extend(slots);
        state.free.sort_by_key(self.size);
        drop(state);
        self.changed.notify_all();
    }

    /// Calls `f` for each free slot.
    pub(super) fn each_free(&self, f: impl FnMut(&mut S)) {
        lock(&self.state).free.iter_mut().for_each(f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Long enough for a thread to begin waiting. If it is too short, a fault may be missed, but
    /// none is reported falsely.
    const A_WHILE: Duration = Duration::from_millis(100);

    fn pool() -> Pool<usize> {
        Pool::new(Vec::from([1, 2, 3]), |&slot| slot)
    }

    #[test]
    fn the_largest_go_first() {
        let pool = pool();
        let (a, b) = (pool.acquire(1), pool.acquire(1));
        assert_eq!((&a[..], &b[..]), (&[3][..], &[2][..]));
        pool.release(a);
        pool.release(b);
        assert_eq!(pool.acquire(1), [3]);
        // The slot returns with a smaller size.
        pool.release(Vec::from([0]));
        assert_eq!(pool.acquire(2), [1, 2]);
    }

    #[test]
    fn nobody_gets_none_or_waits_for_more_than_there_are() {
        let pool = pool();
        let one = pool.acquire(0);
        assert_eq!(one.len(), 1);
        pool.release(one);
        assert_eq!(pool.acquire(9).len(), 3);
    }

    /// A call that waits for many slots is not overtaken by a smaller one.
    #[test]
    fn calls_are_served_in_the_order_in_which_they_come() {
        let pool = pool();
        let first = pool.acquire(1);
        let (done, order) = channel();
        thread::scope(|scope| {
            for (name, count) in [("all", 3), ("one", 1)] {
                let (pool, done) = (&pool, done.clone());
                scope.spawn(move || {
                    let slots = pool.acquire(count);
                    done.send(name).unwrap();
                    pool.release(slots);
                });
                thread::sleep(A_WHILE);
            }
            assert!(order.try_recv().is_err());
            pool.release(first);
            assert_eq!(order.recv(), Ok("all"));
            assert_eq!(order.recv(), Ok("one"));
        });
        assert_eq!(lock(&pool.state).free.len(), 3);
    }

    #[test]
    fn two_that_fit_are_served_at_once() {
        let pool = pool();
        let first = pool.acquire(3);
        thread::scope(|scope| {
            let both = [1, 2].map(|count| {
                let pool = &pool;
                let handle = scope.spawn(move || pool.acquire(count).len());
                thread::sleep(A_WHILE);
                handle
            });
            // The calls keep what they get: both find enough among the returned slots.
            pool.release(first);
            assert_eq!(both.map(|handle| handle.join().unwrap()), [1, 2]);
        });
    }
}
