//! Requests that are cancelled, and the end of the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use shuttle::thread;

use super::{
    Pushed, Request, TWO_THREADS, answer, call, enter, in_any_order, queue, reply, shared_queue,
    start_workers, work_of,
};

/// A request is either answered or cancelled, and a cancelled one makes space for others.
#[test]
fn leaving_holds_nobody_up() {
    in_any_order(|| {
        let queue = queue(1, 1, 1);
        let [worker] = start_workers(&queue, 1);
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
            let [worker] = start_workers(&queue, 2);
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

/// Workers end although a request is cancelled at the same time.
#[test]
fn closing_meets_callers_that_leave() {
    in_any_order(|| {
        let queue = queue(2, 1, 2);
        let workers: [_; 2] = start_workers(&queue, 2);
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

/// A thread closes the queue while callers compute, and others arrive too late.
#[test]
fn closing_waits_for_callers_that_compute() {
    for cancelled in [false, true] {
        in_any_order(move || {
            let queue = shared_queue(3, 1, 4, TWO_THREADS);
            let [worker] = start_workers(&queue, 4);
            let computing = Arc::new(AtomicUsize::new(0));
            let leaders = [1, 2].map(|value| {
                let (queue, computing) = (queue.clone(), computing.clone());
                thread::spawn(move || {
                    let (reply, _answer) = reply();
                    if let Ok(Pushed::Led((requests, under_way))) =
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
            queue.wait_until_idle();
            assert_eq!(computing.load(SeqCst), 0);
            for leader in leaders {
                leader.join().unwrap();
            }
        });
    }
}
