//! What calls take for themselves of a device, and bring back: so many slots as each has use for.

use alloc::vec::Vec;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Slots, most of them free or with calls that are under way.
pub(super) struct Pool<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    count: usize,
    size: fn(&S) -> usize,
}

struct State<S> {
    /// The largest last, and these go first: so the others need no buffers, or none as large, until as many calls are under way, and a call
    /// seldom has to wait for larger ones.
    free: Vec<S>,
    /// Calls that have come, and those of them that have got their slots: they get them in the order in which they come, or a
    /// large one would wait for as long as small ones come.
    came: u64,
    served: u64,
}

/// What a call has of a pool.
pub(super) struct Lent<S> {
    pub(super) slots: Vec<S>,
    /// How many calls had been served when this one was, itself among them; none if another had slots then.
    alone_since: Option<u64>,
}

impl<S> Pool<S> {
    /// `size` tells which slots are the larger ones; calls may change it.
    pub(super) fn new(slots: Vec<S>, size: fn(&S) -> usize) -> Self {
        Self {
            size,
            count: slots.len(),
            state: Mutex::new(State {
                free: slots,
                came: 0,
                served: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// `count` slots, at least one and at most all, after all calls that have come before. Waits for them.
    pub(super) fn take(&self, count: usize) -> Lent<S> {
        let count = count.clamp(1, self.count);
        let mut state = self.lock();
        let turn = state.came;
        state.came += 1;
        while state.served != turn || state.free.len() < count {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        let alone_since = (state.free.len() == self.count).then_some(state.served);
        let left = state.free.len() - count;
        let slots = state.free.split_off(left);
        // The next in line may find enough, too.
        self.changed.notify_all();
        Lent { slots, alone_since }
    }

    /// Whether no other call has had slots since these were lent.
    pub(super) fn is_alone(&self, lent: &Lent<S>) -> bool {
        lent.alone_since == Some(self.lock().served)
    }

    /// Brings back what was lent.
    pub(super) fn give_back(&self, slots: Vec<S>) {
        let mut state = self.lock();
        state.free.extend(slots);
        state.free.sort_by_key(self.size);
        drop(state);
        self.changed.notify_all();
    }

    /// Calls `f` for those that are free.
    pub(super) fn each_free(&self, f: impl FnMut(&mut S)) {
        self.lock().free.iter_mut().for_each(f);
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Long enough for a thread to begin to wait; too short a time hides a fault, and invents none.
    const A_WHILE: Duration = Duration::from_millis(100);

    fn pool() -> Pool<usize> {
        Pool::new(Vec::from([1, 2, 3]), |&slot| slot)
    }

    #[test]
    fn the_largest_go_first() {
        let pool = pool();
        let (a, b) = (pool.take(1), pool.take(1));
        assert_eq!((&a.slots[..], &b.slots[..]), (&[3][..], &[2][..]));
        pool.give_back(a.slots);
        pool.give_back(b.slots);
        let c = pool.take(1);
        assert_eq!(c.slots, [3]);
        // It comes back smaller.
        pool.give_back(Vec::from([0]));
        assert_eq!(pool.take(2).slots, [1, 2]);
    }

    #[test]
    fn nobody_gets_none_or_waits_for_more_than_there_are() {
        let pool = pool();
        let one = pool.take(0);
        assert_eq!(one.slots.len(), 1);
        pool.give_back(one.slots);
        assert_eq!(pool.take(9).slots.len(), 3);
    }

    /// A call that waits for many is not overtaken by one that would find what it needs.
    #[test]
    fn calls_are_served_in_the_order_in_which_they_come() {
        let pool = pool();
        let first = pool.take(1);
        let (done, order) = channel();
        thread::scope(|scope| {
            for (name, count) in [("all", 3), ("one", 1)] {
                let (pool, done) = (&pool, done.clone());
                scope.spawn(move || {
                    let lent = pool.take(count);
                    done.send(name).unwrap();
                    pool.give_back(lent.slots);
                });
                thread::sleep(A_WHILE);
            }
            assert!(order.try_recv().is_err());
            pool.give_back(first.slots);
            assert_eq!(order.recv(), Ok("all"));
            assert_eq!(order.recv(), Ok("one"));
        });
        assert_eq!(pool.lock().free.len(), 3);
    }

    #[test]
    fn two_that_fit_are_served_at_once() {
        let pool = pool();
        let first = pool.take(3);
        thread::scope(|scope| {
            let both = [1, 2].map(|count| {
                let pool = &pool;
                let handle = scope.spawn(move || pool.take(count).slots.len());
                thread::sleep(A_WHILE);
                handle
            });
            // They keep what they get: both find enough in what is brought back.
            pool.give_back(first.slots);
            assert_eq!(both.map(|handle| handle.join().unwrap()), [1, 2]);
        });
    }

    #[test]
    fn whoever_had_company_knows_it() {
        let pool = Pool::new(Vec::from([1, 2]), |&slot| slot);
        let first = pool.take(1);
        assert!(pool.is_alone(&first));
        let second = pool.take(1);
        assert!(!pool.is_alone(&first) && !pool.is_alone(&second));
        pool.give_back(second.slots);
        assert!(!pool.is_alone(&first));
        pool.give_back(first.slots);
        assert!(pool.is_alone(&pool.take(2)));
    }
}
