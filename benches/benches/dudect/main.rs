//! Tests whether running times depend on secrets:
//! `cargo bench -p batch-modexp-benches --bench dudect`.
//!
//! The method is that of O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code constant time?",
//! DATE 2017. Two classes of inputs alternate at random, and t-tests compare their running times
//! (`statistics.rs`). A |t| above 4.5 in every run shows a leak. One just above it in a single run
//! of a busy machine does not. Other programs on the machine add noise to both classes alike.
//!
//! The subjects called `control` leak the difference of their classes, by a few percent of their
//! time. They must be found with the same number of measurements. Classes without a difference must
//! not be found: such a result comes from the measurement. Results are in docs/timing.csv and
//! docs/evidence.md (`.ci/evidence timing`).
//!
//! ```text
//! cargo bench -p batch-modexp-benches --bench dudect -- --measurements 1000000 --jobs 16 --csv "$PWD/timing.csv"
//! cargo bench -p batch-modexp-benches --bench dudect -- --only ifma --only control
//! cargo bench -p batch-modexp-benches --bench dudect -- --gpu --measurements 20000
//! cargo bench -p batch-modexp-benches --bench dudect -- --measurements 4000 --limit 20      # fails on a gross leak
//! ```

mod exponentiations;
mod gpu;
mod inputs;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "../../../tests/common/need.rs"]
mod need;
mod private_ops;
#[path = "../../../tests/common/simd.rs"]
mod simd;
mod statistics;
mod subject;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use batch_modexp::backend::Cuda;
use clap::Parser;

use crate::subject::{Case, Finding};

/// How often a control that noise has hidden is measured again.
const CONTROL_ATTEMPTS: u32 = 3;

/// Compares running times of two classes of secrets.
#[derive(Parser)]
struct Options {
    /// Measurements of each pair of classes.
    #[arg(long, default_value_t = 100_000)]
    measurements: usize,
    /// Measurements of whole private operations, which take longer; the default is as many.
    #[arg(long)]
    private_ops: Option<usize>,
    /// Measures subjects alone whose names contain this; may be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Pairs that are measured at the same time, on a core each.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Measures the kernels and private operations of a GPU instead of the processor's, one pair at
    /// a time.
    #[arg(long, conflicts_with = "jobs")]
    gpu: bool,
    /// Fails if a |t| is above this, or that of a control is not, nor is with 64 times as many
    /// measurements.
    #[arg(long)]
    limit: Option<f64>,
    /// Where to write the results as comma-separated values, after each pair; controls as first
    /// measured.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Ignored; cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut cases = cases(options.gpu)?;
    let is_wanted = |case: &Case| options.only.iter().any(|name| case.subject.contains(name));
    cases.retain(|case| options.only.is_empty() || is_wanted(case));
    let mut rows = measure(&cases, options)?;
    match options.limit {
        Some(limit) => {
            find_hidden_controls(&mut rows, limit);
            check(&rows, limit)
        }
        None => Ok(()),
    }
}

/// Everything that can be measured.
fn cases(on_gpu: bool) -> Result<Vec<Case>, String> {
    if on_gpu {
        let cuda = Cuda::new().map_err(|error| error.to_string())?;
        return Ok(gpu::cases(&std::sync::Arc::new(cuda)));
    }
    Ok([exponentiations::cases(), private_ops::cases()]
        .into_iter()
        .flatten()
        .collect())
}

/// A case, its number of measurements, and the findings of one clock.
struct Row<'a> {
    case: &'a Case,
    measurements: usize,
    finding: Finding,
}

/// Measures all cases, `jobs` at a time, and prints and writes the findings. Returns them in the
/// order of the cases.
fn measure<'a>(cases: &'a [Case], options: &Options) -> Result<Vec<Row<'a>>, String> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let write = |rows: &[(usize, Row<'_>)]| match &options.csv {
        Some(path) => {
            std::fs::write(path, csv(rows)).map_err(|error| format!("{}: {error}", path.display()))
        }
        None => Ok(()),
    };
    write(&[])?;
    println!("largest |t|; above 4.5 in every run is a leak");
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, case)) = take(cases, &next) {
                    let is_private_op = case.subject.contains("RSA");
                    let private_ops = options.private_ops.filter(|_| is_private_op);
                    let measurements = private_ops.unwrap_or(options.measurements);
                    for finding in subject::run(case, measurements, index as u64) {
                        let row = Row {
                            case,
                            measurements,
                            finding,
                        };
                        print(&row);
                        let mut rows = rows.lock().expect("nobody panics with it");
                        rows.push((index, row));
                        rows.sort_by_key(|(index, _)| *index);
                    }
                    // Written after each pair, so that an interrupted run keeps its results. The
                    // last write reports errors.
                    let _ = write(&rows.lock().expect("nobody panics with it"));
                }
            });
        }
    });
    let rows = rows.into_inner().expect("nobody panics with it");
    write(&rows)?;
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn take<'a>(cases: &'a [Case], next: &AtomicUsize) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, cases.get(index)?))
}

fn print(row: &Row<'_>) {
    println!(
        "{:7.1}  {:34} {:42} {:6} {:9.0} ns",
        row.finding.verdict.largest(),
        row.case.subject,
        row.case.classes,
        row.finding.clock,
        row.finding.median,
    );
}

fn csv(rows: &[(usize, Row<'_>)]) -> String {
    let mut text =
        "subject,classes,clock,control,measurements,median_ns,t_all,t_cropped,t_second_order\n"
            .to_owned();
    for (_, row) in rows {
        let verdict = &row.finding.verdict;
        writeln!(
            text,
            "\"{}\",\"{}\",{},{},{},{:.0},{:.2},{:.2},{:.2}",
            row.case.subject,
            row.case.classes,
            row.finding.clock,
            if row.case.is_control { "yes" } else { "no" },
            row.measurements,
            row.finding.median,
            verdict.all,
            verdict.cropped,
            verdict.second_order,
        )
        .expect("room in memory");
    }
    text
}

/// Measures controls below the limit again, with four times as many measurements each time. Other
/// programs on the machine can hide them for a while, which is no sign of a leak.
fn find_hidden_controls(rows: &mut [Row<'_>], limit: f64) {
    for (index, row) in rows.iter_mut().enumerate() {
        for attempt in 1..=CONTROL_ATTEMPTS {
            if !row.case.is_control || row.finding.verdict.largest() > limit {
                break;
            }
            row.measurements *= 4;
            let seed = (u64::from(attempt) << 32) + index as u64;
            let findings = subject::run(row.case, row.measurements, seed);
            let again = findings
                .into_iter()
                .find(|finding| finding.clock == row.finding.clock);
            row.finding = again.expect("a case has the same clocks each time");
            println!("hidden; again with {} measurements:", row.measurements);
            print(row);
        }
    }
}

/// Checks that the controls are above the limit, and all else is below it.
fn check(rows: &[Row<'_>], limit: f64) -> Result<(), String> {
    let wrong = rows
        .iter()
        .filter(|row| (row.finding.verdict.largest() > limit) != row.case.is_control);
    let wrong: Vec<_> = wrong
        .map(|row| {
            let found = if row.case.is_control {
                "was not found"
            } else {
                "leaks"
            };
            let t = row.finding.verdict.largest();
            format!(
                "{} ({}) {found}: |t| = {t:.1}",
                row.case.subject, row.case.classes
            )
        })
        .collect();
    if !rows.iter().any(|row| row.case.is_control) {
        return Err("no control was measured".to_owned());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
