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

type Desk = Waiting<Request>;

/// A request whose answer is the question.
struct Request(u32, Reply<u32>);

/// Two classes of requests that alternate: even and odd questions.
fn work_of(question: u32) -> Work {
    Work::of_request(1024 << (question % 2), true)
}

fn desk(capacity: usize, min_batch: usize, max_batch: usize) -> Arc<Desk> {
    shared_desk(capacity, min_batch, max_batch, Sharing::Whole)
}

fn shared_desk(capacity: usize, min_batch: usize, max_batch: usize, sharing: Sharing) -> Arc<Desk> {
    Arc::new(Waiting::new(Policy {
        capacity,
        min_batch,
        max_batch,
        max_wait: Duration::from_millis(1),
        sharing,
    }))
}

/// Batches have at least two requests, however long the first one waits.
fn patient_desk(sharing: Sharing) -> Arc<Desk> {
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
fn work(desk: &Desk, max_batch: usize) -> usize {
    let mut count = 0;
    while let Some((requests, under_way)) = desk.take() {
        assert!((1..=max_batch).contains(&requests.len()));
        count += requests.len();
        // As in the library if a batch has the whole backend; `lead` is like a batch on one thread.
        drop(under_way);
        answer(requests);
    }
    count
}

fn answer(requests: Batch<Request>) {
    for (_, Request(question, reply)) in requests {
        if let Some(waker) = reply.put(question) {
            wake(waker);
        }
    }
}

/// Waits for space, as the library's future does; `None` if the queue is closed. Gives up after
/// `patience` attempts.
fn enter(desk: &Desk, question: u32, patience: usize) -> Option<(Ticket, Answer<u32>)> {
    let (reply, answer) = reply();
    let (mut request, mut turn) = (Some(Request(question, reply)), None);
    let mut attempts = 0;
    let number = block_on(poll_fn(|context| {
        let Some(own) = request.take() else {
            return Poll::Ready(None);
        };
        match desk.push_or_wait(work_of(question), own, &mut turn, context.waker()) {
            Ok(number) => Poll::Ready(Some(number)),
            Err(Refused::Closed(_)) => Poll::Ready(None),
            Err(Refused::Full(own)) if attempts < patience => {
                attempts += 1;
                request = Some(own);
                Poll::Pending
            }
            Err(Refused::Full(_)) => Poll::Ready(None),
        }
    }));
    if let Some(turn) = turn {
        desk.stop_waiting(turn);
    }
    Some((number?, answer))
}

fn ask(desk: &Desk, question: u32) -> Option<u32> {
    let (_, answer) = enter(desk, question, usize::MAX)?;
    block_on(poll_fn(|context| answer.poll(context)))
}

/// Like `ask`, for a caller that computes if it may. Also returns the number of requests that it
/// has answered.
fn ask_or_lead(desk: &Desk, question: u32) -> (Option<u32>, usize) {
    let (reply, answered) = reply();
    let led = match desk.push_or_lead(work_of(question), Request(question, reply)) {
        Ok(Pushed::Waits(_)) => 0,
        Ok(Pushed::Led(requests, under_way)) => {
            let count = requests.len();
            answer(requests);
            drop(under_way);
            count
        }
        Err(Refused::Full(_)) => return (ask(desk, question), 0),
        Err(Refused::Closed(_)) => return (None, 0),
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
        let desk = desk(1, 1, 2);
        let workers = [0; 2].map(|_| {
            let desk = desk.clone();
            thread::spawn(move || work(&desk, 2))
        });
        let customers = [10, 20, 30].map(|first| {
            let desk = desk.clone();
            thread::spawn(move || {
                for question in first..first + 2 {
                    assert_eq!(ask(&desk, question), Some(question));
                }
            })
        });
        customers
            .into_iter()
            .for_each(|customer| customer.join().unwrap());
        assert!(desk.close(false).is_empty());
        let answered = workers.map(|worker| worker.join().unwrap());
        assert_eq!(answered.iter().sum::<usize>(), 6);
    });
}

/// Two workers, one of which waits for more requests.
#[test]
fn nobody_waits_for_a_batch_that_does_not_come() {
    in_any_order(|| {
        let desk = desk(8, 3, 4);
        let workers = [0; 2].map(|_| {
            let desk = desk.clone();
            thread::spawn(move || work(&desk, 4))
        });
        let customers = [1, 2].map(|question| {
            let desk = desk.clone();
            thread::spawn(move || assert_eq!(ask(&desk, question), Some(question)))
        });
        customers
            .into_iter()
            .for_each(|customer| customer.join().unwrap());
        assert!(desk.close(false).is_empty());
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
                let desk = patient_desk(sharing);
                let workers = [0; 2].map(|_| {
                    let desk = desk.clone();
                    thread::spawn(move || work(&desk, 4))
                });
                let customers = [(1, may_lead[0]), (3, may_lead[1])].map(|(question, may_lead)| {
                    let desk = desk.clone();
                    thread::spawn(move || {
                        let answer = match may_lead {
                            true => ask_or_lead(&desk, question).0,
                            false => ask(&desk, question),
                        };
                        assert_eq!(answer, Some(question));
                    })
                });
                customers
                    .into_iter()
                    .for_each(|customer| customer.join().unwrap());
                assert!(desk.close(false).is_empty());
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
        let desk = desk(1, 1, 1);
        let worker = {
            let desk = desk.clone();
            thread::spawn(move || work(&desk, 1))
        };
        let taken_back = Arc::new(AtomicUsize::new(0));
        let entered = Arc::new(AtomicUsize::new(0));
        let leaving = [10, 20].map(|question| {
            let (desk, taken_back, entered) = (desk.clone(), taken_back.clone(), entered.clone());
            thread::spawn(move || {
                // One caller that is impatient, and one that waits for space.
                let patience = question as usize / 10 - 1;
                if let Some((number, _answer)) = enter(&desk, question, patience) {
                    entered.fetch_add(1, SeqCst);
                    if desk.cancel(number).is_some() {
                        taken_back.fetch_add(1, SeqCst);
                    }
                }
            })
        });
        let staying = [1, 2].map(|question| {
            let desk = desk.clone();
            thread::spawn(move || assert_eq!(ask(&desk, question), Some(question)))
        });
        leaving
            .into_iter()
            .for_each(|customer| customer.join().unwrap());
        staying
            .into_iter()
            .for_each(|customer| customer.join().unwrap());
        assert!(desk.close(false).is_empty());
        let answered = worker.join().unwrap();
        let entered = entered.load(SeqCst);
        assert_eq!(answered + taken_back.load(SeqCst), entered + 2);
    });
}

#[test]
fn closing_leaves_nobody_behind() {
    for cancelled in [false, true] {
        in_any_order(move || {
            let desk = desk(1, 1, 2);
            let worker = {
                let desk = desk.clone();
                thread::spawn(move || work(&desk, 2))
            };
            let customers = [1, 2, 3].map(|question| {
                let desk = desk.clone();
                thread::spawn(move || {
                    let answer = ask(&desk, question);
                    assert!(answer.is_none() || answer == Some(question));
                    usize::from(answer.is_some())
                })
            });
            let returned = desk.close(cancelled).len();
            assert!(cancelled || returned == 0);
            let answered = worker.join().unwrap();
            let told = customers.map(|customer| customer.join().unwrap());
            assert_eq!(answered, told.iter().sum::<usize>());
        });
    }
}

/// A worker starts a batch while the batch of another waits for that.
#[test]
fn no_worker_sleeps_beside_a_request() {
    in_any_order(|| {
        let desk = shared_desk(8, 1, 1, TWO_THREADS);
        let both = Arc::new(shuttle::sync::Barrier::new(2));
        let workers = [0; 2].map(|_| {
            let (desk, both) = (desk.clone(), both.clone());
            thread::spawn(move || {
                while let Some((requests, _under_way)) = desk.take() {
                    both.wait();
                    answer(requests);
                }
            })
        });
        let customers = [1, 3].map(|first| {
            let desk = desk.clone();
            thread::spawn(move || {
                for question in [first, first + 4] {
                    assert_eq!(ask(&desk, question), Some(question));
                }
            })
        });
        customers
            .into_iter()
            .for_each(|customer| customer.join().unwrap());
        assert!(desk.close(false).is_empty());
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
}

/// Workers end although a request is cancelled at the same time.
#[test]
fn closing_meets_callers_that_leave() {
    in_any_order(|| {
        let desk = desk(2, 1, 2);
        let workers = [0; 2].map(|_| {
            let desk = desk.clone();
            thread::spawn(move || work(&desk, 2))
        });
        let leaving = {
            let desk = desk.clone();
            thread::spawn(move || match enter(&desk, 1, 0) {
                Some((ticket, _answer)) => usize::from(desk.cancel(ticket).is_none()),
                None => 0,
            })
        };
        assert!(desk.close(false).is_empty());
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
            let desk = shared_desk(3, 1, 4, sharing);
            let worker = {
                let desk = desk.clone();
                thread::spawn(move || work(&desk, 4))
            };
            let leading = [10, 20].map(|first| {
                let desk = desk.clone();
                thread::spawn(move || {
                    let answers = [first, first + 1].map(|question| {
                        let (answer, led) = ask_or_lead(&desk, question);
                        assert_eq!(answer, Some(question));
                        led
                    });
                    answers.iter().sum::<usize>()
                })
            });
            let waiting = {
                let desk = desk.clone();
                thread::spawn(move || assert_eq!(ask(&desk, 30), Some(30)))
            };
            let led = leading.map(|leader| leader.join().unwrap());
            waiting.join().unwrap();
            assert!(desk.close(false).is_empty());
            desk.wait_for_leaders();
            let answered = worker.join().unwrap();
            assert_eq!(answered + led.iter().sum::<usize>(), 5);
            assert_eq!(desk.occupancy(), (0, 0));
        });
    }
}

/// A thread closes the queue while callers compute, and others arrive too late.
#[test]
fn closing_waits_for_callers_that_compute() {
    for cancelled in [false, true] {
        in_any_order(move || {
            let desk = shared_desk(3, 1, 4, TWO_THREADS);
            let worker = {
                let desk = desk.clone();
                thread::spawn(move || work(&desk, 4))
            };
            let computing = Arc::new(AtomicUsize::new(0));
            let leaders = [1, 2].map(|question| {
                let (desk, computing) = (desk.clone(), computing.clone());
                thread::spawn(move || {
                    let (reply, _answer) = reply();
                    if let Ok(Pushed::Led(requests, under_way)) =
                        desk.push_or_lead(work_of(question), Request(question, reply))
                    {
                        computing.fetch_add(1, SeqCst);
                        thread::yield_now();
                        answer(requests);
                        computing.fetch_sub(1, SeqCst);
                        drop(under_way);
                    }
                })
            });
            drop(desk.close(cancelled));
            worker.join().unwrap();
            desk.wait_for_leaders();
            assert_eq!(computing.load(SeqCst), 0);
            for leader in leaders {
                leader.join().unwrap();
            }
        });
    }
}
