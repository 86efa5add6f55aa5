//! A soak test: batches of all widths, sizes, keys and schemes, errors, queues and cancellations on
//! several threads at once. Results are compared with other implementations. At the end memory must
//! not have grown, and no files or threads may be left.
//!
//! ```text
//! cargo run --release --example soak -- --seconds 3600
//! cargo run --release --example soak -- --seconds 900 --backend cuda --largest 5000
//! ```
//!
//! Needs Linux's /proc. It prints a line every ten seconds and a verdict, which is also the exit
//! status.

mod decryption;
mod exponentiation;
mod keys;
mod process;
mod requests;
mod signing;
mod verdict;
mod work;

use core::error::Error;
use core::hint::black_box;
use core::num::NonZeroUsize;
use std::fs::File;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_modexp::backend::{Auto, Kind};
use batch_modexp::queue::BatchQueue;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use clap::{Parser, ValueEnum};

use verdict::{Finding, MIB, Sample};
use work::{Done, KINDS, Place};

/// Mixed work for hours: no wrong result, no growth of memory, nothing left behind.
#[derive(Parser)]
struct Options {
    /// How long.
    #[arg(long, default_value = "60")]
    seconds: u64,
    #[arg(long, default_value = "cpu")]
    backend: Backend,
    /// Threads that call.
    #[arg(long, default_value = "4")]
    callers: NonZeroUsize,
    /// Instances or items of the largest batch.
    #[arg(long, default_value = "48")]
    largest: NonZeroUsize,
    /// The same work in the same order for each thread.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Does what must be found.
    #[arg(long, hide = true)]
    control: Option<Control>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Backend {
    /// The processor: each of its backends in turn.
    Cpu,
    /// All GPUs.
    Cuda,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Control {
    /// Keeps some MiB each second.
    Leak,
    /// Leaves a file open, and a thread asleep.
    Handles,
    /// Looks at other results than those that were computed.
    Wrong,
}

/// Time between two samples of memory.
const INTERVAL: Duration = Duration::from_millis(250);
/// Time between two lines of output.
const REPORT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(findings) if findings.is_empty() => {
            println!("verdict: passed");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in findings {
                println!("verdict: failed: {finding}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<Vec<Finding>, Box<dyn Error>> {
    if options.backend == Backend::Cuda {
        // The driver keeps files and threads from its first use on.
        drop(place(options)?);
    }
    let before = process::handles()?;
    let place = place(options)?;
    let names: Vec<_> = place
        .backends
        .iter()
        .map(|backend| backend.name())
        .collect();
    println!(
        "{} callers, backends: {}",
        options.callers,
        names.join(", ")
    );
    let span = Duration::from_secs(options.seconds);
    let (samples, totals) = soak(options, &place, span)?;
    drop(place);
    if options.control == Some(Control::Handles) {
        core::mem::forget(File::open("/proc/self/status")?);
        thread::spawn(|| thread::sleep(Duration::MAX));
    }
    let after = process::handles_left(before)?;

    // A third, but no more than is needed.
    let warm_up = (span / 3).min(Duration::from_secs(120));
    let warm: Vec<_> = samples
        .iter()
        .filter(|sample| sample.at >= warm_up)
        .copied()
        .collect();
    println!(
        "after {} s of warm-up: growth of memory {:+.2} MiB; {} files, {} threads before; {} files, {} threads afterwards",
        warm_up.as_secs(),
        verdict::growth(&warm) / MIB,
        before.files,
        before.threads,
        after.files,
        after.threads
    );
    for (kind, calls) in KINDS.iter().zip(totals.calls) {
        println!("{}: {calls} calls", kind.name);
    }
    let done = totals.done;
    println!(
        "total: {} calls, {} items, {} compared, {} errors as expected, {} taken back",
        totals.calls.iter().sum::<u64>(),
        done.items,
        done.checked,
        done.errors,
        done.cancelled
    );
    // A run that ended early shows nothing else.
    if let Some(what) = totals.wrong {
        return Ok(vec![Finding::Wrong(what)]);
    }
    let not_done = KINDS
        .iter()
        .zip(totals.calls)
        .filter(|(_, calls)| *calls == 0);
    let findings = verdict::of_memory(&samples, warm_up)
        .into_iter()
        .chain(verdict::of_handles(before, after))
        .chain(not_done.map(|(kind, _)| Finding::NotDone(kind.name)));
    Ok(findings.collect())
}

fn place(options: &Options) -> Result<Place, Box<dyn Error>> {
    let backends: Vec<_> = match options.backend {
        Backend::Cuda => vec![Arc::new(Auto::with(Kind::Cuda, None)?)],
        Backend::Cpu => Kind::ON_CPU
            .iter()
            // Backends that this processor supports.
            .filter_map(|kind| Auto::with(*kind, None).ok().map(Arc::new))
            .collect(),
    };
    let first = backends.first().ok_or("no backend can be used")?;
    let queue = BatchQueue::builder(first.clone(), getrandom::SysRng)
        .max_batch(options.largest.get())
        .capacity(2 * options.largest.get())
        .no_fallback()
        .build()?;
    Ok(Place {
        backends,
        keys: keys::all()?,
        queue,
        largest: options.largest.get(),
        corrupts: options.control == Some(Control::Wrong),
    })
}

/// The combined results of all callers.
#[derive(Default)]
struct Totals {
    done: Done,
    /// In the order of [`KINDS`].
    calls: [u64; KINDS.len()],
    /// The first wrong result.
    wrong: Option<String>,
}

/// Runs all callers for `span`, or until a result is wrong, and samples memory meanwhile.
fn soak(
    options: &Options,
    place: &Place,
    span: Duration,
) -> Result<(Vec<Sample>, Totals), Box<dyn Error>> {
    let (totals, is_over) = (Mutex::new(Totals::default()), AtomicBool::new(false));
    let started = Instant::now();
    let mut samples = Vec::new();
    let all = thread::scope(|scope| {
        let callers: Vec<_> = (0..options.callers.get() as u64)
            .map(|number| {
                let (totals, is_over) = (&totals, &is_over);
                let rng = ChaCha20Rng::seed_from_u64(options.seed.wrapping_mul(1 << 16) + number);
                scope.spawn(move || call_on(place, rng, totals, is_over))
            })
            .collect();
        let measured = measure(options, started, span, &totals, &is_over, &mut samples);
        is_over.store(true, Relaxed);
        let panicked = callers.into_iter().any(|caller| caller.join().is_err());
        measured.map(|()| panicked)
    });
    let panicked = all?;
    let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    if panicked {
        totals.wrong = Some("a thread panicked".into());
    }
    Ok((samples, totals))
}

/// Runs one caller: calls of random kinds.
fn call_on(place: &Place, mut rng: ChaCha20Rng, totals: &Mutex<Totals>, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let kind = work::below(&mut rng, KINDS.len());
        let outcome = (KINDS[kind].call)(place, &mut rng);
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.calls[kind] += 1;
        match outcome {
            Ok(done) => totals.done += done,
            Err(what) => {
                totals
                    .wrong
                    .get_or_insert(format!("{}: {what}", KINDS[kind].name));
                is_over.store(true, Relaxed);
            }
        }
    }
}

/// Samples memory until the time is over.
fn measure(
    options: &Options,
    started: Instant,
    span: Duration,
    totals: &Mutex<Totals>,
    is_over: &AtomicBool,
    samples: &mut Vec<Sample>,
) -> std::io::Result<()> {
    let mut reported = 0;
    while started.elapsed() < span && !is_over.load(Relaxed) {
        thread::sleep(INTERVAL);
        if options.control == Some(Control::Leak) {
            // `black_box` keeps the compiler from removing it.
            core::mem::forget(black_box(vec![1u8; 2 << 20]));
        }
        let (at, bytes) = (started.elapsed(), process::resident_memory()?);
        samples.push(Sample { at, bytes });
        let reports = at.as_secs() / REPORT.as_secs();
        if reports > reported {
            reported = reports;
            let totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
            let (calls, done) = (totals.calls.iter().sum::<u64>(), totals.done);
            println!(
                "{:>6} s: {calls} calls, {} items, {} compared, {} errors as expected, {} taken back, {:.1} MiB",
                at.as_secs(),
                done.items,
                done.checked,
                done.errors,
                done.cancelled,
                bytes as f64 / MIB
            );
        }
    }
    Ok(())
}
