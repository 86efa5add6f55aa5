//! Subjects of measurements, and how they are measured.

use core::hint::black_box;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::statistics::{Tests, Verdict, percentile};

/// A computation on inputs of two classes.
pub(crate) trait Subject {
    /// Makes an input of class 0 or 1. Address and steps are the same for both, so that they leave
    /// the caches alike.
    fn prepare(&mut self, class: usize, rng: &mut ChaCha20Rng);

    /// Computes with that input. Returns the nanoseconds by each of the [clocks](Case::clocks).
    fn measure(&mut self) -> Vec<f64>;
}

/// Two classes of inputs for one computation.
pub(crate) struct Case {
    /// The name of the computation.
    pub(crate) subject: String,
    /// The difference between the classes.
    pub(crate) classes: &'static str,
    /// Whether it leaks on purpose and must be found.
    pub(crate) is_control: bool,
    /// The clocks: those of whole calls, and possibly of a device's kernels.
    pub(crate) clocks: &'static [&'static str],
    /// Makes the computation on the thread that measures it.
    pub(crate) make: Box<dyn Fn() -> Box<dyn Subject> + Sync>,
}

/// The findings of one clock.
pub(crate) struct Finding {
    pub(crate) clock: &'static str,
    /// The median of the times of both classes, in nanoseconds.
    pub(crate) median: f64,
    pub(crate) verdict: Verdict,
}

/// Measures `measurements` computations, whose classes alternate at random.
pub(crate) fn run(case: &Case, measurements: usize, seed: u64) -> Vec<Finding> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut subject = (case.make)();
    let mut measure = || {
        let class = black_box(rng.next_u32() & 1) as usize;
        subject.prepare(class, &mut rng);
        (class, subject.measure())
    };
    // These warm up and give the percentiles.
    let mut first = vec![[Vec::new(), Vec::new()]; case.clocks.len()];
    for _ in 0..(measurements / 10).clamp(1_000, 10_000) {
        let (class, times) = measure();
        for (first, time) in first.iter_mut().zip(times) {
            first[class].push(time);
        }
    }
    let mut tests: Vec<_> = first.iter().map(Tests::new).collect();
    for _ in 0..measurements {
        let (class, times) = measure();
        for (tests, time) in tests.iter_mut().zip(times) {
            tests.add(class, time);
        }
    }
    let clocks = case.clocks.iter().zip(first).zip(tests);
    clocks
        .map(|((clock, first), tests)| {
            let mut sorted = first.concat();
            sorted.sort_by(f64::total_cmp);
            Finding {
                clock,
                median: percentile(&sorted, 0.5),
                verdict: tests.verdict(),
            }
        })
        .collect()
}
