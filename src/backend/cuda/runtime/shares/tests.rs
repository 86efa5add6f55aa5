//! Tests of the parent module.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use batch_modexp_core::DeviceFault;

use super::*;

/// Chunks of at most `most` instances, all of about the same length.
fn at_most(most: usize) -> ChunkLens {
    ChunkLens {
        most,
        least: 0,
        per_block: 1,
    }
}

/// Errors of lost workers, and of others.
const LOST: Error = Error::Forked;
const OUT_OF_MEMORY: Error = Error::Cuda {
    device: 0,
    fault: DeviceFault::OutOfMemory,
};

/// A worker that is lost after `remaining` shares.
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

    /// Writes the worker's speed to all of its places, a chunk at a time. In its last share, it
    /// writes half of a chunk and fails.
    fn work(&self, share: &Share<'_, &mut [f64]>, chunk: usize) -> Result<usize, Error> {
        assert!(!self.is_lost.load(Ordering::Relaxed), "it was set aside");
        let mut count = 0;
        while let Some(piece) = share.next(at_most(chunk)) {
            let len = piece.range.len();
            assert_eq!(piece.output.len(), len);
            assert!((1..=chunk).contains(&piece.range.len()));
            if self.remaining.load(Ordering::Relaxed) == 0 {
                self.is_lost.store(true, Ordering::Relaxed);
                piece.output[..len / 2].fill(-self.speed);
                share.give_back(piece);
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

fn run(workers: &[FailingWorker], places: &mut [f64]) -> Result<usize, Error> {
    let len = places.len();
    let done = AtomicUsize::new(0);
    let work = |worker: &FailingWorker, share: &Share<'_, &mut [f64]>| {
        done.fetch_add(worker.work(share, 512)?, Ordering::Relaxed);
        Ok::<_, Error>(())
    };
    run_on_all(workers, FailingWorker::check, |w| w.speed, places, work)?;
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

/// Shares are in proportion to speed, but a worker that finishes early helps the others.
#[test]
fn everybody_gets_a_share_by_speed() {
    let workers = [3.0, 1.0].map(|speed| FailingWorker::new(ALWAYS, speed));
    let mut places = [0.0; 4096];
    let lens = Mutex::new(Vec::new());
    let done = run_on_all(
        &workers,
        FailingWorker::check,
        |w| w.speed,
        &mut places[..],
        |worker, share| {
            lock(&lens).push((worker.speed, share.len));
            worker.work(share, 512).map(|_| ())
        },
    );
    assert_eq!(done, Ok(()));
    let mut lens = lens.into_inner().unwrap();
    lens.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(lens, [(1.0, 1024), (3.0, 3072)]);
    assert!(places.iter().all(|&place| place > 0.0));
}

/// One worker does nothing until the other has finished: its share is computed by the other.
#[test]
fn nobody_waits_for_a_slow_one() {
    let workers = [1.0, 2.0].map(|speed| FailingWorker::new(ALWAYS, speed));
    let is_done = AtomicBool::new(false);
    let mut places = [0.0; 4096];
    let counts = [0; 2].map(AtomicUsize::new);
    let done = run_on_all(
        &workers,
        FailingWorker::check,
        |_| 1.0,
        &mut places[..],
        |worker, share| {
            if worker.speed == 1.0 {
                while !is_done.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            }
            let count = worker.work(share, 512);
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
    let done = run_on_all(
        &workers,
        FailingWorker::check,
        |_| 1.0,
        &mut places[..],
        |_, share| {
            attempts.fetch_add(1, Ordering::Relaxed);
            share.next(at_most(100));
            Err(OUT_OF_MEMORY)
        },
    );
    assert_eq!(done, Err(OUT_OF_MEMORY));
    assert_eq!(attempts.into_inner(), 2);
}

/// In a pool, no item runs on the calling thread itself.
#[test]
fn a_single_share_leaves_a_pool_thread() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let workers = [FailingWorker::new(ALWAYS, 1.0)];
    let thread = || thread::current().id();
    let places = &mut [(); 10];
    let mut is_on_caller = || {
        let by = Mutex::new(None);
        let on_this = |_: &FailingWorker, share: &Share<'_, &mut [()]>| {
            while share.next(at_most(4)).is_some() {}
            *lock(&by) = Some(thread());
            Ok::<_, Error>(())
        };
        run_on_all(
            &workers,
            FailingWorker::check,
            |_| 1.0,
            &mut places[..],
            on_this,
        )
        .unwrap();
        by.into_inner().unwrap().unwrap() == thread()
    };
    assert!(!pool.install(&mut is_on_caller));
    assert!(is_on_caller());
}

#[test]
fn shares_are_in_proportion_and_leave_nothing_out() {
    assert_eq!(shares(100, &[1.0], 64), [100]);
    assert_eq!(shares(1000, &[3.0, 1.0], 8), [752, 248]);
    assert_eq!(shares(10, &[1.0, 1.0, 1.0], 64), [10, 0, 0]);
    assert_eq!(shares(10, &[0.0, 1.0, 0.0], 4), [0, 10, 0]);
    for len in 1..300 {
        let shares = shares(len, &[1.0, 2.5, 0.0, 0.3], 16);
        assert_eq!(shares.len(), 4);
        assert_eq!(shares.iter().sum::<usize>(), len);
        assert_eq!(shares[2], 0);
    }
}

/// The lengths of the chunks of a share of `len` instances.
fn chunks(len: usize, lens: ChunkLens) -> Vec<usize> {
    let mut rest = len;
    let next = || {
        let len = lens.first_of(rest);
        rest -= len;
        (len > 0).then_some(len)
    };
    core::iter::from_fn(next).collect()
}

#[test]
fn chunks_are_whole_blocks_about_equally_long() {
    let chunks = |len, most, per_block| {
        let lens = ChunkLens {
            per_block,
            ..at_most(most)
        };
        chunks(len, lens)
    };
    assert_eq!(chunks(10, 100, 4), [10]);
    assert_eq!(chunks(10, 5, 1), [5, 5]);
    assert_eq!(chunks(10, 9, 4), [8, 2]);
    assert_eq!(chunks(10_000, 8448, 256), [5120, 4880]);
    assert_eq!(chunks(40_000, 12_672, 96), [10_080, 9984, 9984, 9952]);
    assert_eq!(chunks(1, 0, 1), [1]);
}

/// There are as many chunks as with equal lengths, and only the last one is shorter.
#[test]
fn the_last_chunk_has_what_is_left() {
    let lens = ChunkLens {
        most: 12_672,
        least: 11_880,
        per_block: 96,
    };
    assert_eq!(chunks(12_600, lens), [12_600]);
    assert_eq!(chunks(12_673, lens), [11_904, 769]);
    assert_eq!(chunks(16_384, lens), [11_904, 4480]);
    assert_eq!(
        chunks(65_536, lens),
        [11_904, 11_904, 11_904, 11_904, 11_904, 6016]
    );
    // The maximum has precedence over the minimum.
    let short = ChunkLens { most: 960, ..lens };
    assert_eq!(chunks(2000, short), [960, 960, 80]);
    // No additional chunk.
    assert_eq!(chunks(3 * 12_672, lens), [12_672; 3]);
    for len in (1..100_000).step_by(97) {
        let chunks = chunks(len, lens);
        assert_eq!(chunks.len(), len.div_ceil(lens.most));
        assert_eq!(chunks.iter().sum::<usize>(), len);
        let (_, others) = chunks.split_last().unwrap();
        let range = lens.least..=lens.most;
        assert!(
            others
                .iter()
                .all(|len| range.contains(len) && len % 96 == 0)
        );
    }
}
