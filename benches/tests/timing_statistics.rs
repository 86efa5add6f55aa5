//! Tests of the statistics by which `benches/benches/dudect` tells a leak from noise.

#[path = "../benches/dudect/statistics.rs"]
#[allow(dead_code)]
mod statistics;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use statistics::{Tests, Verdict};

const FIRST: usize = 10_000;
const MEASUREMENTS: usize = 300_000;

/// Approximately normal noise with mean 0 and deviation 1.
fn noise(rng: &mut ChaCha20Rng) -> f64 {
    let uniform = |_| f64::from(rng.next_u32()) / 2f64.powi(32);
    (0..12).map(uniform).sum::<f64>() - 6.0
}

/// The verdict on two classes; `time` makes each time from noise. The first times are made with
/// `false`.
fn verdict(seed: u64, time: impl Fn(usize, f64, bool) -> f64) -> Verdict {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut measure = |is_late| {
        let class = (rng.next_u32() & 1) as usize;
        (class, time(class, noise(&mut rng), is_late))
    };
    let mut first = [Vec::new(), Vec::new()];
    for _ in 0..FIRST {
        let (class, time) = measure(false);
        first[class].push(time);
    }
    let mut tests = Tests::new(&first);
    for _ in 0..MEASUREMENTS {
        let (class, time) = measure(true);
        tests.add(class, time);
    }
    tests.verdict()
}

#[test]
fn what_does_not_differ_is_no_leak() {
    for seed in 0..4 {
        let t = verdict(seed, |_, noise, _| 1000.0 + 10.0 * noise).largest();
        assert!(t < 5.0, "{t}");
    }
}

/// A machine that becomes faster or slower after the first measurements does so for both classes.
/// Some times are then above all thresholds. The second order, which stops at the last one, is then
/// about a center that is far off.
#[test]
fn a_machine_that_changes_is_no_leak() {
    for (seed, later) in [(0, 20.0), (1, -20.0), (2, -40.0), (3, -40.0)] {
        let t = verdict(seed, |_, noise, is_late| {
            1000.0 + 10.0 * noise + if is_late { later } else { 0.0 }
        });
        assert!(t.largest() < 5.0, "{later}: {}", t.largest());
    }
}

/// A difference of two hundredths of the deviation, at which the test of all times should reach
/// about 5.
#[test]
fn a_mean_that_differs_is_found() {
    let t = verdict(5, |class, noise, _| {
        1000.0 + 10.0 * noise + 0.2 * class as f64
    });
    assert!(t.all < -3.5 && t.largest() > 4.5, "{}", t.all);
}

#[test]
fn a_spread_that_differs_is_found() {
    let t = verdict(6, |class, noise, _| {
        1000.0 + (10.0 + 0.3 * class as f64) * noise
    });
    assert!(t.second_order < -5.0, "{}", t.second_order);
    assert!(t.all.abs() < 4.5, "{}", t.all);
}

/// One time in a hundred is ten times as slow as the rest, in both classes.
#[test]
fn interruptions_hide_no_leak() {
    let t = verdict(7, |class, noise, _| {
        let interruption = if noise > 2.3 { 10_000.0 } else { 0.0 };
        1000.0 + 10.0 * noise + interruption + 0.5 * class as f64
    });
    assert!(t.cropped < -8.0, "{}", t.cropped);
}
