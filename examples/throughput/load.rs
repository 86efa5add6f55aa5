//! Measures latencies of signatures that are requested at a steady rate, as by clients of a
//! service. Messages arrive one by one at equal intervals and are collected into batches, which
//! several callers sign side by side.
//!
//! A latency counts from the scheduled arrival of a message until its batch is signed. It includes
//! the time that the message waits for its batch to fill and for a caller.

use core::error::Error;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::io::Write as _;
use std::thread;
use std::time::Instant;

use batch_modexp::backend::Cuda;
use batch_modexp::rsa::{BatchSigner, KeyHandle, Pkcs1v15};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use getrandom::SysRng;
use rsa::PrivateKey;
use rsa::sha2::Sha256;

use super::{milliseconds, percentile};

/// The batch size of the peak rate.
const LARGE_BATCH: usize = 262_144;

/// One message in this many of a batch is timed.
const SAMPLED: usize = 16;

/// The load to measure.
pub(crate) struct OfferedLoad<'a> {
    pub(crate) bits: usize,
    /// Fractions of the peak rate.
    pub(crate) loads: &'a [f64],
    pub(crate) batches: &'a [usize],
    pub(crate) callers: usize,
    pub(crate) seconds: f64,
}

/// The result of one load with one batch size.
struct Row {
    schedule: Schedule,
    achieved: f64,
    p50: Duration,
    p99: Duration,
    longest: Duration,
}

/// Measures and prints; returns comma-separated values.
pub(crate) fn measure(cuda: &Cuda, offer: &OfferedLoad<'_>) -> Result<Vec<u8>, Box<dyn Error>> {
    let (bits, callers) = (offer.bits, offer.callers);
    if offer.batches.contains(&0) {
        return Err("--batch: a batch has at least one message".into());
    }
    let mut rng = ChaCha20Rng::seed_from_u64(bits as u64);
    let key = KeyHandle::new(&PrivateKey::new(&mut rng, bits)?)?;
    let most = offer.batches.iter().copied().fold(LARGE_BATCH, usize::max);
    let messages: Vec<_> = (0..most as u64).map(u64::to_be_bytes).collect();
    cuda.prepare_private_op(&key)?;
    let peak = peak(cuda, &key, &messages[..LARGE_BATCH])?;
    println!(
        "RSA-{bits}, one key, blinded, {} devices, {} threads, {callers} callers; peak, in batches of {LARGE_BATCH}: {peak:.0} a second",
        cuda.devices().count(),
        cuda.host_threads()
    );
    println!(
        "{:>7} {:>5} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "batch", "load", "offer/s", "signed/s", "p50 ms", "p99 ms", "most ms"
    );
    let mut csv = Vec::new();
    writeln!(
        csv,
        "bits,threads,devices,callers,peak_per_s,batch,load,offered_per_s,signed_per_s,p50_ms,p99_ms,longest_ms"
    )?;
    for &batch in offer.batches {
        for &load in offer.loads {
            let schedule = Schedule {
                batch,
                load,
                rate: peak * load,
                count: ((peak * load * offer.seconds) as usize)
                    .div_ceil(batch)
                    .max(1),
            };
            // Warms up: all callers at once, and then the schedule without timing. So all buffers
            // exist at full size; a call that allocates larger ones would delay others.
            let burst = Schedule {
                rate: f64::INFINITY,
                count: 4 * callers,
                ..schedule
            };
            burst.run(cuda, &key, &messages, callers)?;
            schedule.run(cuda, &key, &messages, callers)?;
            let row = schedule.run(cuda, &key, &messages, callers)?;
            row.print();
            row.write(&mut csv, offer, cuda, peak)?;
        }
    }
    Ok(csv)
}

/// The rate of large batches one after another, in signatures a second.
fn peak(cuda: &Cuda, key: &KeyHandle, messages: &[[u8; 8]]) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    // The first one is not timed.
    for i in 0..8 {
        let called = Instant::now();
        let done = sign(cuda, key, messages)?;
        if i > 0 {
            times.push(done - called);
        }
    }
    Ok(messages.len() as f64 / percentile(&mut times, 50).as_secs_f64())
}

/// Signs; returns the time before the signatures are dropped.
fn sign(cuda: &Cuda, key: &KeyHandle, messages: &[[u8; 8]]) -> Result<Instant, String> {
    let signer = BatchSigner::new(cuda, Pkcs1v15::<Sha256>::new());
    let signatures = signer
        .sign(&mut SysRng, key, messages)
        .map_err(|error| error.to_string())?;
    let done = Instant::now();
    match signatures.iter().any(|signature| signature.is_err()) {
        true => Err("a signature failed its check".into()),
        false => Ok(done),
    }
}

/// A schedule of arrivals.
#[derive(Clone, Copy)]
struct Schedule {
    batch: usize,
    /// The fraction of the peak rate.
    load: f64,
    /// Messages a second; infinite if all arrive at once.
    rate: f64,
    /// The number of batches, at least one.
    count: usize,
}

impl Schedule {
    /// Arrival of this message, from the start.
    fn arrival(&self, message: usize) -> Duration {
        Duration::from_secs_f64(message as f64 / self.rate)
    }

    /// Has the callers sign all messages on schedule.
    fn run(
        &self,
        cuda: &Cuda,
        key: &KeyHandle,
        messages: &[[u8; 8]],
        callers: usize,
    ) -> Result<Row, Box<dyn Error>> {
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        let caller = || -> Result<(Vec<Duration>, Duration), String> {
            let mut waited = Vec::new();
            let mut ended = Duration::ZERO;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.count {
                    return Ok((waited, ended));
                }
                let (first, last) = (number * self.batch, (number + 1) * self.batch - 1);
                thread::sleep(self.arrival(last).saturating_sub(began.elapsed()));
                // Neighbouring batches have different messages.
                let start = first % (messages.len() - self.batch + 1);
                ended = sign(cuda, key, &messages[start..start + self.batch])? - began;
                let sampled = (first..=last).step_by(SAMPLED);
                waited.extend(sampled.map(|message| ended - self.arrival(message)));
            }
        };
        let mut waited = Vec::new();
        let mut ended = Duration::ZERO;
        thread::scope(|scope| {
            let callers: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
            for caller in callers {
                let result = caller.join().map_err(|_| "a caller panicked".to_owned())?;
                let (of_caller, its_end) = result?;
                waited.extend(of_caller);
                ended = ended.max(its_end);
            }
            Ok::<_, String>(())
        })?;
        // The first batch begins when its last message has arrived.
        let time = ended - self.arrival(self.batch - 1);
        Ok(Row {
            schedule: *self,
            achieved: (self.count * self.batch) as f64 / time.as_secs_f64(),
            p50: percentile(&mut waited, 50),
            p99: percentile(&mut waited, 99),
            longest: percentile(&mut waited, 100),
        })
    }
}

impl Row {
    fn print(&self) {
        println!(
            "{:>7} {:>5.2} {:>10.0} {:>10.0} {:>9.3} {:>9.3} {:>9.3}",
            self.schedule.batch,
            self.schedule.load,
            self.schedule.rate,
            self.achieved,
            milliseconds(self.p50),
            milliseconds(self.p99),
            milliseconds(self.longest)
        );
    }

    fn write(
        &self,
        csv: &mut Vec<u8>,
        offer: &OfferedLoad<'_>,
        cuda: &Cuda,
        peak: f64,
    ) -> std::io::Result<()> {
        writeln!(
            csv,
            "{},{},{},{},{peak:.0},{},{},{:.0},{:.0},{:.4},{:.4},{:.4}",
            offer.bits,
            cuda.host_threads(),
            cuda.devices().count(),
            offer.callers,
            self.schedule.batch,
            self.schedule.load,
            self.schedule.rate,
            self.achieved,
            milliseconds(self.p50),
            milliseconds(self.p99),
            milliseconds(self.longest)
        )
    }
}
