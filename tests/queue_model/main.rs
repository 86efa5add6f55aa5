//! The queue's waiting requests and replies, compiled from the library's own source with the locks
//! of shuttle. Its scheduler tries thousands of interleavings, and detects deadlocks.
#![cfg(any(target_arch = "aarch64", target_arch = "x86", target_arch = "x86_64"))]

extern crate alloc;

mod answers;
mod closing;
mod sync;

#[path = "../../src/queue/policy.rs"]
#[allow(dead_code)]
mod policy;
#[path = "../../src/queue/reply.rs"]
mod reply;
#[path = "../../src/queue/requests.rs"]
mod requests;
#[path = "../../src/queue/waiting.rs"]
#[allow(dead_code)]
mod waiting;

use core::future::poll_fn;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use self::policy::{Policy, Sharing, Work};
use self::reply::{Answer, Reply, reply};
use self::requests::{Batch, Ticket};
use self::waiting::{Pushed, Refused, Waiting};

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

fn start_workers<const N: usize>(queue: &Arc<Queue>, max_batch: usize) -> [JoinHandle<usize>; N] {
    [0; N].map(|_| {
        let queue = queue.clone();
        thread::spawn(move || work(&queue, max_batch))
    })
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
        Ok(Pushed::Led((requests, under_way))) => {
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
