//! Every request is answered, by workers and by callers that compute.

use std::sync::Arc;

use shuttle::thread;

use super::{
    Sharing, TWO_THREADS, answer, call, call_or_lead, in_any_order, patient_queue, queue,
    shared_queue, start_workers,
};

#[test]
fn everyone_is_answered() {
    in_any_order(|| {
        let queue = queue(1, 1, 2);
        let workers: [_; 2] = start_workers(&queue, 2);
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
        let workers: [_; 2] = start_workers(&queue, 4);
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
                let workers: [_; 2] = start_workers(&queue, 4);
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

/// Callers that compute beside a worker: all get answers, and none is left when the queue has been
/// closed.
#[test]
fn callers_compute() {
    for sharing in [Sharing::Whole, TWO_THREADS] {
        in_any_order(move || {
            let queue = shared_queue(3, 1, 4, sharing);
            let [worker] = start_workers(&queue, 4);
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
            queue.wait_until_idle();
            let answered = worker.join().unwrap();
            assert_eq!(answered + led.iter().sum::<usize>(), 5);
            assert_eq!(queue.occupancy(), (0, 0));
        });
    }
}
