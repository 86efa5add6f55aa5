//! Runs `examples/soak`: it passes, and it would fail with growing memory, leaked handles or wrong
//! results.
#![cfg(target_os = "linux")]

#[path = "common/example.rs"]
mod example;
#[path = "../examples/soak/verdict.rs"]
mod verdict;

use std::process::Command;
use std::time::Duration;

use verdict::{Finding, Handles, MIB, MOST_GROWTH, Sample, growth, of_handles, of_memory};

/// Runs the program and returns whether it passed, and what it printed.
fn soak(args: &[&str]) -> (bool, String) {
    let program = example::program("soak");
    let output = Command::new(program).args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn wrong_results_are_found() {
    let (passed, text) = soak(&["--seconds", "60", "--control", "wrong"]);
    assert!(
        !passed && text.contains("verdict: failed: exponentiations of"),
        "{text}"
    );
    assert!(text.contains(" gave "), "{text}");
}

#[test]
fn growth_is_found() {
    let (passed, text) = soak(&["--seconds", "8", "--control", "leak"]);
    assert!(
        !passed && text.contains("verdict: failed: memory grew by"),
        "{text}"
    );
}

#[test]
fn what_stays_is_found() {
    let (passed, text) = soak(&["--seconds", "1", "--control", "handles"]);
    assert!(!passed && text.contains("verdict: failed: "), "{text}");
    assert!(text.contains(" files and "), "{text}");
}

/// Samples at each second, in MiB.
fn samples(mib: impl IntoIterator<Item = f64>) -> Vec<Sample> {
    let sample = |(second, mib): (u64, f64)| Sample {
        at: Duration::from_secs(second),
        bytes: (mib * MIB) as u64,
    };
    (0..).zip(mib).map(sample).collect()
}

#[test]
fn memory_that_grows_steadily_has_grown() {
    for (len, rate) in [(20, 1.0), (1000, 0.02), (36_000, 0.001)] {
        let line = samples((0..len).map(|i| 50.0 + f64::from(i) * rate));
        let expected = f64::from(len - 1) * rate * MIB;
        assert!(
            (growth(&line) / expected - 1.0).abs() < 0.02,
            "{}",
            growth(&line)
        );
        let finding = of_memory(&line, Duration::ZERO);
        assert!(matches!(finding, Some(Finding::Growth(bytes)) if bytes > MOST_GROWTH));
    }
}

#[test]
fn what_grows_before_the_warm_up_is_over_does_not_count() {
    let line = samples((0..300).map(|i| f64::from(i.min(100))));
    assert!(of_memory(&line, Duration::ZERO).is_some());
    assert_eq!(of_memory(&line, Duration::from_secs(100)), None);
}

#[test]
fn noise_and_peaks_are_no_growth() {
    let noise = (0..300).map(|i| 80.0 + f64::from(i * 7919 % 13));
    assert_eq!(of_memory(&samples(noise), Duration::ZERO), None);
    let peak = (0..300).map(|i| if i > 280 { 500.0 } else { 80.0 });
    assert_eq!(of_memory(&samples(peak), Duration::ZERO), None);
    // A falling value is no growth.
    let falling = (0..300).map(|i| 400.0 - f64::from(i));
    assert_eq!(of_memory(&samples(falling), Duration::ZERO), None);
}

#[test]
fn few_samples_show_nothing() {
    for len in [0, 1, 9] {
        let finding = of_memory(&samples(vec![1.0; len]), Duration::ZERO);
        assert_eq!(finding, Some(Finding::TooShort(len)));
    }
    assert_eq!(of_memory(&samples([1.0; 10]), Duration::ZERO), None);
}

#[test]
fn more_than_before_was_left_behind() {
    let handles = |files, threads| Handles { files, threads };
    let before = handles(7, 2);
    for after in [before, handles(6, 2), handles(7, 1)] {
        assert_eq!(of_handles(before, after), None);
    }
    for after in [handles(8, 2), handles(7, 3), handles(8, 1)] {
        let finding = Finding::LeftBehind { before, after };
        assert_eq!(of_handles(before, after), Some(finding));
    }
}

#[test]
fn findings_have_words() {
    let (before, after) = (
        Handles {
            files: 7,
            threads: 2,
        },
        Handles {
            files: 9,
            threads: 3,
        },
    );
    let findings = [
        (Finding::Wrong("1 + 1 = 3".into()), "1 + 1 = 3"),
        (
            Finding::Growth(12.5 * MIB),
            "memory grew by 12.5 MiB; at most 8 are allowed",
        ),
        (
            Finding::TooShort(3),
            "3 samples of memory after the warm-up are too few",
        ),
        (
            Finding::LeftBehind { before, after },
            "7 files and 2 threads before, 9 and 3 afterwards",
        ),
        (Finding::NotDone("signatures"), "no signatures"),
    ];
    for (finding, words) in findings {
        assert_eq!(finding.to_string(), words);
    }
}
