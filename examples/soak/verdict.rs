//! The verdict of a soak: growth of memory, and files or threads left behind.

use core::fmt;
use std::time::Duration;

/// Resident memory of the process at a time after the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) bytes: u64,
}

/// Resources that the operating system keeps for the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Handles {
    /// Open file descriptors.
    pub(crate) files: usize,
    pub(crate) threads: usize,
}

/// The largest growth after the warm-up that counts as constant. An allocator does not return
/// fragmented memory, so batches of random sizes move resident memory by some MiB.
pub(crate) const MOST_GROWTH: f64 = 8.0 * MIB;

pub(crate) const MIB: f64 = (1 << 20) as f64;

/// Groups of samples for the line. Short peaks do not count, and long runs take no more work than
/// short ones.
const GROUPS: usize = 100;

/// The least number of samples after the warm-up for a verdict.
const LEAST_SAMPLES: usize = 10;

/// A reason for which a soak fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// A wrong result, or an unexpected error.
    Wrong(String),
    /// Growth of memory after the warm-up in bytes.
    Growth(f64),
    /// Too few samples for a verdict on memory.
    TooShort(usize),
    LeftBehind {
        before: Handles,
        after: Handles,
    },
    /// A kind of work that was never done.
    NotDone(&'static str),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::Growth(bytes) => {
                let (bytes, most) = (bytes / MIB, MOST_GROWTH / MIB);
                write!(
                    f,
                    "memory grew by {bytes:.1} MiB; at most {most} are allowed"
                )
            }
            Self::TooShort(count) => {
                write!(f, "{count} samples of memory after the warm-up are too few")
            }
            Self::LeftBehind { before, after } => write!(
                f,
                "{} files and {} threads before, {} and {} afterwards",
                before.files, before.threads, after.files, after.threads
            ),
            Self::NotDone(kind) => write!(f, "no {kind}"),
        }
    }
}

/// The finding on memory samples in ascending order of time: none if memory grew by at most
/// [`MOST_GROWTH`] after the first `warm_up`.
pub(crate) fn of_memory(samples: &[Sample], warm_up: Duration) -> Option<Finding> {
    let warm: Vec<_> = samples
        .iter()
        .filter(|sample| sample.at >= warm_up)
        .copied()
        .collect();
    if warm.len() < LEAST_SAMPLES {
        return Some(Finding::TooShort(warm.len()));
    }
    let growth = growth(&warm);
    (growth > MOST_GROWTH).then_some(Finding::Growth(growth))
}

/// The finding on handles: there must not be more threads or files than before.
pub(crate) fn of_handles(before: Handles, after: Handles) -> Option<Finding> {
    let is_more = after.files > before.files || after.threads > before.threads;
    is_more.then_some(Finding::LeftBehind { before, after })
}

/// Growth of memory in bytes from the first sample to the last. The slope is the median of those
/// between any two groups of samples (Sen, "Estimates of the regression coefficient based on
/// Kendall's tau", 1968). So a short peak does not affect it, even at the end.
pub(crate) fn growth(samples: &[Sample]) -> f64 {
    let groups: Vec<_> = samples
        .chunks(samples.len().div_ceil(GROUPS).max(1))
        .map(middle)
        .collect();
    let mut slopes: Vec<f64> = groups
        .iter()
        .enumerate()
        .flat_map(|(i, first)| groups[i + 1..].iter().map(move |second| (first, second)))
        .filter(|(first, second)| second.0 > first.0)
        .map(|(first, second)| (second.1 - first.1) / (second.0 - first.0))
        .collect();
    slopes.sort_by(f64::total_cmp);
    let slope = slopes.get(slopes.len() / 2).copied().unwrap_or(0.0);
    let span = match samples {
        [first, .., last] => (last.at - first.at).as_secs_f64(),
        _ => 0.0,
    };
    slope * span
}

/// The mean time of a group and the median of its memory.
fn middle(group: &[Sample]) -> (f64, f64) {
    let time: f64 = group.iter().map(|sample| sample.at.as_secs_f64()).sum();
    let mut bytes: Vec<_> = group.iter().map(|sample| sample.bytes).collect();
    bytes.sort_unstable();
    (time / group.len() as f64, bytes[bytes.len() / 2] as f64)
}
