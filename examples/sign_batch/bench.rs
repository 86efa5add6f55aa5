//! Generated messages by the batch, and the same work one by one with the `rsa` crate.

use std::time::{Duration, Instant};

use super::args::BenchArgs;
use super::failure::Failure;
use super::feed::Messages;
use super::key;
use super::output::Output;
use super::report::Report;
use super::schemes::{self, Signer, Single};
use super::sign;

/// How long each comparison runs.
const PATIENCE: Duration = Duration::from_millis(1500);

/// One-by-one signing on some threads.
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

/// One-by-one signing on one thread, and on all threads that the backend has if it has more.
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

/// Signs at least once, and again until `deadline`; the time of each.
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
