//! Chunks, and workers that are slow or lost.

use alloc::vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use batch_modexp_core::DeviceFault;

use super::*;

/// Errors of lost workers, and of others.
const LOST: Error = Error::Forked;
const OUT_OF_MEMORY: Error = Error::Cuda {
    device: 0,
    fault: DeviceFault::OutOfMemory,
};

/// A worker that is lost after `remaining` chunks.
struct FailingWorker {
    remaining: AtomicUsize,
    is_lost: AtomicBool,
    speed: f64,
}

impl FailingWorker {
    fn new(remaining: usize, speed: f64) -> Self {
        Self {
            remaining: remaining.into(),
            is_lost: AtomicBool::new(false),
            speed,
        }
    }

    /// Writes the worker's speed to the places of chunks, one after the other. In its last one, it
    /// writes half of them and fails.
    fn work(&self, pool: &Remaining<&mut [f64]>, chunk: usize) -> Result<usize, Error> {
        assert!(!self.is_lost.load(Ordering::Relaxed), "it was set aside");
        let mut count = 0;
        while let Some(piece) = pool.next(chunk) {
            let len = piece.range.len();
            assert_eq!(piece.output.len(), len);
            assert!((1..=chunk).contains(&piece.range.len()));
            if self.remaining.load(Ordering::Relaxed) == 0 {
                self.is_lost.store(true, Ordering::Relaxed);
                piece.output[..len / 2].fill(-self.speed);
                pool.give_back(piece);
                return Err(OUT_OF_MEMORY);
            }
            self.remaining.fetch_sub(1, Ordering::Relaxed);
            count += len;
            piece.output.fill(self.speed);
        }
        Ok(count)
    }
}

impl FailingWorker {
    fn check(&self) -> Result<(), Error> {
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(LOST),
            false => Ok(()),
        }
    }
}

/// The workers with their times.
fn timed(workers: &[FailingWorker]) -> Vec<(&FailingWorker, f64)> {
    workers
        .iter()
        .map(|worker| (worker, 1.0 / worker.speed))
        .collect()
}

fn is_usable(worker: &&FailingWorker) -> Result<(), Error> {
    worker.check()
}

fn run(workers: &[FailingWorker], places: &mut [f64]) -> Result<usize, Error> {
    let len = places.len();
    let done = AtomicUsize::new(0);
    let work = |worker: &&FailingWorker, _, remaining: &Remaining<&mut [f64]>| {
        done.fetch_add(worker.work(remaining, 512)?, Ordering::Relaxed);
        Ok::<_, Error>(())
    };
    on_all(&timed(workers), is_usable, &Remaining::all(places), work)?;
    // Results of a lost worker are not counted.
    let done = done.into_inner();
    assert!(done <= len);
    Ok(done)
}

const ALWAYS: usize = usize::MAX;

#[test]
fn an_empty_batch_succeeds() {
    let workers = [1.0, 2.0].map(|speed| FailingWorker::new(ALWAYS, speed));
    assert_eq!(run(&workers, &mut []), Ok(0));
}

/// Shares are in proportion to speed, but a worker takes what it finds.
#[test]
fn shares_are_by_speed() {
    let workers = [3.0, 1.0].map(|speed| FailingWorker::new(ALWAYS, speed));
    let mut places = [0.0; 4096];
    let lens = Mutex::new(Vec::new());
    let all = Remaining::all(&mut places[..]);
    let done = on_all(
        &timed(&workers),
        is_usable,
        &all,
        |worker, share, remaining| {
            lock(&lens).push((worker.speed, share));
            worker.work(remaining, 512).map(|_| ())
        },
    );
    assert_eq!(done, Ok(()));
    let mut lens = lens.into_inner().unwrap();
    lens.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(lens, [(1.0, 1024), (3.0, 3072)]);
    assert!(places.iter().all(|&place| place > 0.0));
}

/// One worker does nothing until the other has finished, which computes everything.
#[test]
fn nobody_waits_for_a_slow_one() {
    let workers = [1.0, 2.0].map(|speed| FailingWorker::new(ALWAYS, speed));
    let is_done = AtomicBool::new(false);
    let mut places = [0.0; 4096];
    let counts = [0; 2].map(AtomicUsize::new);
    let equal = workers.each_ref().map(|worker| (worker, 1.0));
    let done = on_all(
        &equal,
        is_usable,
        &Remaining::all(&mut places[..]),
        |worker, _, remaining| {
            if worker.speed == 1.0 {
                while !is_done.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            }
            let count = worker.work(remaining, 512);
            is_done.store(true, Ordering::Release);
            counts[worker.speed as usize - 1].store(count?, Ordering::Relaxed);
            Ok::<_, Error>(())
        },
    );
    assert_eq!(done, Ok(()));
    assert_eq!(counts.map(AtomicUsize::into_inner), [0, 4096]);
    assert!(places.iter().all(|&place| place == 2.0));
}

/// If any worker is lost, the others finish, and the next batch runs without it.
#[test]
fn the_share_of_a_lost_worker_is_finished_by_the_others() {
    for lost in 0..3 {
        let remaining = |i| if i == lost { 1 } else { ALWAYS };
        let workers = [0, 1, 2].map(|i| FailingWorker::new(remaining(i), 1.0 + i as f64));
        // If the others are fast, it may not be lost in the first round.
        for round in 0..4 {
            let was_lost = workers[lost].check().is_err();
            let mut places = [0.0; 5000];
            run(&workers, &mut places).unwrap();
            assert!(places.iter().all(|&place| place > 0.0), "round {round}");
            assert!(!was_lost || !places.contains(&workers[lost].speed));
        }
    }
}

/// Two workers that are lost together leave two gaps, which the third fills.
#[test]
fn several_lost_at_once() {
    let workers = [
        FailingWorker::new(0, 1.0),
        FailingWorker::new(ALWAYS, 2.0),
        FailingWorker::new(0, 3.0),
    ];
    let mut places = [0.0; 3000];
    run(&workers, &mut places).unwrap();
    assert!(places.iter().all(|&place| place == 2.0));
}

/// A worker that takes over may be lost in turn.
#[test]
fn lost_one_after_the_other() {
    let workers = [
        FailingWorker::new(0, 1.0),
        FailingWorker::new(1, 1.0),
        FailingWorker::new(ALWAYS, 1.0),
    ];
    let mut places = [0.0; 3000];
    run(&workers, &mut places).unwrap();
    assert!(places.iter().all(|&place| place == 1.0));
}

#[test]
fn without_a_worker_left_the_batch_fails() {
    let workers = [FailingWorker::new(0, 1.0), FailingWorker::new(1, 1.0)];
    let mut places = [0.0; 3000];
    for _ in 0..2 {
        assert_eq!(run(&workers, &mut places), Err(LOST));
    }
}

/// Errors of a worker that is not lost end the batch.
#[test]
fn other_errors_end_the_batch() {
    let workers = [
        FailingWorker::new(ALWAYS, 1.0),
        FailingWorker::new(ALWAYS, 1.0),
    ];
    let attempts = AtomicUsize::new(0);
    let mut places = [0.0; 3000];
    let remaining = Remaining::all(&mut places[..]);
    let work = |_: &&FailingWorker, _, remaining: &Remaining<_>| {
        attempts.fetch_add(1, Ordering::Relaxed);
        remaining.next(100);
        Err(OUT_OF_MEMORY)
    };
    let done = on_all(&timed(&workers), is_usable, &remaining, work);
    assert_eq!(done, Err(OUT_OF_MEMORY));
    assert_eq!((attempts.into_inner(), remaining.count()), (2, 0));
}

/// In a pool, no item runs on the calling thread itself.
#[test]
fn a_single_worker_leaves_a_pool_thread() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let workers = [FailingWorker::new(ALWAYS, 1.0)];
    let thread = || thread::current().id();
    let places = &mut [(); 10];
    let mut is_on_caller = || {
        let by = Mutex::new(None);
        let on_this = |_: &&FailingWorker, _, remaining: &Remaining<&mut [()]>| {
            while remaining.next(4).is_some() {}
            *lock(&by) = Some(thread());
            Ok::<_, Error>(())
        };
        let all = Remaining::all(&mut places[..]);
        on_all(&timed(&workers), is_usable, &all, on_this).unwrap();
        by.into_inner().unwrap().unwrap() == thread()
    };
    assert!(!pool.install(&mut is_on_caller));
    assert!(is_on_caller());
}

/// Slow workers are not started for less than they compute in the time of one instance.
#[test]
fn small_batches_start_few_workers() {
    let started = |speeds: [f64; 3], count| {
        let workers = speeds.map(|speed| FailingWorker::new(ALWAYS, speed));
        let (started, mut places) = (Mutex::new(vec![]), vec![0.0; count]);
        let all = Remaining::all(&mut places[..]);
        let done = on_all(
            &timed(&workers),
            is_usable,
            &all,
            |worker, share, remaining| {
                lock(&started).push((share, worker.speed));
                worker.work(remaining, 512).map(|_| ())
            },
        );
        done.unwrap();
        let mut started = started.into_inner().unwrap();
        started.sort_by(|a, b| a.1.total_cmp(&b.1));
        started
    };
    let equal = [1.0; 3];
    for count in [1, 256, 510] {
        assert_eq!(started(equal, count), [(count, 1.0)]);
    }
    assert_eq!(started(equal, 512), [(256, 1.0); 2]);
    assert_eq!(started(equal, 768), [(256, 1.0); 3]);
    assert_eq!(started([0.5, 1.0, 2.0], 100), [(100, 2.0)]);
    assert_eq!(started([0.5, 1.0, 2.0], 1200), [(400, 1.0), (800, 2.0)]);
}

/// The lengths of the chunks of `count` instances on a single device.
fn chunks(count: usize, len: usize) -> Vec<usize> {
    let mut places = vec![(); count];
    let remaining = Remaining::all(&mut places[..]);
    core::iter::from_fn(|| Some(remaining.next(len)?.range.len())).collect()
}

#[test]
fn chunks_are_whole_blocks_about_equally_long() {
    let chunks = |count, most, per_block| chunks(count, chunk_len(count, most, per_block));
    assert_eq!(chunks(10, 100, 4), [10]);
    assert_eq!(chunks(10, 5, 1), [5, 5]);
    assert_eq!(chunks(10, 8, 4), [8, 2]);
    // The maximum, too, is in whole blocks.
    assert_eq!(chunks(10, 9, 4), [10]);
    assert_eq!(chunks(10_000, 8448, 256), [5120, 4880]);
    assert_eq!(chunks(40_000, 12_672, 96), [10_080, 10_080, 10_080, 9760]);
    assert_eq!(chunks(1, 0, 1), [1]);
}

/// No chunk is longer than it may be, and there is none that could be left out.
#[test]
fn chunks_are_as_few_as_possible() {
    let (most, per_block) = (12_672, 96);
    for count in (1..100_000).step_by(97) {
        let chunks = chunks(count, chunk_len(count, most, per_block));
        assert_eq!(chunks.len(), count.div_ceil(most));
        assert_eq!(chunks.iter().sum::<usize>(), count);
        let (last, others) = chunks.split_last().unwrap();
        assert!(others.iter().all(|len| len % per_block == 0 && len >= last));
        assert!(chunks[0] <= most);
    }
}
