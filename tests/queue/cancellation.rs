//! Cancelled requests.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use batch_modexp::backend::Serial;
use batch_modexp::queue::QueueError;

use super::backends::Gate;
use super::policy::{key, patient, requests, wait_all};
use super::signatures::PKCS1V15;

#[test]
fn what_is_dropped_is_not_signed() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(3).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    // Each frees a place for the next.
    for _ in 0..10 {
        drop(requests(&queue, &key, 3));
    }
    let kept = requests(&queue, &key, 2);
    gate.open();
    wait_all(first);
    wait_all(kept);
    assert_eq!(gate.items(), 3);
    let stats = queue.stats();
    assert_eq!((stats.accepted, stats.signed), (33, 3));
    assert_eq!((stats.cancelled, stats.waiting), (30, 0));
}

#[test]
fn what_is_under_way_is_signed_for_nobody() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    drop(first);
    gate.open();
    queue.sign_blocking(&key, PKCS1V15, b"m").unwrap();
    let stats = queue.stats();
    assert_eq!((stats.signed, stats.cancelled), (2, 0));
}

#[test]
fn a_time_limit_cancels() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(1).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let limit = Duration::from_millis(5);
    let inside = queue.sign(&key, PKCS1V15, b"m");
    let outside = queue.sign(&key, PKCS1V15, b"m");
    assert_eq!(outside.wait_timeout(limit), Err(QueueError::TimedOut));
    assert_eq!(inside.wait_timeout(limit), Err(QueueError::TimedOut));
    let stats = queue.stats();
    assert_eq!((stats.accepted, stats.cancelled), (2, 1));
    gate.open();
    wait_all(first);
    // The largest limit means no limit.
    let signing = queue.sign(&key, PKCS1V15, b"m");
    signing.wait_timeout(Duration::MAX).unwrap();
    assert_eq!(gate.items(), 2);
}

/// Records whether it was woken.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// A place that is given to a caller that then leaves goes to the next one.
#[test]
fn leaving_passes_room_on() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(1).build().unwrap();
    let first = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    let inside = requests(&queue, &key, 1);
    let mut outside: Vec<_> = requests(&queue, &key, 5)
        .into_iter()
        .map(|signing| (signing, Arc::<WakeFlag>::default()))
        .collect();
    for (signing, flag) in &mut outside {
        let waker = Waker::from(flag.clone());
        let poll = Pin::new(signing).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    }
    let woken = |outside: &[(_, Arc<WakeFlag>)]| {
        let woken = |(_, flag): &(_, Arc<WakeFlag>)| flag.0.load(SeqCst);
        outside.iter().map(woken).collect::<Vec<_>>()
    };
    drop(inside);
    assert_eq!(woken(&outside), [true, false, false, false, false]);
    // It has not entered the queue and leaves; so does one that was not woken.
    drop(outside.remove(0));
    drop(outside.remove(2));
    assert_eq!(woken(&outside), [true, false, false]);
    // A caller that enters leaves no place to pass on.
    let late = requests(&queue, &key, 1);
    drop(outside.remove(0));
    assert_eq!(woken(&outside), [false, false]);
    gate.open();
    wait_all(first);
    wait_all(late);
    wait_all(outside.into_iter().map(|(signing, _)| signing).collect());
}

/// A queue does not stall if a caller is woken and does nothing.
#[test]
fn whoever_sleeps_holds_nobody_up() {
    let (gate, key) = (Gate::shut(), key());
    let queue = patient(gate.clone()).capacity(1).build().unwrap();
    let mut all = requests(&queue, &key, 1);
    gate.wait_for_calls(1);
    all.extend(requests(&queue, &key, 1));
    let mut context = Context::from_waker(Waker::noop());
    let mut asleep = requests(&queue, &key, 50);
    for signing in &mut asleep {
        assert!(Pin::new(signing).poll(&mut context).is_pending());
    }
    thread::scope(|scope| {
        let last = scope.spawn(|| queue.sign_blocking(&key, PKCS1V15, b"m"));
        gate.open();
        last.join().unwrap().unwrap();
    });
    wait_all(all);
    wait_all(asleep);
}

#[test]
fn a_future_comes_back_once() {
    let queue = patient(Serial).build().unwrap();
    let mut signing = queue.sign_prehash(&key(), PKCS1V15, b"too short");
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut signing).poll(&mut context).is_ready());
    assert_eq!(format!("{signing:?}"), "Signing(over)");
    let again = || Pin::new(&mut signing).poll(&mut context).is_ready();
    assert!(catch_unwind(AssertUnwindSafe(again)).is_err());
}
