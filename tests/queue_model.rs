//! The queue's waiting requests and replies, compiled from the library's own source with the locks
//! of shuttle. Its scheduler tries thousands of interleavings, and detects deadlocks.
#![cfg(any(target_arch = "aarch64", target_arch = "x86", target_arch = "x86_64"))]

extern crate alloc;

#[path = "../src/queue/policy.rs"]
mod policy;
#[path = "../src/queue/reply.rs"]
mod reply;
#[path = "../src/queue/requests.rs"]
mod requests;
#[path = "../src/queue/turns.rs"]
#[allow(dead_code)]
mod turns;
#[path = "../src/queue/waiting.rs"]
#[allow(dead_code)]
mod waiting;

use core::future::poll_fn;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use shuttle::future::block_on;
use shuttle::thread;

use self::policy::{Policy, Sharing};
use self::reply::{Answer, Reply, reply};
use self::requests::{Batch, Ticket};
use self::turns::Work;
use self::waiting::{Pushed, Refused, Waiting};

/// The replacement for `src/queue/sync.rs`.
mod sync {
    use core::time::Duration;
    pub(super) use std::sync::Arc;
    pub(super) use std::sync::PoisonError;
    pub(super) use std::sync::atomic::Ordering::SeqCst;
    use std::sync::{LazyLock, LockResult};
    pub(super) use std::time::Instant;

    use shuttle::sync;
    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
    pub(super) use shuttle::thread::yield_now;

    pub(super) struct Condvar(Arc<sync::Condvar>);

    impl Condvar {
        pub(super) fn new() -> Self {
            Self(Arc::new(sync::Condvar::new()))
        }

        pub(super) fn wait<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
        ) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub(super) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(super) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// The model's clock; it advances when a thread waits for it.
    static MICROSECONDS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(super) fn now() -> Instant {
        *START + Duration::from_micros(MICROSECONDS.load(SeqCst))
    }

    /// The limit of a wait that only a notification ends.
    pub(super) const FOR_EVER: Duration = Duration::MAX;

    /// Waits; another thread ends the wait, sooner or later.
    pub(super) fn wait_timeout<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> MutexGuard<'a, T> {
        let sleepers = condvar.0.clone();
        if limit < FOR_EVER / 2 {
            shuttle::thread::spawn(move || {
                MICROSECONDS.fetch_add(limit.as_micros() as u64, SeqCst);
                sleepers.notify_all();
            });
        }
        condvar
            .0
            .wait(guard)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

type Queue = Waiting<Request>;

/// A request whose answer is its value.
struct Request(u32, Reply<u32>);

/// Two classes of requests that alternate: even and odd values.
fn work_of(value: u32) -> Work {
    Work::of_request(1024 << (value % 2), true)
}

fn queue(capacity: usize, min_batch: usize, max_batch: usize) -> Arc<Queue> {
    shared_queue(capacity, min_batch, max_batch, Sharing::Whole)
}

fn shared_queue(
    capacity: usize,
    min_batch: usize,
    max_batch: usize,
    sharing: Sharing,
) -> Arc<Queue> {
    Arc::new(Waiting::new(Policy {
        capacity,
        min_batch,
        max_batch,
        max_wait: Duration::from_millis(1),
        sharing,
    }))
}

/// Batches have at least two requests, however long the first one waits.
fn patient_queue(sharing: Sharing) -> Arc<Queue> {
    Arc::new(Waiting::new(Policy {
        capacity: 8,
        min_batch: 2,
        max_batch: 4,
        max_wait: sync::FOR_EVER,
        sharing,
    }))
}

/// Two threads, of which the last one takes two requests if it can.
const TWO_THREADS: Sharing = Sharing::Threads { count: 2, lanes: 2 };

/// Answers until the queue is closed and empty. Returns the number of answers.
fn work(queue: &Queue, max_batch: usize) -> usize {
    let mut count = 0;
    while let Some((requests, under_way)) = queue.take() {
        assert!((1..=max_batch).contains(&requests.len()));
        count += requests.len();
        // As in the library if a batch has the whole backend; `lead` is like a batch on one thread.
        drop(under_way);
        answer(requests);
    }
    count
}

fn answer(requests: Batch<Request>) {
    for (_, Request(value, reply)) in requests {
        if let Some(waker) = reply.put(value) {
            wake(waker);
        }
    }
}

/// Waits for space, as the library's future does; `None` if the queue is closed. Gives up after
/// `patience` attempts.
fn enter(queue: &Queue, value: u32, patience: usize) -> Option<(Ticket, Answer<u32>)> {
    let (reply, answer) = reply();
    let (mut request, mut turn) = (Some(Request(value, reply)), None);
    let mut attempts = 0;
    let number = block_on(poll_fn(|context| {
        let Some(own) = request.take() else {
            return Poll::Ready(None);
        };
        match queue.push_or_wait(work_of(value), own, &mut turn, context.waker()) {
            Ok(number) => Poll::Ready(Some(number)),
            Err(Refused::Closed) => Poll::Ready(None),
            Err(Refused::Full(own)) if attempts < patience => {
                attempts += 1;
                request = Some(own);
                Poll::Pending
            }
            Err(Refused::Full(_)) => Poll::Ready(None),
        }
    }));
    if let Some(turn) = turn {
        queue.stop_waiting(turn);
    }
    Some((number?, answer))
}

fn call(queue: &Queue, value: u32) -> Option<u32> {
    let (_, answer) = enter(queue, value, usize::MAX)?;
    block_on(poll_fn(|context| answer.poll(context)))
}

/// Like `call`, for a caller that computes if it may. Also returns the number of requests that it
/// has answered.
fn call_or_lead(queue: &Queue, value: u32) -> (Option<u32>, usize) {
    let (reply, answered) = reply();
    let led = match queue.push_or_lead(work_of(value), Request(value, reply)) {
        Ok(Pushed::Waits(_)) => 0,
        Ok(Pushed::Led(requests, under_way)) => {
            let count = requests.len();
            answer(requests);
            drop(under_way);
            count
        }
        Err(Refused::Full(_)) => return (call(queue, value), 0),
        Err(Refused::Closed) => return (None, 0),
    };
    let answer = block_on(poll_fn(|context| answered.poll(context)));
    (answer, led)
}

/// Runs `test` with random schedules, and with few thread switches at chosen points (Burckhardt et
/// al., ASPLOS 2010).
fn in_any_order(test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(test, 2000);
    shuttle::check_pct(test, 2000, 3);
}

#[test]
fn everyone_is_answered() {
    in_any_order(|| {
        let queue = queue(1, 1, 2);
        let workers = [0; 2].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || work(&queue, 2))
        });
        let callers = [10, 20, 30].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                for value in first..first + 2 {
                    assert_eq!(call(&queue, value), Some(value));
                }
            })
        });
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        assert!(queue.close(false).is_empty());
        let answered = workers.map(|worker| worker.join().unwrap());
        assert_eq!(answered.iter().sum::<usize>(), 6);
    });
}

/// Two workers, one of which waits for more requests.
#[test]
fn nobody_waits_for_a_batch_that_does_not_come() {
    in_any_order(|| {
        let queue = queue(8, 3, 4);
        let workers = [0; 2].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || work(&queue, 4))
        });
        let callers = [1, 2].map(|value| {
            let queue = queue.clone();
            thread::spawn(move || assert_eq!(call(&queue, value), Some(value)))
        });
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        assert!(queue.close(false).is_empty());
        workers
            .into_iter()
            .for_each(|worker| assert!(worker.join().unwrap() <= 2));
    });
}

/// Callers that enter at the same time get one batch. A batch of the first alone would leave the
/// other waiting for ever.
#[test]
fn a_batch_has_as_many_requests_as_it_waits_for() {
    for sharing in [Sharing::Whole, TWO_THREADS] {
        for may_lead in [[false, false], [false, true], [true, true]] {
            in_any_order(move || {
                let queue = patient_queue(sharing);
                let workers = [0; 2].map(|_| {
                    let queue = queue.clone();
                    thread::spawn(move || work(&queue, 4))
                });
                let callers = [(1, may_lead[0]), (3, may_lead[1])].map(|(value, may_lead)| {
                    let queue = queue.clone();
                    thread::spawn(move || {
                        let answer = match may_lead {
                            true => call_or_lead(&queue, value).0,
                            false => call(&queue, value),
                        };
                        assert_eq!(answer, Some(value));
                    })
                });
                callers
                    .into_iter()
                    .for_each(|caller| caller.join().unwrap());
                assert!(queue.close(false).is_empty());
                let answered = workers.map(|worker| worker.join().unwrap());
                assert!(answered.iter().sum::<usize>() <= 2);
            });
        }
    }
}

/// A request is either answered or cancelled, and a cancelled one makes space for others.
#[test]
fn leaving_holds_nobody_up() {
    in_any_order(|| {
        let queue = queue(1, 1, 1);
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || work(&queue, 1))
        };
        let taken_back = Arc::new(AtomicUsize::new(0));
        let entered = Arc::new(AtomicUsize::new(0));
        let leaving = [10, 20].map(|value| {
            let (queue, taken_back, entered) = (queue.clone(), taken_back.clone(), entered.clone());
            thread::spawn(move || {
                // One caller that is impatient, and one that waits for space.
                let patience = value as usize / 10 - 1;
                if let Some((number, _answer)) = enter(&queue, value, patience) {
                    entered.fetch_add(1, SeqCst);
                    if queue.cancel(number).is_some() {
                        taken_back.fetch_add(1, SeqCst);
                    }
                }
            })
        });
        let staying = [1, 2].map(|value| {
            let queue = queue.clone();
            thread::spawn(move || assert_eq!(call(&queue, value), Some(value)))
        });
        leaving
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        staying
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        assert!(queue.close(false).is_empty());
        let answered = worker.join().unwrap();
        let entered = entered.load(SeqCst);
        assert_eq!(answered + taken_back.load(SeqCst), entered + 2);
    });
}

#[test]
fn closing_leaves_nobody_behind() {
    for cancelled in [false, true] {
        in_any_order(move || {
            let queue = queue(1, 1, 2);
            let worker = {
                let queue = queue.clone();
                thread::spawn(move || work(&queue, 2))
            };
            let callers = [1, 2, 3].map(|value| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let answer = call(&queue, value);
                    assert!(answer.is_none() || answer == Some(value));
                    usize::from(answer.is_some())
                })
            });
            let returned = queue.close(cancelled).len();
            assert!(cancelled || returned == 0);
            let answered = worker.join().unwrap();
            let answers = callers.map(|caller| caller.join().unwrap());
            assert_eq!(answered, answers.iter().sum::<usize>());
        });
    }
}

/// A worker starts a batch while the batch of another waits for that.
#[test]
fn no_worker_sleeps_beside_a_request() {
    in_any_order(|| {
        let queue = shared_queue(8, 1, 1, TWO_THREADS);
        let both = Arc::new(shuttle::sync::Barrier::new(2));
        let workers = [0; 2].map(|_| {
            let (queue, both) = (queue.clone(), both.clone());
            thread::spawn(move || {
                while let Some((requests, _under_way)) = queue.take() {
                    both.wait();
                    answer(requests);
                }
            })
        });
        let callers = [1, 3].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                for value in [first, first + 4] {
                    assert_eq!(call(&queue, value), Some(value));
                }
            })
        });
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        assert!(queue.close(false).is_empty());
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
}

/// Workers end although a request is cancelled at the same time.
#[test]
fn closing_meets_callers_that_leave() {
    in_any_order(|| {
        let queue = queue(2, 1, 2);
        let workers = [0; 2].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || work(&queue, 2))
        });
        let leaving = {
            let queue = queue.clone();
            thread::spawn(move || match enter(&queue, 1, 0) {
                Some((ticket, _answer)) => usize::from(queue.cancel(ticket).is_none()),
                None => 0,
            })
        };
        assert!(queue.close(false).is_empty());
        let answered = workers.map(|worker| worker.join().unwrap());
        assert_eq!(answered.iter().sum::<usize>(), leaving.join().unwrap());
    });
}

/// Callers that compute beside a worker: all get answers, and none is left when the queue has been
/// closed.
#[test]
fn callers_compute() {
    for sharing in [Sharing::Whole, TWO_THREADS] {
        in_any_order(move || {
            let queue = shared_queue(3, 1, 4, sharing);
            let worker = {
                let queue = queue.clone();
                thread::spawn(move || work(&queue, 4))
            };
            let leading = [10, 20].map(|first| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let answers = [first, first + 1].map(|value| {
                        let (answer, led) = call_or_lead(&queue, value);
                        assert_eq!(answer, Some(value));
                        led
                    });
                    answers.iter().sum::<usize>()
                })
            });
            let waiting = {
                let queue = queue.clone();
                thread::spawn(move || assert_eq!(call(&queue, 30), Some(30)))
            };
            let led = leading.map(|leader| leader.join().unwrap());
            waiting.join().unwrap();
            assert!(queue.close(false).is_empty());
            queue.wait_for_leaders();
            let answered = worker.join().unwrap();
            assert_eq!(answered + led.iter().sum::<usize>(), 5);
            assert_eq!(queue.occupancy(), (0, 0));
        });
    }
}

/// A thread closes the queue while callers compute, and others arrive too late.
#[test]
fn closing_waits_for_callers_that_compute() {
    for cancelled in [false, true] {
        in_any_order(move || {
            let queue = shared_queue(3, 1, 4, TWO_THREADS);
            let worker = {
                let queue = queue.clone();
                thread::spawn(move || work(&queue, 4))
            };
            let computing = Arc::new(AtomicUsize::new(0));
            let leaders = [1, 2].map(|value| {
                let (queue, computing) = (queue.clone(), computing.clone());
                thread::spawn(move || {
                    let (reply, _answer) = reply();
                    if let Ok(Pushed::Led(requests, under_way)) =
                        queue.push_or_lead(work_of(value), Request(value, reply))
                    {
                        computing.fetch_add(1, SeqCst);
                        thread::yield_now();
                        answer(requests);
                        computing.fetch_sub(1, SeqCst);
                        drop(under_way);
                    }
                })
            });
            drop(queue.close(cancelled));
            worker.join().unwrap();
            queue.wait_for_leaders();
            assert_eq!(computing.load(SeqCst), 0);
            for leader in leaders {
                leader.join().unwrap();
            }
        });
    }
}
