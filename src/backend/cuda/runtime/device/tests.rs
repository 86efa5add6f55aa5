//! Hooks for the tests of callers, forecasts, and the pool of slots.

use super::*;
use core::time::Duration;
use std::sync::mpsc::channel;
use std::thread;

impl Device {
    /// The number of compiled kernels.
    pub(crate) fn compiled(&self) -> usize {
        let modules = lock(&self.modules);
        modules
            .values()
            .map(|loaded| lock(loaded).kernels.len())
            .sum()
    }

    /// Marks the device as lost.
    pub(crate) fn inject_loss(&self, name: &str) {
        let _ = self.lost.set(String::from(name));
    }

    /// Whether all buffers of all slots hold zeros only.
    pub(crate) fn is_wiped(&self) -> bool {
        let all = self.slots.acquire(SLOTS);
        let is_wiped = all.iter().all(Slot::is_wiped);
        self.slots.release(all);
        is_wiped
    }
}

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

/// Devices that take these milliseconds for an instance; those with 0 have no kernel.
fn forecast(devices: &[u8], count: usize) -> Option<f64> {
    let ms = |&each: &u8, count| (each > 0).then(|| f64::from(each) * count as f64);
    together(&with_times(devices.iter().copied(), count, ms))
}

#[test]
fn forecasts_are_for_shares_by_speed() {
    let about = |ms: f64, expected: f64| (ms / expected - 1.0).abs() < 1e-9;
    assert_eq!(forecast(&[], 10), None);
    assert_eq!(forecast(&[0, 0], 10), None);
    assert!(about(forecast(&[3], 10).unwrap(), 30.0));
    assert!(about(forecast(&[3, 3, 0], 10).unwrap(), 15.0));
    // Of 110 instances the slow device takes 10.
    assert!(about(forecast(&[1, 10], 110).unwrap(), 100.0));
}
