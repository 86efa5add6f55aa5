//! Rates, in turns between builds.

use std::env;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crypto_bigint::BoxedUint;
use crypto_bigint::modular::BoxedMontyParams;

use super::instances::Instances;
use super::{Options, Unit};

/// Measures each width once and prints the rates, one a line.
pub(crate) fn turn(unit: &Unit, options: &Options) {
    for width in &options.bits {
        println!("{}", rate(unit, *width, options));
    }
}

/// Exponentiations a second with exponents of full length, each instance with a modulus of its own.
fn rate(unit: &Unit, width: u32, options: &Options) -> f64 {
    let zero = BoxedUint::zero_with_precision(width);
    let instances = Instances::new(options.batch, &zero, |modulus| {
        BoxedMontyParams::new(modulus).as_ref().clone()
    });
    let batch = instances.batch();
    let mut out = vec![zero; batch.len()];
    let mut run = || {
        unit.batch_mod_exp(black_box(&batch), width, &mut out)
            .expect("a valid batch");
    };
    // The first one warms up.
    run();
    let slice = Duration::from_millis(options.slice);
    let (start, mut computed) = (Instant::now(), 0);
    while computed == 0 || start.elapsed() < slice {
        run();
        computed += batch.len();
    }
    computed as f64 / start.elapsed().as_secs_f64()
}

/// Measures this build and the others in turns, each in a process of its own, and prints the medians and
/// their ratios to those of the first of the others.
pub(crate) fn table(options: &Options) -> Result<(), String> {
    let own = env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let builds: Vec<PathBuf> = options.others.iter().cloned().chain([own]).collect();
    // rates[build][width] over the rounds.
    let mut rates = vec![vec![Vec::new(); options.bits.len()]; builds.len()];
    for _ in 0..options.rounds.max(1) {
        for (build, rates) in builds.iter().zip(&mut rates) {
            for (rate, rates) in ask(build, options)?.into_iter().zip(rates) {
                rates.push(rate);
            }
        }
    }

    print!(
        "exponentiations/s, batches of {}, {} rounds",
        options.batch, options.rounds
    );
    println!(", this build last; in brackets the ratio to the first line");
    let medians: Vec<Vec<f64>> = rates
        .into_iter()
        .map(|widths| widths.into_iter().map(median).collect())
        .collect();
    let headings = options.bits.iter().map(|bits| format!("{bits:>20} |"));
    println!("| {:24} |{}", "build", headings.collect::<String>());
    for (build, row) in builds.iter().zip(&medians) {
        print!("| {:24} |", name(build));
        for (rate, first) in row.iter().zip(&medians[0]) {
            print!(" {rate:>10.1} ({:.4}) |", rate / first);
        }
        println!();
    }
    Ok(())
}

/// Runs another build for one turn.
fn ask(build: &Path, options: &Options) -> Result<Vec<f64>, String> {
    let bits: Vec<String> = options.bits.iter().map(u32::to_string).collect();
    let output = Command::new(build)
        .args(["--turn", "--backend", options.backend.name()])
        .args(["--bits", &bits.join(",")])
        .args(["--batch", &options.batch.to_string()])
        .args(["--slice", &options.slice.to_string()])
        .output()
        .map_err(|error| format!("{}: {error}", build.display()))?;
    let rates: Vec<f64> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    if output.status.success() && rates.len() == options.bits.len() {
        Ok(rates)
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} failed: {message}", build.display()))
    }
}

/// The last two parts of a path.
fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

/// The median of a list that is not empty.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
