//! What a soak has shown: whether memory grew, and whether anything was left behind.

use core::fmt;
use std::time::Duration;

/// The resident memory of the process at a moment after the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) bytes: u64,
}

/// What the operating system keeps for the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Handles {
    /// Open file descriptors.
    pub(crate) files: usize,
    pub(crate) threads: usize,
}

/// Growth from the end of the warm-up to the end of the run up to which memory counts as constant. An allocator does
/// not give back what it has cut up, so that batches of random sizes move resident memory by some MiB.
pub(crate) const MOST_GROWTH: f64 = 8.0 * MIB;

pub(crate) const MIB: f64 = (1 << 20) as f64;

/// Groups of samples that the line is laid through: what is short does not count, and an hour is no more work
/// than a minute.
const GROUPS: usize = 100;

/// Fewer samples than this after the warm-up show nothing.
const LEAST_SAMPLES: usize = 10;

/// A reason for which a soak has failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// A wrong result, or an error that should not have been.
    Wrong(String),
    /// Bytes by which memory grew after the warm-up.
    Growth(f64),
    /// Too few samples to say anything about memory.
    TooShort(usize),
    LeftBehind {
        before: Handles,
        after: Handles,
    },
    /// A kind of work that never happened.
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

/// What is wrong with memory that was measured in ascending order of time: nothing, if it grew by at most
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

/// How much more was left afterwards: threads and files must be as many as before, or fewer.
pub(crate) fn of_handles(before: Handles, after: Handles) -> Option<Finding> {
    let is_more = after.files > before.files || after.threads > before.threads;
    is_more.then_some(Finding::LeftBehind { before, after })
}

/// Bytes by which memory grew from the first sample to the last, by the slope that is the median of the slopes between
/// any two groups of samples (Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968): a short
/// peak, at the end too, does not move it.
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
