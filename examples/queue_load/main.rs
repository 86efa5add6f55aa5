//! Measures the cost and gain of a queue: one request alone compared with the backend itself, a
//! saturated queue compared with whole batches, and latencies at a given load.
//!
//! ```text
//! cargo run --release --example queue_load
//! cargo run --release --example queue_load -- --gpus --in-flight 65536 --max-batch 32768
//! cargo run --release --example queue_load -- --rate 500,1000,2000,4000 --csv latency.csv
//! ```

mod load;

use core::error::Error;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use batch_modexp::backend::Auto;
use batch_modexp::queue::{BatchQueue, QueueStats};
use batch_modexp::rsa::backend::RsaBackend;
use batch_modexp::rsa::{AnyScheme, BatchSigner, Hash, KeyHandle};
use clap::Parser;
use rsa::PrivateKey;

use load::Customers;

/// Requests through a queue against batches without one.
#[derive(Parser)]
struct Options {
    /// Length of the key in bits; it is made afresh.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1024..=8192))]
    bits: u32,
    /// Lets GPUs compute, where there are any.
    #[arg(long)]
    gpus: bool,
    /// Threads of the backend; the default is one for each core.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Requests that are in flight at the same time when the queue is saturated.
    #[arg(long, default_value = "512")]
    in_flight: NonZeroUsize,
    /// Threads that keep them in flight.
    #[arg(long, default_value = "4")]
    customers: NonZeroUsize,
    /// The queue's largest batch.
    #[arg(long, default_value = "256")]
    max_batch: NonZeroUsize,
    /// The longest wait of the oldest request, in microseconds.
    #[arg(long, default_value_t = 1000)]
    max_wait: u64,
    /// The queue's workers; the default is the queue's own.
    #[arg(long)]
    workers: Option<NonZeroUsize>,
    /// Leaves all computing to the queue's threads.
    #[arg(long)]
    no_callers: bool,
    /// Requests a second, at random times, whose latency is to be measured; several with commas
    /// between them.
    #[arg(long, value_delimiter = ',', value_parser = a_rate)]
    rate: Vec<f64>,
    /// Where to write those latencies as comma-separated values.
    #[arg(long, requires = "rate")]
    csv: Option<PathBuf>,
    /// Seconds for each measurement.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Rounds of the comparisons, in which both sides take turns.
    #[arg(long, default_value = "5")]
    rounds: NonZeroUsize,
}

/// Parses a number of requests a second, above 0.
fn a_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err("a number of requests a second, above 0".to_owned()),
    }
}

const SCHEME: AnyScheme = AnyScheme::Pkcs1v15 { hash: Hash::Sha256 };

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("queue_load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let span = Duration::try_from_secs_f64(options.seconds)?;
    let (max_batch, in_flight) = (options.max_batch.get(), options.in_flight.get());
    let backend = Arc::new(match options.gpus {
        true => Auto::with(batch_modexp::backend::Kind::GpuOrCpu, options.threads)?,
        false => Auto::with(batch_modexp::backend::Kind::Cpu, options.threads)?,
    });
    println!("backend: {}, {}", backend.name(), backend.reason());
    let mut rng = rand_core::UnwrapErr(getrandom::SysRng);
    let key = PrivateKey::new(&mut rng, options.bits as usize)?;
    let key = KeyHandle::new(&key)?;
    let builder = BatchQueue::builder(backend.clone(), getrandom::SysRng)
        .max_batch(max_batch)
        .capacity(in_flight.max(max_batch.saturating_mul(8)))
        .max_wait(Duration::from_micros(options.max_wait))
        .callers_compute(!options.no_callers);
    let queue = match options.workers {
        Some(workers) => builder.workers(workers).build()?,
        None => builder.build()?,
    };
    // The first calls start threads and, on GPUs, allocate buffers.
    batches(&*backend, &key, max_batch, span / 4)?;

    let each = span / options.rounds.get() as u32 / 2;
    let (mut alone, mut alone_queued) = (Vec::new(), Vec::new());
    let (mut rate, mut rate_queued) = (Vec::new(), Vec::new());
    let customers = Customers {
        queue: &queue,
        key: &key,
        scheme: SCHEME,
    };
    for _ in 0..options.rounds.get() {
        alone.push(one_by_one(each, || {
            let signer = BatchSigner::new(&*backend, SCHEME);
            signer
                .sign(&mut getrandom::SysRng, &key, &["m"])?
                .into_vec()
        })?);
        alone_queued.push(one_by_one(each, || {
            queue.sign_blocking(&key, SCHEME, b"m")
        })?);
        rate.push(batches(&*backend, &key, max_batch, each)?);
        let saturated = customers.saturate(options.customers, in_flight, each)?;
        rate_queued.push(saturated);
    }
    let (alone, alone_queued) = (median(alone), median(alone_queued));
    println!(
        "one request alone: {:.1} us by the backend, {:.1} us through the queue: {:+.1} %",
        alone * 1e6,
        alone_queued * 1e6,
        100.0 * (alone_queued / alone - 1.0)
    );
    let (rate, rate_queued) = (median(rate), median(rate_queued));
    println!(
        "batches of {max_batch}: {rate:.0}/s by the backend; {in_flight} in flight: {rate_queued:.0}/s through the queue: {:.1} %",
        100.0 * rate_queued / rate
    );
    let mut arrivals = Vec::new();
    for &rate in &options.rate {
        let before = queue.stats();
        let latencies = customers.arrive(rate, span)?;
        let arrival = Arrival {
            rate,
            count: latencies.count(),
            p50: latencies.milliseconds(0.5),
            p99: latencies.milliseconds(0.99),
            mean_batch: mean_batch(&before, &queue.stats()),
        };
        println!("{arrival}");
        arrivals.push(arrival);
    }
    if let Some(path) = &options.csv {
        fs::write(path, csv(&arrivals))?;
    }
    Ok(())
}

/// The result for requests at random times.
struct Arrival {
    /// Requests a second.
    rate: f64,
    count: usize,
    /// Latencies in milliseconds.
    p50: f64,
    p99: f64,
    mean_batch: f64,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} requests/s: {} answered, p50 {:.2} ms, p99 {:.2} ms, {:.1} in a batch",
            self.rate, self.count, self.p50, self.p99, self.mean_batch
        )
    }
}

fn csv(arrivals: &[Arrival]) -> String {
    let mut text = "requests_per_s,answered,p50_ms,p99_ms,mean_batch\n".to_owned();
    for arrival in arrivals {
        let Arrival {
            rate,
            count,
            p50,
            p99,
            mean_batch,
        } = arrival;
        text += &format!("{rate},{count},{p50:.3},{p99:.3},{mean_batch:.2}\n");
    }
    text
}

fn mean_batch(before: &QueueStats, after: &QueueStats) -> f64 {
    let requests = after.batch_sizes.sum() - before.batch_sizes.sum();
    requests as f64 / (after.batches - before.batches).max(1) as f64
}

/// The median time of a call of `sign`, in seconds.
fn one_by_one<T, E>(span: Duration, sign: impl Fn() -> Result<T, E>) -> Result<f64, E> {
    let (started, mut times) = (Instant::now(), Vec::new());
    while started.elapsed() < span || times.is_empty() {
        let started = Instant::now();
        sign()?;
        times.push(started.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

/// Signatures a second in batches of `size`.
fn batches(
    backend: &dyn RsaBackend,
    key: &KeyHandle,
    size: usize,
    span: Duration,
) -> Result<f64, batch_modexp::rsa::Error> {
    let signer = BatchSigner::new(backend, SCHEME);
    let messages = vec!["m"; size];
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < span || count == 0 {
        for signature in signer.sign(&mut getrandom::SysRng, key, &messages)? {
            signature?;
        }
        count += size;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
