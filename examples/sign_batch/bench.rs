//! Signs generated messages in batches, and compares with one-by-one signing by the `rsa` crate.

use std::time::{Duration, Instant};

use super::args::BenchArgs;
use super::failure::Failure;
use super::feed::Messages;
use super::key;
use super::output::Output;
use super::report::Report;
use super::schemes::{self, Signer, Single};
use super::sign;

/// Duration of each comparison.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The rate of one-by-one signing on some threads.
pub struct Rate {
    pub threads: usize,
    pub signatures_per_second: f64,
    /// The median time of one signature.
    pub latency: Duration,
}

/// Signs, compares and reports.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let compute = &args.compute;
    let backend = compute.backend()?;
    let (handle, rsa_key) = match &args.key {
        Some(path) => key::load_for_comparison(path, &args.passphrase, compute.scheme)?,
        None => key::generate(args.bits, compute.quiet)?,
    };
    let signer = Signer::new(compute, backend, Some(&rsa_key.to_public_key()), false);
    let single = schemes::single(compute.scheme, &rsa_key);
    let mut messages = Messages::generated(args.count);
    let (summary, _) = sign::all(compute, &signer, &handle, &mut messages, Output::nowhere())?;
    let rates = one_by_one(single.as_ref(), signer.backend().threads())?;
    Report::new(compute, &signer, &handle, &summary, Some(&rates)).print()
}

/// Measures one-by-one signing on one thread and, if the backend has more, on as many as it has.
fn one_by_one(single: &dyn Single, threads: usize) -> Result<Vec<Rate>, Failure> {
    let mut rates = vec![on_threads(single, 1)?];
    if threads > 1 {
        rates.push(on_threads(single, threads)?);
    }
    Ok(rates)
}

fn on_threads(single: &dyn Single, threads: usize) -> Result<Rate, Failure> {
    let start = Instant::now();
    let times: Option<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(move || sign_until(single, start + PATIENCE)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().ok()?)
            .collect()
    });
    let elapsed = start.elapsed();
    let mut times = times
        .ok_or_else(|| Failure::Work("the rsa crate failed to sign".into()))?
        .concat();
    times.sort_unstable();
    Ok(Rate {
        threads,
        signatures_per_second: times.len() as f64 / elapsed.as_secs_f64(),
        latency: times[times.len() / 2],
    })
}

/// Signs repeatedly until `deadline`, at least once; returns the time of each signature.
fn sign_until(single: &dyn Single, deadline: Instant) -> Option<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let message = format!("message {}", times.len());
        single.sign(message.as_bytes()).ok()?;
        times.push(start.elapsed());
        if Instant::now() >= deadline {
            return Some(times);
        }
    }
}
